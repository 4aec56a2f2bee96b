"""``--max-cost``: refuse a job that would cost more, and stop one that does."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from serverless_bench.account import read_function
from serverless_bench.cost.bill import outcome_usage
from serverless_bench.cost.forecast import VCPU_MIB, forecast, load_of
from serverless_bench.cost.prices import Prices, load_prices
from serverless_bench.cost.usage import format_money, price
from serverless_bench.errors import CostError, ExecutorError, UsageError
from serverless_bench.executors.base import Live
from serverless_bench.keys import declared_size
from serverless_bench.record import Outcome
from serverless_bench.spec import JobSpec

OnOutcome = Callable[[Outcome], None]
_FREE: Final = frozenset({"inline", "local"})
"""Executors whose functions nobody bills."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostFlags:
    """What the user said about money."""

    limit: float | None
    prices: Prices | None
    """None for those that come with sbench."""
    memory_mib: int | None
    architecture: str | None


def cost_flags(flags: dict[str, Any]) -> CostFlags:
    """Return the flags of ``cost_options``, checked.

    Raises
    ------
    UsageError
        If a flag is wrong, or costs are limited where there are none.
    """
    limit, executor = flags["max_cost"], flags["executor"]
    if executor in _FREE:
        for name in ("max_cost", "memory", "arch"):
            if flags[name] is not None:
                raise UsageError(
                    f"--{name.replace('_', '-')} is for functions that are billed,"
                    f" --executor {executor} costs nothing",
                    hint="--executor lambda or lithops has functions elsewhere",
                )
    if limit is not None and not limit > 0:
        raise UsageError(f"--max-cost must be positive, got {limit:g}")
    check_memory(flags["memory"])
    path = flags["prices"]
    return CostFlags(
        limit=limit,
        prices=None if path is None else load_prices(path),
        memory_mib=flags["memory"],
        architecture=flags["arch"],
    )


def check_memory(mib: int | None) -> None:
    """Refuse a memory size that no function can have.

    Raises
    ------
    UsageError
        If it is not 128 to 10,240 MB (AWS Lambda developer guide, "Lambda quotas").
    """
    if mib is not None and not 128 <= mib <= 10_240:
        raise UsageError(f"--memory must be 128 to 10240 MB, got {mib}")


class Budget:
    """Adds up what a job costs while it runs.

    Parameters
    ----------
    job
        What is to run, complete.
    flags
        Has a limit.
    keys
        Objects to read.

    Raises
    ------
    CostError
        If the job is expected to cost more than the limit.
    UsageError
        If what it reads is of unknown size.
    """

    def __init__(self, job: JobSpec, flags: CostFlags, keys: Sequence[str] = ()) -> None:
        if flags.limit is None:
            raise ValueError("there is no limit")
        self._job = job
        self._limit = flags.limit
        self._prices = flags.prices or load_prices()
        self._memory_mib, self._architecture = _function(job, flags)
        self.estimate = self._estimate(keys)
        """What the whole job is expected to cost, without keeping what it writes."""
        self.spent = 0.0
        """The bill of what has arrived."""
        self._arrived = 0
        if self.estimate > self._limit:
            raise CostError(
                f"this job would cost about {self._money(self.estimate)}, more than --max-cost"
                f" {self._money(self._limit)}; nothing was started",
                hint="sbench plan shows what costs how much",
            )

    def watch(self, live: Live, then: OnOutcome) -> OnOutcome:
        """Return what to call with each outcome; it calls ``then``.

        What is called raises ``CostError`` once the bill of what has arrived, and of as
        many more as are under way, exceeds the limit.
        """

        def on_outcome(outcome: Outcome) -> None:
            then(outcome)
            self._add(outcome)
            flying = max(0, live.started - self._arrived)
            each = max(self.spent / self._arrived, self.estimate / self._job.invocations)
            committed = self.spent + flying * each
            if committed > self._limit:
                raise CostError(
                    f"stopped: {self._arrived} functions cost {self._money(self.spent)}, with the"
                    f" {flying} under way about {self._money(committed)}, more than --max-cost"
                    f" {self._money(self._limit)}",
                    hint="the report has what had arrived; functions under way are billed, too",
                )

        return on_outcome

    def _add(self, outcome: Outcome) -> None:
        self._arrived += 1
        usage = outcome_usage(
            outcome, self._job, memory_mib=self._memory_mib, architecture=self._architecture
        )
        self.spent += price(usage, self._prices).total

    def _estimate(self, keys: Sequence[str]) -> float:
        size = self._job.object_bytes
        if self._job.workload == "read":
            sizes = [declared for key in keys if (declared := declared_size(key)) is not None]
            if not sizes:
                raise UsageError(
                    "--max-cost cannot know what reading these objects costs: their keys do not"
                    " say their size",
                    hint="sbench plan --size estimates it; leave --max-cost out",
                )
            size = sum(sizes) // len(sizes)
        load = load_of(
            self._job,
            object_bytes=size or 1,
            memory_mib=self._memory_mib,
            architecture=self._architecture,
        )
        return 0.0 if load is None else price(forecast(load).usage, self._prices).total

    def _money(self, amount: float) -> str:
        return format_money(amount, self._prices.currency)


def _function(job: JobSpec, flags: CostFlags) -> tuple[int, str]:
    """Return memory and processor: as the user says, as the function has, or the dearer."""
    memory, architecture = flags.memory_mib, flags.architecture
    if job.functions and (memory is None or architecture is None):
        with suppress(ExecutorError):
            setup = read_function(job.functions[0], region=job.target.region)
            memory, architecture = memory or setup.memory_mib, architecture or setup.architecture
    return memory or VCPU_MIB, architecture or "x86_64"
