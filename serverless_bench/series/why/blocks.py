"""The blocks of a run with interventions: rates, doses, and elasticities."""

from dataclasses import dataclass
from functools import cached_property
from math import log
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from serverless_bench.analysis.timeline import measured_operations
from serverless_bench.errors import UsageError
from serverless_bench.job.interventions import BASE, Interventions
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import Floats, Ints, Mask, at_percentiles, largest_by, least_by
from serverless_bench.statistics.elasticity import (
    Elasticity,
    block_amounts,
    elasticities,
    log_ratios,
)
from serverless_bench.units import NS_PER_S

_GUARD: Final = 1.2
"""Time at the start of a block that is left out, relative to p90 of the request times."""
_LEAST_BLOCK: Final = 1.7
"""Shortest block, relative to this time."""
_MADE: Final = 0.5
"""Smallest share of a change that has to be carried out."""


def least_block_s(run: Run) -> float:
    """Return the length of the shortest block for requests that take as long as those of a run."""
    times_ns = (run.operations["end_ns"] - run.operations["start_ns"])[measured_operations(run)]
    return _LEAST_BLOCK * _GUARD * float(at_percentiles(times_ns, (90,))[0]) / NS_PER_S


@dataclass(frozen=True, kw_only=True)
class Blocks:
    """The complete blocks of a run, in which all functions were measuring.

    Parameters
    ----------
    run
        A run of a job with interventions.
    plan
        The interventions.
    """

    run: Run
    plan: Interventions

    @cached_property
    def _operations(self) -> tuple[Ints, Ints, Ints, Ints]:
        """Function, start, end and bytes of each operation; 1 instead if none moves bytes."""
        measured = measured_operations(self.run)
        function, start, end, amounts = (
            self.run.operations[name][measured]
            for name in ("function", "start_ns", "end_ns", "bytes")
        )
        return function, start, end, amounts if amounts.any() else np.ones_like(amounts)

    @cached_property
    def _numbers(self) -> range:
        """Numbers of the blocks."""
        function, start, _, _ = self._operations
        begin_ns = int(least_by(function, start, self.run.job.number).max())
        end_ns = int(largest_by(function, start, self.run.job.number).min())
        numbers = range(-(-begin_ns // self.plan.block_ns), end_ns // self.plan.block_ns)
        if len(numbers) < 3:
            raise UsageError("the functions did not run at the same time", hint="a longer --budget")
        return numbers

    @cached_property
    def changes(self) -> NDArray[Any]:
        """The change in each block."""
        return np.array([self.plan.change(number) for number in self._numbers])

    @cached_property
    def guard_s(self) -> float:
        """Time left out at the start of each block, in which requests of the previous block end."""
        return min(least_block_s(self.run), self.plan.block_s) / _LEAST_BLOCK

    @property
    def too_short(self) -> bool:
        """Whether requests took too long for these blocks."""
        return self.plan.block_s < 0.9 * least_block_s(self.run)

    @cached_property
    def rates(self) -> Floats:
        """Bytes per second, or operations if none moves bytes, by block and function."""
        return self._per_s(self._operations[3])

    @cached_property
    def own_share(self) -> float:
        """Share of the threads' time outside of requests, in base blocks."""
        _, start, end, _ = self._operations
        in_flight = self._per_s((end - start) / NS_PER_S)[self.changes == BASE]
        return max(0.0, 1 - float(in_flight.mean()) / self._threads)

    @property
    def _threads(self) -> int:
        return self.run.job.load.threads - self.run.job.idle_threads

    def _per_s(self, amounts: Floats | Ints) -> Floats:
        """Return the amount per second, by block and function, after the guards."""
        length_s, (function, start, end, _) = self.plan.block_s, self._operations
        begins = np.arange(len(self._numbers)) * length_s
        edges = np.sort(np.concatenate((begins + self.guard_s, begins + length_s)))
        origin_ns = self._numbers[0] * self.plan.block_ns
        start_s, end_s = ((instants - origin_ns) / NS_PER_S for instants in (start, end))
        columns = [
            block_amounts(start_s[mine], end_s[mine], amounts[mine], edges)[::2]
            for mine in (function == row for row in range(self.run.job.number))
        ]
        return np.maximum(np.array(columns).T / (length_s - self.guard_s), 0.0)

    @cached_property
    def _counted(self) -> Mask:
        """Whether a function is measured in a block: it is not idle."""
        indexes = self.run.functions["index"].tolist()
        return np.array(
            [
                [not self.plan.is_idle(number, index) for index in indexes]
                for number in self._numbers
            ]
        )

    @cached_property
    def rows(self) -> dict[str, Elasticity]:
        """The elasticities by change."""
        logs = log_ratios(self.changes.tolist(), self.rates, self._counted)
        return elasticities(
            {change: logs[change] for change in self.plan.changes if change in logs},
            {change: log(self._expected(change)) for change in logs},
        )

    def failed(self) -> list[str]:
        """Return the changes that the functions did not carry out."""
        made = {
            # A processor that others use, too, gives less than is asked for.
            "processor": 2 * self._dose("tax") / self.plan.lever,
            "lock": self._dose("hold") / self.plan.lever,
            "thread": float(self.run.functions["extra_operations"].min() > 0),
            "bytes": 2 * (1 - self._bytes_ratio),
            "others": 1 - self._idle_ratio("others"),
            "endpoints": 1 - self._idle_ratio("endpoints"),
        }
        return [name for name in self.plan.changes if not made.get(name, 1) >= _MADE]

    def _expected(self, change: str) -> float:
        """Return the ratio of rates if the changed resource alone bounded the run."""
        lever, counted = self.plan.lever, self._counted[self.changes == change]
        ratios = {
            "thread": 1 + 1 / self._threads,
            "pause": 1 / (1 + lever),
            "processor": 1 - (self._dose("tax") or lever),
            "lock": 1 - (self._dose("hold") or lever),
            "bytes": min(self._bytes_ratio, 1 - lever),
            "prefixes": 0.5,
            "nothing": 1 - lever,
        }
        return ratios.get(change) or 1 / float(counted.mean())

    def _dose(self, name: str) -> float:
        """Return the share that a tax took in all functions together."""
        functions = self.run.functions
        return float(functions[f"{name}_ns"].sum() / max(functions[f"{name}_of_ns"].sum(), 1))

    @cached_property
    def _bytes_ratio(self) -> float:
        """Mean bytes of an operation that starts in a block with ``bytes``, relative to base."""
        _, start, _, amounts = self._operations
        at = start // self.plan.block_ns - self._numbers[0]
        inside = (at >= 0) & (at < len(self.changes))
        changes, sizes = self.changes[at[inside]], amounts[inside]
        if "bytes" not in changes:
            return 1.0
        return float(sizes[changes == "bytes"].mean() / sizes[changes == BASE].mean())

    def _idle_ratio(self, change: str) -> float:
        """Return the rate of idle functions relative to the mean rate of all functions."""
        blocks = self.changes == change
        idle = self.rates[blocks][~self._counted[blocks]]
        return float(idle.mean() / self.rates.mean()) if len(idle) else 0.0
