"""From an experiment to the list of its cells. Pure."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from typing import Final

from serverless_bench.errors import UsageError
from serverless_bench.executors import info_of
from serverless_bench.job.defaults import DEFAULT_EXECUTOR
from serverless_bench.job.target import StoreProtocol
from serverless_bench.process import cpus as cpu_count
from serverless_bench.settings.schema import located
from serverless_bench.studies.definition import (
    Axis,
    Experiment,
    PublishedRow,
    Setting,
    Settings,
    Value,
)
from serverless_bench.studies.settings import check_settings, is_shaped, merged
from serverless_bench.units import format_count

CELL: Final = "cell"
"""What the names of cells are called where an axis is expected."""
MAX_CELLS: Final = 1000
"""Each is run several times; the largest study here has 40."""
_SLUG: Final = re.compile(r"[^A-Za-z0-9.]+")
_SLUG_LENGTH: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One combination of settings, to be run again and again."""

    slug: str
    """Its directory; unlike that of any other cell."""
    name: str = ""
    """Empty unless the file names it."""
    control: bool = False
    """Whether it stands beside the design, and on no line of it."""
    at: Mapping[str, Value]
    """By axis."""
    settings: Settings
    skipped: str = ""
    """Why it is not run; empty for cells that are."""
    not_here: bool = False
    """Whether this machine is the reason."""
    crowded: str = ""
    """Why its functions and the store share processors; empty if they need not."""
    paper_at: Mapping[str, Value] = field(default_factory=dict)
    """``at`` in the values of the paper, where values are paired."""

    def value(self, axis: str) -> Value | None:
        """Return where it is on an axis, or its name; None if nowhere."""
        return self.name if axis == CELL else self.at.get(axis)

    def matches(self, at: Mapping[str, Value]) -> bool:
        """Tell whether it is at a point, given in its own values."""
        return all(str(self.value(name)) == str(value) for name, value in at.items())

    @property
    def shaped_store(self) -> bool:
        """Whether its store behaves as the experiment tells it to."""
        return is_shaped(self.settings)

    @property
    def label(self) -> str:
        """Its name, or its values, for people."""
        return self.name or " ".join(f"{name}={value}" for name, value in self.at.items()) or "all"


def make_cells(
    experiment: Experiment,
    scale: str,
    *,
    design: str = "",
    only: Mapping[str, Sequence[str]] | None = None,
    changes: Settings | None = None,
    protocol: StoreProtocol = StoreProtocol.S3,
) -> tuple[Cell, ...]:
    """Return the cells of an experiment in their order, those that cannot run included.

    Parameters
    ----------
    experiment, scale
        Which, and how large.
    design
        One of ``DESIGNS``; the file's own if empty.
    only
        By axis: the texts of the values that are kept.
    changes
        Settings that take the place of the cells' own.
    protocol
        Of the store; cells for another one are left out.

    Raises
    ------
    UsageError
        If ``only`` names no axis, or a value that no cell has, or a setting is unknown.
    """
    changes = changes or {}
    with located("--set"):
        check_settings(changes)
    _check_number(experiment, scale, design or experiment.design)
    controls = {cell.name for cell in experiment.controls}
    found: list[Cell] = []
    for name, own in _points(experiment, scale, design or experiment.design):
        at = _at(experiment, own)
        settings = merged(_settings(experiment, scale, own), changes)
        if any(cell.at == at and cell.settings == settings for cell in found):
            continue
        if settings.get("protocol", protocol) != protocol:
            continue
        cell = Cell(
            slug=_slug(len(found) + 1, name or "-".join(f"{n}-{v}" for n, v in at.items())),
            name=name,
            control=name in controls,
            at=at,
            settings=settings,
            paper_at={n: paper_value(experiment.axis(n), scale, v) for n, v in at.items()},
        )
        found.append(_skipped(cell, experiment))
    if not found:
        raise UsageError(
            f"experiment {experiment.name} has no cells by this design for {protocol}://"
        )
    return tuple(_kept(found, only or {}))


def _skipped(cell: Cell, experiment: Experiment) -> Cell:
    """Return a cell with the reason why it is not run, if there is one."""
    reasons = (one.reason for one in experiment.unsupported if cell.matches(one.at))
    if reason := next(reasons, ""):
        return replace(cell, skipped=reason)
    if lacking := _lacking(cell.settings):
        return replace(cell, skipped=f"not identifiable here: {lacking}", not_here=True)
    return cell


def _check_number(experiment: Experiment, scale: str, design: str) -> None:
    """Refuse a design that no session could run, before it is written out."""
    lengths = [len(axis.values[scale]) for axis in experiment.axes]
    number = {"full": prod(lengths), "one-factor": sum(lengths)}.get(design, 0)
    named = experiment.cells if design == "list" else ()
    if number + len(named) + len(experiment.controls) > MAX_CELLS:
        raise UsageError(
            f"experiment {experiment.name} has more than {MAX_CELLS} cells",
            hint="leave out values, or --design one-factor",
        )


def paper_value(axis: Axis, scale: str, value: Value) -> Value:
    """Return the value of the paper that a value stands for."""
    paired = axis.paired and value in axis.values[scale]
    return axis.values["paper"][axis.values[scale].index(value)] if paired else value


def published_row(experiment: Experiment, cell: Cell) -> PublishedRow | None:
    """Return what was published for a cell; None if nothing was."""
    for row in experiment.published:
        same = all(str(cell.paper_at.get(n)) == str(v) for n, v in row.at.items())
        # A control differs from the published cell in what is no axis.
        same = same and bool(row.at) and not cell.control
        if row.cell == cell.name if row.cell else same:
            return row
    return None


def _points(
    experiment: Experiment, scale: str, design: str
) -> Iterator[tuple[str, Mapping[str, Setting]]]:
    """Yield the name of each cell, and its values of axes and its own settings."""
    axes = experiment.axes
    if design == "full":
        for values in product(*(axis.values[scale] for axis in axes)):
            yield "", dict(zip((axis.name for axis in axes), values, strict=True))
    elif design == "one-factor":
        base: dict[str, Setting] = {axis.name: baseline(axis, scale) for axis in axes}
        yield "", base
        for axis in axes:
            for value in axis.values[scale]:
                yield "", {**base, axis.name: value}
    named = experiment.cells if design == "list" else ()
    yield from ((cell.name, cell.at[scale]) for cell in (*named, *experiment.controls))


def baseline(axis: Axis, scale: str) -> Value:
    """Return the value of an axis while another one is varied."""
    return axis.baseline.get(scale, axis.values[scale][0])


def _at(experiment: Experiment, own: Mapping[str, Setting]) -> dict[str, Value]:
    values = ((axis.name, own.get(axis.name)) for axis in experiment.axes)
    return {name: value for name, value in values if isinstance(value, str | int | float)}


def _settings(experiment: Experiment, scale: str, own: Mapping[str, Setting]) -> dict[str, Setting]:
    settings = dict(experiment.scales[scale].settings)
    rest = dict(own)
    for axis in experiment.axes:
        if axis.name in own:
            value = rest.pop(axis.name)
            level = axis.levels.get(str(value))
            given = {axis.setting: value} if level is None else level[scale]
            settings = merged(settings, given)
    return merged(settings, rest)


def _lacking(settings: Settings) -> str:
    """Return why functions cannot be kept to so many processors; empty if they can."""
    cpus, executor = settings.get("cpus"), str(settings.get("executor", DEFAULT_EXECUTOR))
    if not isinstance(cpus, int):
        return ""
    if "control_prefix" in info_of(executor).settings:
        return f"processors are chosen by affinity, which {executor} does not have"
    if not hasattr(os, "sched_setaffinity"):
        return "this system has no affinity"
    there = cpu_count()
    return f"{cpus} processors, there are {there}" if cpus > there else ""


def crowded(settings: Settings, processors: int, *, store_here: bool) -> str:
    """Return why functions and the store share processors; empty if they need not.

    Parameters
    ----------
    settings
        Of a cell.
    processors
        Number of them that the machine has.
    store_here
        Whether the store of cells that have none of their own is on it.
    """
    info = info_of(str(settings.get("executor", DEFAULT_EXECUTOR)))
    if not info.shares_memory:
        return ""
    limits = ("cpus",) if "cpus" in settings else ("number", "concurrency")
    numbers = [int(value) for name in limits if isinstance(value := settings.get(name), int)]
    busy = 1 if info.in_process else min(numbers, default=1)
    store = settings.get("store") != "files" and (store_here or is_shaped(settings))
    if busy + store <= processors:
        return ""
    taken = f"functions take {format_count(busy, 'processor')}{' and the store another' * store}"
    return f"{taken}, there are {processors}"


def _kept(cells: Sequence[Cell], only: Mapping[str, Sequence[str]]) -> list[Cell]:
    for name, wanted in only.items():
        there = dict.fromkeys(str(cell.value(name)) for cell in cells if cell.value(name))
        names = [CELL, *dict.fromkeys(name for cell in cells for name in cell.at)]
        if name not in names:
            raise UsageError(f"--only: there is no axis {name!r}", hint=f"axes: {', '.join(names)}")
        for value in wanted:
            if value not in there:
                raise UsageError(
                    f"--only {name}={value}: no cell has that", hint=f"it has {', '.join(there)}"
                )
    return [
        cell
        for cell in cells
        if all(str(cell.value(name)) in wanted for name, wanted in only.items())
    ]


def _slug(number: int, text: str) -> str:
    return f"{number:02}-{_SLUG.sub('-', text)}"[:_SLUG_LENGTH].strip("-")
