"""Construction of the cells of a study. Pure."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from typing import Final

from serverless_bench.base.errors import UsageError
from serverless_bench.base.process import cpus as cpu_count
from serverless_bench.base.units import format_count
from serverless_bench.executors import info_of
from serverless_bench.features.studies.definition import (
    Axis,
    PublishedRow,
    Setting,
    Settings,
    Study,
    Value,
)
from serverless_bench.features.studies.settings import check_settings, is_shaped, merged
from serverless_bench.job.defaults import DEFAULT_EXECUTOR
from serverless_bench.job.setting_schema import located
from serverless_bench.job.target import StoreProtocol

CELL: Final = "cell"
"""Name of the column of cells' names, where the name of an axis is expected."""
MAX_CELLS: Final = 1000
"""Maximum number of cells, each with repeated runs; the largest study here has 40."""
_SLUG: Final = re.compile(r"[^A-Za-z0-9.]+")
_SLUG_LENGTH: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One combination of settings, to run repeatedly."""

    slug: str
    """Name of its directory, unique among the cells."""
    name: str = ""
    """Name in the file, or empty."""
    control: bool = False
    """Whether it is a control, outside the lines of the design."""
    at: Mapping[str, Value]
    """Values by axis."""
    settings: Settings
    skipped: str = ""
    """Reason for not running the cell; empty for cells that run."""
    not_here: bool = False
    """Whether the reason is this machine."""
    crowded: str = ""
    """Reason why functions and store share CPUs; empty if they do not have to."""
    paper_at: Mapping[str, Value] = field(default_factory=dict)
    """``at`` in the values of the paper, for axes with paired values."""

    def value(self, axis: str) -> Value | None:
        """Return the value on an axis, or the name; None for an axis without a value."""
        return self.name if axis == CELL else self.at.get(axis)

    def matches(self, at: Mapping[str, Value]) -> bool:
        """Return whether the cell has these values, in the scale of the cell."""
        return all(str(self.value(name)) == str(value) for name, value in at.items())

    @property
    def shaped_store(self) -> bool:
        """Whether the study configures the behaviour of the store."""
        return is_shaped(self.settings)

    @property
    def label(self) -> str:
        """Name or values, for display."""
        return self.name or " ".join(f"{name}={value}" for name, value in self.at.items()) or "all"


def make_cells(
    study: Study,
    scale: str,
    *,
    design: str = "",
    only: Mapping[str, Sequence[str]] | None = None,
    changes: Settings | None = None,
    protocol: StoreProtocol = StoreProtocol.S3,
) -> tuple[Cell, ...]:
    """Return the cells of a study in order, including cells that cannot run.

    Parameters
    ----------
    study, scale
        Study and scale.
    design
        A design of ``DESIGNS``; empty for the design in the file.
    only
        Values to keep, as texts by axis.
    changes
        Settings that override those of the cells.
    protocol
        Protocol of the store; cells for another protocol are omitted.

    Raises
    ------
    UsageError
        If ``only`` has an unknown axis, or a value that no cell has, or a setting is unknown.
    """
    changes = changes or {}
    with located("--set"):
        check_settings(changes)
    _check_number(study, scale, design or study.design)
    controls = {cell.name for cell in study.controls}
    cells: list[Cell] = []
    for name, values in _points(study, scale, design or study.design):
        at = _at(study, values)
        settings = merged(_settings(study, scale, values), changes)
        is_known = any(cell.at == at and cell.settings == settings for cell in cells)
        if is_known or settings.get("protocol", protocol) != protocol:
            continue
        cell = Cell(
            slug=_slug(len(cells) + 1, name or "-".join(f"{n}-{v}" for n, v in at.items())),
            name=name,
            control=name in controls,
            at=at,
            settings=settings,
            paper_at={n: paper_value(study.axis(n), scale, v) for n, v in at.items()},
        )
        cells.append(_skipped(cell, study))
    if not cells:
        raise UsageError(f"study {study.name} has no cells by this design for {protocol}://")
    return tuple(_kept(cells, only or {}))


def _skipped(cell: Cell, study: Study) -> Cell:
    """Return a cell with the reason for skipping it, if there is a reason."""
    reasons = (
        unsupported.reason for unsupported in study.unsupported if cell.matches(unsupported.at)
    )
    if reason := next(reasons, ""):
        return replace(cell, skipped=reason)
    if lacking := _lacking(cell.settings):
        return replace(cell, skipped=f"not identifiable here: {lacking}", not_here=True)
    return cell


def _check_number(study: Study, scale: str, design: str) -> None:
    """Check the number of cells of a design before its construction."""
    lengths = [len(axis.values[scale]) for axis in study.axes]
    number = {"full": prod(lengths), "one-factor": sum(lengths)}.get(design, 0)
    named = study.cells if design == "list" else ()
    if number + len(named) + len(study.controls) > MAX_CELLS:
        raise UsageError(
            f"study {study.name} has more than {MAX_CELLS} cells",
            hint="leave out values, or --design one-factor",
        )


def paper_value(axis: Axis, scale: str, value: Value) -> Value:
    """Return the value of the paper that corresponds to a value."""
    paired = axis.paired and value in axis.values[scale]
    return axis.values["paper"][axis.values[scale].index(value)] if paired else value


def published_row(study: Study, cell: Cell) -> PublishedRow | None:
    """Return the published row of a cell, or None."""
    for row in study.published:
        same = all(str(cell.paper_at.get(n)) == str(v) for n, v in row.at.items())
        # A control differs from the published cell in settings that are not axes.
        same = same and bool(row.at) and not cell.control
        if row.cell == cell.name if row.cell else same:
            return row
    return None


def _points(study: Study, scale: str, design: str) -> Iterator[tuple[str, Mapping[str, Setting]]]:
    """Yield the name of each cell, with the values of axes and the settings."""
    axes = study.axes
    if design == "full":
        for values in product(*(axis.values[scale] for axis in axes)):
            yield "", dict(zip((axis.name for axis in axes), values, strict=True))
    elif design == "one-factor":
        base: dict[str, Setting] = {axis.name: baseline(axis, scale) for axis in axes}
        yield "", base
        for axis in axes:
            yield from (("", {**base, axis.name: value}) for value in axis.values[scale])
    named = study.cells if design == "list" else ()
    yield from ((cell.name, cell.at[scale]) for cell in (*named, *study.controls))


def baseline(axis: Axis, scale: str) -> Value:
    """Return the value of an axis while another axis is varied."""
    return axis.baseline.get(scale, axis.values[scale][0])


def _at(study: Study, values_and_settings: Mapping[str, Setting]) -> dict[str, Value]:
    values = ((axis.name, values_and_settings.get(axis.name)) for axis in study.axes)
    return {name: value for name, value in values if isinstance(value, str | int | float)}


def _settings(
    study: Study, scale: str, values_and_settings: Mapping[str, Setting]
) -> dict[str, Setting]:
    settings = dict(study.scales[scale].settings)
    rest = dict(values_and_settings)
    for axis in study.axes:
        if axis.name in values_and_settings:
            value = rest.pop(axis.name)
            level = axis.levels.get(str(value))
            settings = merged(settings, {axis.setting: value} if level is None else level[scale])
    return merged(settings, rest)


def _lacking(settings: Settings) -> str:
    """Return why functions cannot be limited to the requested CPUs; empty if they can."""
    cpus, executor = settings.get("cpus"), str(settings.get("executor", DEFAULT_EXECUTOR))
    if not isinstance(cpus, int):
        return ""
    if "control_prefix" in info_of(executor).settings:
        return f"CPUs are chosen by affinity, which {executor} does not have"
    if not hasattr(os, "sched_setaffinity"):
        return "this system has no affinity"
    available = cpu_count()
    return f"{cpus} CPUs, there are {available}" if cpus > available else ""


def crowded(settings: Settings, cpus: int, *, store_here: bool) -> str:
    """Return why functions and the store share CPUs; empty if they do not have to.

    Parameters
    ----------
    settings
        Settings of a cell.
    cpus
        Number of CPUs of the machine.
    store_here
        Whether the default store of cells is on this machine.
    """
    info = info_of(str(settings.get("executor", DEFAULT_EXECUTOR)))
    if not info.shares_memory:
        return ""
    limits = ("cpus",) if "cpus" in settings else ("number", "concurrency")
    numbers = [int(value) for name in limits if isinstance(value := settings.get(name), int)]
    busy = 1 if info.in_process else min(numbers, default=1)
    store = settings.get("store") != "files" and (store_here or is_shaped(settings))
    if busy + store <= cpus:
        return ""
    taken = f"functions take {format_count(busy, 'CPU')}{' and the store another' * store}"
    return f"{taken}, there are {cpus}"


def _kept(cells: Sequence[Cell], only: Mapping[str, Sequence[str]]) -> list[Cell]:
    for name, wanted in only.items():
        texts = dict.fromkeys(str(cell.value(name)) for cell in cells if cell.value(name))
        names = [CELL, *dict.fromkeys(name for cell in cells for name in cell.at)]
        if name not in names:
            raise UsageError(f"--only: there is no axis {name!r}", hint=f"axes: {', '.join(names)}")
        for value in wanted:
            if value not in texts:
                raise UsageError(
                    f"--only {name}={value}: no cell has this value",
                    hint=f"use one of {', '.join(texts)}",
                )
    return [
        cell
        for cell in cells
        if all(str(cell.value(name)) in wanted for name, wanted in only.items())
    ]


def _slug(number: int, text: str) -> str:
    return f"{number:02}-{_SLUG.sub('-', text)}"[:_SLUG_LENGTH].strip("-")
