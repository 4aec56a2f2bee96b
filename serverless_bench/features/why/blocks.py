"""The blocks of a run with interventions: rates, doses, and elasticities."""

from dataclasses import dataclass
from functools import cached_property
from math import ceil, log
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from serverless_bench.base.units import NS_PER_S
from serverless_bench.features.bottleneck.causes import overlapping
from serverless_bench.features.why.elasticity import Elasticity, elasticities, log_ratios
from serverless_bench.features.why.interventions import BASE, LEVER, Interventions
from serverless_bench.job.abilities import RunsCode
from serverless_bench.job.keys import folder_of, parse_layout
from serverless_bench.job.operations import OperationKind
from serverless_bench.metrics.spreading import spread
from serverless_bench.metrics.timeline import measured_operations
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import (
    Floats,
    Ints,
    Mask,
    at_percentiles,
    is_text,
    largest_by,
    least_by,
)

_GUARD: Final = 1.2
"""Time at the start of a block that is left out, relative to p90 of the request times."""
_LEAST_BLOCK: Final = 1.7
"""Shortest block, relative to this time."""
_LEAST_GAPS: Final = 10
"""Shortest block, relative to a thread's mean time between two requests: the number of requests in
a block is whole, which is noise where threads do other things most of the time."""
_PARTS: Final = 20
"""Parts of a block; the time left out is a whole number of them."""
_MADE: Final = 0.5
"""Smallest share of a change that has to be carried out."""
_FAILED: Final = 0.05
"""Share of operations that may fail beyond those in unchanged blocks."""
_OPERATION: Final = 1_000_000
"""Amount of an operation if none moves bytes, large enough to be spread over its time."""


def least_block_s(run: Run) -> float:
    """Return the length of the shortest block for a job with requests like those of a run."""
    start, end = _settled(run)
    # The last requests may take much longer than the run.
    busy_ns = int((np.minimum(end, start.max()) - start).sum())
    all_ns = run.job.number * run.job.load.threads * int(start.max() - start.min())
    gap_s = (all_ns - busy_ns) / len(start) / NS_PER_S
    return max(_LEAST_BLOCK * _least_guard_s(run), _LEAST_GAPS * gap_s)


def _least_guard_s(run: Run) -> float:
    start, end = _settled(run)
    return _GUARD * float(at_percentiles(end - start, (90,))[0]) / NS_PER_S


def _settled(run: Run) -> tuple[Ints, Ints]:
    """Return start and end of operations without the first second: connections open, credit."""
    start, end = (run.operations[name][measured_operations(run)] for name in ("start_ns", "end_ns"))
    settled = start >= min(start.min() + NS_PER_S, start.max())
    return start[settled], end[settled]


@dataclass(frozen=True, kw_only=True)
class Blocks:
    """The complete blocks of a run, in which all functions were measuring.

    Arrays by column have a column for each function. If prefixes are changed, the columns after
    them are the same functions with the other half of the prefixes.

    Parameters
    ----------
    run
        A run of a job with interventions.
    plan
        The interventions.
    """

    run: Run
    plan: Interventions

    @property
    def _sides(self) -> int:
        return 2 if "prefixes" in self.plan.changes else 1

    @cached_property
    def _operations(self) -> tuple[Ints, Ints, Ints, Ints]:
        """Column, start, end and amount of each operation."""
        measured = measured_operations(self.run)
        column, start, end, amounts = (
            self.run.operations[name][measured]
            for name in ("function", "start_ns", "end_ns", "bytes")
        )
        # A run that is loaded without keys has its rates in the columns of the functions.
        if self._sides > 1 and "key" in self.run.operations:
            folders, keys = parse_layout(self.run.job.load.layout), self.run.operations["key"]
            sides = [folder_of(key, folders or 1) % 2 for key in keys[measured]]
            column = column + self.run.job.number * np.array(sides)
        if not self.moves_bytes:
            amounts = np.full_like(amounts, _OPERATION)
        return column, start, end, amounts

    @cached_property
    def moves_bytes(self) -> bool:
        """Whether any operation moves bytes; otherwise operations are counted."""
        return bool(self.run.operations["bytes"][measured_operations(self.run)].any())

    @cached_property
    def numbers(self) -> range:
        """Numbers of the blocks."""
        (column, start, _, _), number = self._operations, self.run.job.number
        begin_ns = int(least_by(column % number, start, number).max())
        end_ns = int(largest_by(column % number, start, number).min())
        return range(-(-begin_ns // self.plan.block_ns), end_ns // self.plan.block_ns)

    @cached_property
    def changes(self) -> NDArray[Any]:
        """The change in each block."""
        return np.array([self.plan.change(number) for number in self.numbers])

    @property
    def too_short(self) -> bool:
        """Whether requests took too long for these blocks."""
        return self.plan.block_s < 0.9 * _LEAST_BLOCK * _least_guard_s(self.run)

    @cached_property
    def _guard(self) -> int:
        """Parts left out at the start of each block, in which earlier requests end."""
        return ceil(_PARTS * min(_least_guard_s(self.run) / self.plan.block_s, 1 / _LEAST_BLOCK))

    @property
    def guard_s(self) -> float:
        """Time left out at the start of each block."""
        return self.plan.block_s * self._guard / _PARTS

    @cached_property
    def rates(self) -> Floats:
        """Bytes per second, or operations if none moves bytes, by block and column."""
        return self._per_s(self._operations[3]) / (1 if self.moves_bytes else _OPERATION)

    @cached_property
    def own_share(self) -> float | None:
        """Share of the threads' time outside of requests, in base blocks.

        It is None if a user's function made requests at the same time: the number of its threads is
        unknown.
        """
        if isinstance(self.run.job.declared, RunsCode):
            requests = ~is_text(self.run.operations["kind"], OperationKind.CALL)
            if overlapping(self.run, measured_operations(self.run) & requests).any():
                return None
        _, start, end, _ = self._operations
        in_flight = self._per_s(end - start)[self.changes == BASE].sum(axis=1) / NS_PER_S
        return max(0.0, 1 - float(in_flight.mean()) / (self._threads * self.run.job.number))

    @property
    def _threads(self) -> int:
        return self.run.job.load.threads - self.run.job.idle_threads

    def _per_s(self, amounts: Ints) -> Floats:
        """Return the amount per second, by block and column, after the guards."""
        column, start, end, _ = self._operations
        first, part_ns = int(start.min()) // self.plan.block_ns, self.plan.block_ns // _PARTS
        parts = (int(end.max()) // self.plan.block_ns + 1 - first) * _PARTS
        # The columns lie one after another on a single time axis.
        cells = np.zeros(self._sides * self.run.job.number * parts, dtype=np.int64)
        begin = start - first * self.plan.block_ns + column * parts * part_ns
        spread(cells, begin, end - start, amounts, part_ns)
        blocks = cells.reshape(-1, parts // _PARTS, _PARTS)[:, np.array(self.numbers) - first]
        moved = blocks[:, :, self._guard :].sum(axis=2).T
        return np.asarray(moved / (self.plan.block_s - self.guard_s), dtype=np.float64)

    @cached_property
    def _counted(self) -> Mask:
        """Whether a column is measured in a block: it is not idle."""
        indexes = self.run.functions["index"][: self.run.job.number].tolist()
        columns = [(index, side) for side in range(self._sides) for index in indexes]
        return np.array(
            [
                [not self.plan.is_idle(block, *column) for column in columns]
                for block in self.numbers
            ]
        )

    @cached_property
    def rows(self) -> dict[str, Elasticity]:
        """The elasticities by change, without changes that failed."""
        logs = log_ratios(self.changes.tolist(), self.rates, self._counted)
        made = [change for change in self.plan.changes if change in logs]
        made = [change for change in made if change not in self.failed()]
        return elasticities(
            {change: logs[change] for change in made},
            {change: log(self._expected(change)) for change in made},
        )

    @cached_property
    def _failures(self) -> dict[str, float]:
        """Share of operations that failed, by the change in whose blocks they started."""
        operations, block_ns = self.run.operations, self.plan.block_ns
        measured = measured_operations(self.run)
        blocks = (operations["start_ns"][measured] // block_ns).tolist()
        changes = np.array([*map(self.plan.change, blocks)])
        bad = ~is_text(operations["error"][measured], None)
        return {change: float(bad[changes == change].mean()) for change in {*changes.tolist()}}

    def failed(self) -> list[str]:
        """Return the changes that the functions did not carry out, or whose operations failed."""
        made = {
            # A CPU that others use, too, gives less than is asked for.
            "cpu": 2 * self._dose("tax") / LEVER,
            "lock": self._dose("hold") / LEVER,
            "thread": float(self.run.functions["extra_operations"].min() > 0),
            "bytes": 2 * (1 - self._bytes_ratio),
        }
        made |= {name: 1 - self._idle_ratio(name) for name in ("others", "endpoints", "prefixes")}
        usual = self._failures.get(BASE, 0.0) + _FAILED
        return [
            name
            for name in self.plan.changes
            if not made.get(name, 1) >= _MADE or self._failures.get(name, 0.0) > usual
        ]

    def _expected(self, change: str) -> float:
        """Return the ratio of rates if the changed resource alone bounded the run."""
        ratios = {
            "thread": 1 + self.plan.extra_threads(self.run.job.load.threads) / self._threads,
            "pause": 1 / (1 + LEVER),
            "cpu": 1 - (self._dose("tax") or LEVER),
            "lock": 1 - (self._dose("hold") or LEVER),
            "bytes": min(self._bytes_ratio, 1 - LEVER),
            "nothing": 1 - LEVER,
        }
        base = self.rates[self.changes == BASE].mean(axis=0)
        measured = self._counted[self.changes == change] @ base
        return ratios.get(change) or float(base.sum() / measured.mean())

    def _dose(self, name: str) -> float:
        """Return the share that a tax took in all functions together."""
        functions = self.run.functions
        return float(functions[f"{name}_ns"].sum() / max(functions[f"{name}_of_ns"].sum(), 1))

    @cached_property
    def _bytes_ratio(self) -> float:
        """Mean bytes of an operation that starts in a block with ``bytes``, relative to base."""
        if "bytes" not in self.changes:
            return 1.0
        _, start, _, amounts = self._operations
        changes = np.array([*map(self.plan.change, (start // self.plan.block_ns).tolist())])
        return float(amounts[changes == "bytes"].mean() / amounts[changes == BASE].mean())

    def _idle_ratio(self, change: str) -> float:
        """Return the rate of what is idle relative to the mean rate."""
        blocks = self.changes == change
        idle = self.rates[blocks][~self._counted[blocks]]
        return float(idle.mean() / self.rates.mean()) if len(idle) else 0.0
