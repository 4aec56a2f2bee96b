"""The blocks of a run with interventions: rates, doses, and elasticities."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import log
from typing import Final

import numpy as np

from serverless_bench.errors import UsageError
from serverless_bench.job.interventions import BASE, Interventions
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import Floats, Mask, at_percentiles
from serverless_bench.statistics.elasticity import (
    Elasticity,
    block_amounts,
    elasticities,
    log_ratios,
)
from serverless_bench.units import NS_PER_S

GUARD: Final = 1.2
"""Time at the start of a block that is left out, relative to p90 of the request times."""
LEAST_BLOCK: Final = 1.7
"""Shortest block, relative to this time."""
_MADE: Final = 0.5
"""Smallest share of a change that has to be carried out."""


@dataclass(frozen=True, kw_only=True)
class Blocks:
    """The complete blocks of a run, in which all functions were measuring.

    Parameters
    ----------
    run
        A run of a job with interventions.
    """

    run: Run

    @cached_property
    def plan(self) -> Interventions:
        """The interventions of the job."""
        plan = self.run.job.interventions
        if plan is None:
            raise UsageError(f"{self.run.path} is not a run of `sbench why`")
        return plan

    @cached_property
    def _operations(self) -> list[tuple[Floats, Floats, Floats]]:
        """Starts and ends in seconds since the first block, and bytes, by function."""
        table = self.run.operations
        measured = ~table["warmup"].astype(bool)
        origin_ns = self._numbers[0] * self.plan.block_ns
        columns = [
            (table[name][measured] - origin) / scale
            for name, origin, scale in (
                ("start_ns", origin_ns, NS_PER_S),
                ("end_ns", origin_ns, NS_PER_S),
                ("bytes", 0, 1),
            )
        ]
        owners = table["function"][measured]
        starts, ends, amounts = columns
        if not amounts.any():
            amounts = np.ones_like(amounts)
        return [
            (starts[mine], ends[mine], amounts[mine])
            for mine in (owners == row for row in range(self.functions))
        ]

    @cached_property
    def _numbers(self) -> range:
        """Numbers of the blocks."""
        table = self.run.operations
        measured = ~table["warmup"].astype(bool)
        starts, owners = table["start_ns"][measured], table["function"][measured]
        own = [starts[owners == row] for row in range(self.functions)]
        if not all(map(len, own)):
            raise UsageError("a function has no operation", hint=f"sbench report {self.run.path}")
        begin_ns, end_ns = max(map(min, own)), min(map(max, own))
        block_ns = self.plan.block_ns
        numbers = range(-(-int(begin_ns) // block_ns), int(end_ns) // block_ns)
        if len(numbers) < 3:
            raise UsageError("the functions did not run at the same time", hint="a longer --budget")
        return numbers

    @property
    def functions(self) -> int:
        """Number of functions."""
        return self.run.job.number

    @cached_property
    def changes(self) -> list[str]:
        """The change in each block."""
        return [self.plan.change(number) for number in self._numbers]

    @cached_property
    def p90_s(self) -> float:
        """Time that nine of ten requests take at most."""
        times_s = np.concatenate([end - start for start, end, _ in self._operations])
        return float(at_percentiles(times_s, (90,))[0])

    @property
    def guard_s(self) -> float:
        """Time left out at the start of each block, in which requests of the previous block end."""
        return min(GUARD * self.p90_s, self.plan.block_s / LEAST_BLOCK)

    @property
    def too_short(self) -> bool:
        """Whether requests took too long for these blocks."""
        return self.plan.block_s < 0.9 * LEAST_BLOCK * GUARD * self.p90_s

    @cached_property
    def rates(self) -> Floats:
        """Bytes per second, or operations if none moves bytes, by block and function."""
        return self._per_block(lambda _, __, amounts: amounts)

    @cached_property
    def own_share(self) -> float:
        """Share of the threads' time outside of requests, in base blocks."""
        job = self.run.job
        in_flight = self._per_block(lambda starts, ends, _: ends - starts)
        base = in_flight[[change == BASE for change in self.changes]]
        return max(0.0, 1 - float(base.mean()) / (job.load.threads - job.idle_threads))

    def _per_block(self, amount_of: Callable[[Floats, Floats, Floats], Floats]) -> Floats:
        length_s = self.plan.block_s
        begins = np.arange(len(self._numbers)) * length_s
        edges = np.sort(np.concatenate((begins + self.guard_s, begins + length_s)))
        columns = [
            block_amounts(starts, ends, amount_of(starts, ends, amounts), edges)[::2]
            for starts, ends, amounts in self._operations
        ]
        return np.maximum(np.array(columns).T / (length_s - self.guard_s), 0.0)

    @cached_property
    def _counted(self) -> Mask:
        """Whether a function is measured in a block: it is not idle."""
        indexes = self.run.functions["index"].tolist()
        return np.array(
            [
                [not self.plan.is_idle(change, number, index) for index in indexes]
                for number, change in zip(self._numbers, self.changes, strict=True)
            ]
        )

    def rows(self) -> dict[str, Elasticity]:
        """Return the elasticities by change."""
        logs = log_ratios(self.changes, self.rates, self._counted)
        return elasticities(logs, {change: self._expected(change) for change in logs})

    def failed(self) -> list[str]:
        """Return the changes that the functions did not carry out."""
        made = {
            "processor": self._dose("tax_ns", "tax_of_ns") / self.plan.lever,
            "lock": self._dose("hold_ns", "hold_of_ns") / self.plan.lever,
            "thread": float(self.run.functions["extra_operations"].min() > 0),
            "bytes": 2 * (1 - self._bytes_ratio),
            **{change: 1 - self._idle_ratio(change) for change in ("others", "endpoints")},
        }
        least = {"processor": _MADE / 2}
        return [
            change
            for change in self.plan.changes
            if change in made and not made[change] >= least.get(change, _MADE)
        ]

    def _expected(self, change: str) -> float:
        """Return the logarithm of the effect if the changed resource alone bounded the run."""
        job, lever, counted = self.run.job, self.plan.lever, self._counted
        blocks = [name == change for name in self.changes]
        ratios = {
            "thread": 1 + 1 / (job.load.threads - job.idle_threads),
            "pause": 1 / (1 + lever),
            "processor": 1 - (self._dose("tax_ns", "tax_of_ns") or lever),
            "lock": 1 - (self._dose("hold_ns", "hold_of_ns") or lever),
            "others": 1 / float(counted[blocks].mean()),
            "endpoints": 1 / float(counted[blocks].mean()),
            "bytes": min(self._bytes_ratio, 1 - lever),
            "prefixes": 0.5,
            "nothing": 1 - lever,
        }
        return log(ratios[change])

    def _dose(self, taken: str, of: str) -> float:
        """Return the share that a tax took in all functions together."""
        functions = self.run.functions
        return float(functions[taken].sum() / max(functions[of].sum(), 1))

    @cached_property
    def _bytes_ratio(self) -> float:
        """Mean bytes of an operation that starts in a block with ``bytes``, relative to base."""
        changes = np.array(self.changes)
        sums = dict.fromkeys(("bytes", BASE), (0.0, 1e-9))
        for starts, _, amounts in self._operations:
            at = np.floor(starts / self.plan.block_s).astype(int)
            inside = (at >= 0) & (at < len(changes))
            own, sizes = changes[at[inside]], amounts[inside]
            for change, (total, count) in sums.items():
                mine = own == change
                sums[change] = total + float(sizes[mine].sum()), count + int(mine.sum())
        means = {change: total / count for change, (total, count) in sums.items()}
        return means["bytes"] / means[BASE] if means[BASE] else 1.0

    def _idle_ratio(self, change: str) -> float:
        """Return the rate of idle functions relative to the mean rate of all functions."""
        blocks = np.array([name == change for name in self.changes])
        idle = self.rates[blocks][~self._counted[blocks]]
        return float(idle.mean() / self.rates.mean()) if len(idle) else 0.0
