"""What a run has cost until now, where there are prices."""

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from serverless_bench.job.endpoint import is_billed_by_aws
from serverless_bench.job.spec import JobSpec
from serverless_bench.rundir.record import InvocationRecord, Outcome
from serverless_bench.worker.live_board import BoardTotals

if TYPE_CHECKING:
    from serverless_bench.aws.cost.prices import Prices


class Spent(NamedTuple):
    """An amount of money."""

    amount: float
    text: str
    """With its currency, and a note if the prices are of another region than the run."""


class CostSoFar:
    """Adds up what functions cost that have ended, or else what requests have.

    Functions are billed that say what memory they were given, as in ``aws.cost.bill``; their
    requests are in their records. Of others requests cost something if they go to Amazon
    S3, or the user has brought prices.

    Parameters
    ----------
    job
        What runs.
    prices
        Of the user's; None for those that come with sbench.
    """

    def __init__(self, job: JobSpec, prices: "Prices | None" = None) -> None:
        self._job = job
        self._given = prices
        self._requests_cost = is_billed_by_aws(job.target.endpoint_url) or prices is not None
        self._functions: float | None = None

    # Most runs cost nothing: who does not need prices does not load them.
    @cached_property
    def _prices(self) -> "Prices | None":
        from serverless_bench.aws.cost.prices import prices_for  # noqa: PLC0415

        return prices_for(self._job, self._given)

    def add(self, outcome: Outcome) -> None:
        """Count a function that has come to its end."""
        result = outcome.result
        if not isinstance(result, InvocationRecord) or result.memory_mib is None:
            return
        if (prices := self._prices) is None:
            return
        from serverless_bench.aws.cost.bill import outcome_usage  # noqa: PLC0415
        from serverless_bench.aws.cost.prices import price  # noqa: PLC0415

        architecture = "arm64" if result.machine in {"aarch64", "arm64"} else "x86_64"
        usage = outcome_usage(
            outcome, self._job, memory_mib=result.memory_mib, architecture=architecture
        )
        self._functions = (self._functions or 0.0) + price(usage, prices).total

    def spent(self, totals: BoardTotals) -> Spent | None:
        """Return what has been spent; None where nobody has prices."""
        if self._functions is None and not self._requests_cost:
            return None
        if (prices := self._prices) is None:
            return None
        from serverless_bench.aws.cost import prices as costs  # noqa: PLC0415
        from serverless_bench.aws.cost.places import placed  # noqa: PLC0415

        amount = self._functions
        if amount is None:
            usage = costs.BilledUsage(**placed(self._job), puts=totals.puts, gets=totals.gets)
            amount = costs.price(usage, prices).total
        note = costs.price_note(prices, self._job)
        return Spent(amount, prices.money(amount) + note)
