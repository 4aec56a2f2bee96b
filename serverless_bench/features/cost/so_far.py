"""Cost of a run until now, if there are prices."""

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from serverless_bench.features.live.board import BoardTotals
from serverless_bench.job.endpoint import is_billed_by_aws
from serverless_bench.job.spec import JobSpec
from serverless_bench.rundir.record import InvocationRecord, Outcome

if TYPE_CHECKING:
    from serverless_bench.features.cost.prices import Prices


class Spent(NamedTuple):
    """An amount of money."""

    amount: float
    text: str
    """Amount and currency, with a note if the prices are for another region than the run's."""


class CostSoFar:
    """Adds up the cost of functions that have ended, or else the cost of requests.

    Functions are billed if they report their memory, as in ``bill``; their requests are in their
    records. For other functions, requests have a cost if they go to Amazon S3 or the user
    provides prices.

    Parameters
    ----------
    job
        Job of the run.
    prices
        Prices of the user; None for the prices that come with sbench.
    """

    def __init__(self, job: JobSpec, prices: "Prices | None" = None) -> None:
        self._job = job
        self._given = prices
        self._requests_cost = is_billed_by_aws(job.target.endpoint_url) or prices is not None
        self._functions: float | None = None

    # Most runs have no cost and do not load prices.
    @cached_property
    def _prices(self) -> "Prices | None":
        from serverless_bench.features.cost.prices import prices_for

        return prices_for(self._job, self._given)

    def add(self, outcome: Outcome) -> None:
        """Count a function that has ended."""
        result = outcome.result
        if not isinstance(result, InvocationRecord) or result.memory_mib is None:
            return
        if (prices := self._prices) is None:
            return
        from serverless_bench.features.cost.bill import outcome_usage
        from serverless_bench.features.cost.prices import price

        architecture = "arm64" if result.machine in {"aarch64", "arm64"} else "x86_64"
        usage = outcome_usage(
            outcome, self._job, memory_mib=result.memory_mib, architecture=architecture
        )
        self._functions = (self._functions or 0.0) + price(usage, prices).total

    def spent(self, totals: BoardTotals) -> Spent | None:
        """Return the cost until now; None if there are no prices."""
        if self._functions is None and not self._requests_cost:
            return None
        if (prices := self._prices) is None:
            return None
        from serverless_bench.features.cost import prices as costs
        from serverless_bench.features.cost.places import placed

        amount = self._functions
        if amount is None:
            usage = costs.BilledUsage(**placed(self._job), puts=totals.puts, gets=totals.gets)
            amount = costs.price(usage, prices).total
        return Spent(amount, prices.money(amount) + costs.price_note(prices, self._job))
