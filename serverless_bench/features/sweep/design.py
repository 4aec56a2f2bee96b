"""The study that a sweep is: cells, and the length of runs. Pure.

A sweep runs as a study does (``features.studies``): a pilot of each cell, then rounds that run each
cell once, in random order. Here is the text of that study.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, Final

import orjson

from serverless_bench.base.errors import UsageError
from serverless_bench.base.units import MIB, parse_size
from serverless_bench.executors import info_of
from serverless_bench.features.compare.verdict import MIN_BLOCKS
from serverless_bench.features.studies.definition import Setting, Value
from serverless_bench.features.studies.pilot import PILOT_S
from serverless_bench.job.defaults import DEFAULT_EXECUTOR

JOBS: Final = ("write", "read")
IN_FLIGHT: Final = "in_flight"
SOURCE: Final = "sbench sweep"
"""Source of the study that a sweep is, which no published study has."""
ROUNDS: Final = 3
"""Runs of each cell that the budget is planned for; the rest of it goes into more of them."""
_ENOUGH_S: Final = 2.0
"""Length of runs from which a longer budget gives ``MIN_BLOCKS`` of them, for a comparison."""
_AROUND_S: Final = 0.7
"""Time around a run that the budget allows for: processes, deletion of objects."""
_SHORTEST_S: Final = 0.5
_LONGEST_S: Final = 10.0
_PREPARED_BYTES: Final = 256 * MIB
"""Bytes of the objects that reads of one size share, unless operations in flight need more."""
_MOST_OBJECTS: Final = 1024
"""Objects that reads of one size share at most, likewise: a directory is not read in a round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """What a sweep varies.

    Parameters
    ----------
    jobs
        Commands, of ``JOBS``.
    sizes
        Sizes of objects, with units.
    in_flight
        Operations in flight, of all functions together.
    axes
        Further settings, with their values.
    settings
        Settings of all cells.
    cpus
        CPUs of this machine.
    budget_s
        Time for the whole sweep.
    """

    jobs: Sequence[str]
    sizes: Sequence[str]
    in_flight: Sequence[int]
    axes: Mapping[str, Sequence[Value]] = field(default_factory=dict)
    settings: Mapping[str, Setting] = field(default_factory=dict)
    cpus: int
    budget_s: float

    @property
    def cells(self) -> int:
        """Number of combinations."""
        lengths = map(len, (self.jobs, self.sizes, self.in_flight, *self.axes.values()))
        return prod(lengths)

    @property
    def run_s(self) -> float:
        """Longest run of a cell for which a pilot and enough runs of each fit the budget.

        Enough are ``MIN_BLOCKS`` if they are not too short, and otherwise ``ROUNDS``.

        Raises
        ------
        UsageError
            If the budget is too short.
        """
        run_s = max(self._longest_s(MIN_BLOCKS), min(self._longest_s(ROUNDS), _ENOUGH_S))
        if run_s < _SHORTEST_S:
            least = self.cells * (1 + ROUNDS) * (_AROUND_S + _SHORTEST_S)
            raise UsageError(
                f"`budget` is {self.budget_s:g} s, and {self.cells} cells need {least:.0f} s",
                hint="a longer `budget`, or fewer values",
            )
        return min(run_s, _LONGEST_S)

    def _longest_s(self, rounds: int) -> float:
        of_cell_s = self.budget_s / self.cells - (1 + rounds) * _AROUND_S
        return max(of_cell_s / (1 + rounds), (of_cell_s - PILOT_S) / rounds)

    def shape(self, in_flight: int) -> tuple[int, int]:
        """Return how operations in flight are divided, as functions and threads of each.

        Functions of this machine share its CPUs, so that more of them than CPUs gain nothing;
        elsewhere each has CPU and network of its own, and one thread measures it alone.
        """
        if (threads := self.settings.get("threads")) is not None:
            if not isinstance(threads, int) or threads < 1 or in_flight % threads:
                raise UsageError(
                    f"{in_flight} operations in flight cannot be divided among functions with"
                    f" {threads} threads each",
                    hint="choose multiples",
                )
            return in_flight // threads, threads
        info = info_of(str(self.settings.get("executor", DEFAULT_EXECUTOR)))
        if not info.shares_memory:
            return in_flight, 1
        most = 1 if info.in_process else self.cpus
        functions = max(n for n in range(1, most + 1) if in_flight % n == 0)
        return functions, in_flight // functions

    def text(self) -> str:
        """Return the text of the study.

        Raises
        ------
        UsageError
            If the budget is too short, or operations in flight cannot be divided.
        """
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        axes = [name.replace("_", " ") for name in ("job", "size", IN_FLIGHT, *self.axes)]
        yield from _table(
            "",
            title=f"Throughput and latency by {', '.join(axes[:-1])} and {axes[-1]}",
            question="Which throughput and latency has each combination?",
            null_hypothesis="All combinations are alike.",
            design="full",
        )
        yield from _table("[seed]", source=SOURCE, date="-")
        fixed = {name: value for name, value in self.settings.items() if name != "threads"}
        # In short runs, functions that begin one after the other would lower the rate.
        yield from _table("[settings]", **{"barrier": 1.0, **fixed})
        minutes, seconds = self.budget_s / 60, round(self.run_s, 2)
        yield from _table("[small]", seconds=seconds, minutes=minutes, min_bytes=1, repeats=1)
        yield from _table("[paper]", min_bytes=1)
        yield from _table("[prepare]", number=1, threads=8)
        largest = max(map(parse_size, self.sizes))
        objects = max(*self.in_flight, min(_MOST_OBJECTS, _PREPARED_BYTES // max(largest, 1)))
        yield from _table("[prepare.small]", objects=objects)
        yield from _table("[[axes]]", name="job", setting="workload", values=self.jobs)
        yield from _table("[[axes]]", name="size", values=self.sizes)
        yield from _table("[[axes]]", name=IN_FLIGHT, values=self.in_flight)
        for number in self.in_flight:
            functions, threads = self.shape(number)
            # Without an object for each, threads of a write would be idle.
            level = {"number": functions, "threads": threads, "objects": threads}
            yield from _table(f"[axes.levels.{number}]", **level)
        for name, values in self.axes.items():
            yield from _table("[[axes]]", name=name, values=values)
        yield from _table("[[metrics]]", name="ops_per_s", of="ops_per_s")


def _table(heading: str, /, **entries: Any) -> Iterator[str]:
    yield heading
    for name, value in entries.items():
        # Texts, numbers and lists of JSON are those of TOML.
        yield f'"{name}" = {orjson.dumps(value).decode()}'
