"""What the user says of costs; ``budget`` holds a job to it."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from serverless_bench.executors import executors_where, info_of
from serverless_bench.job.types import wrong

if TYPE_CHECKING:
    from serverless_bench.aws.cost.prices import Prices


@dataclass(frozen=True, slots=True, kw_only=True)
class CostLimit:
    """What a job may cost, and what decides what it costs."""

    limit: float | None = None
    prices: "Prices | None" = None
    """None for those that come with sbench."""
    spent: float = 0.0
    """Bill of earlier runs, which the limit is for, too."""


def cost_limit(
    executor: str, *, max_cost: float | None = None, prices: Path | None = None
) -> CostLimit:
    """Return what the user says of costs, checked.

    Parameters
    ----------
    executor
        Whose functions are billed, or not.
    max_cost
        In the currency of the prices; None for no limit.
    prices
        A price file; None for the prices that come with sbench.

    Raises
    ------
    UsageError
        If a value is wrong, or costs are limited where there are none.
    """
    if max_cost is not None and not (info := info_of(executor)).billed:
        costs = "nothing" if info.shares_memory else "what its machines cost"
        billed = " or ".join(executors_where(lambda info: info.billed))
        raise wrong(
            "max_cost",
            f"is for functions that are billed, `executor` {executor} costs {costs}",
            hint=f"`executor` {billed} has functions elsewhere; what a bucket on AWS costs"
            " is in the report",
        )
    if max_cost is not None and not max_cost > 0:
        raise wrong("max_cost", f"must be positive, got {max_cost:g}")
    known = None
    if prices is not None:
        # Few jobs have prices of their own, and most have none.
        from serverless_bench.aws.cost.prices import load_prices  # noqa: PLC0415

        known = load_prices(prices)
    return CostLimit(limit=max_cost, prices=known)
