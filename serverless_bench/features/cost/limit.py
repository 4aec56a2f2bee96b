"""Cost settings of the user; ``budget`` enforces them."""

from pathlib import Path

from serverless_bench.driver.task import CostLimit
from serverless_bench.executors import executors_where, info_of
from serverless_bench.job.types import wrong


def cost_limit(
    executor: str, *, max_cost: float | None = None, prices: Path | None = None
) -> CostLimit:
    """Return the checked cost settings of the user.

    Parameters
    ----------
    executor
        Executor of the functions, which may be billed.
    max_cost
        Limit in the currency of the prices; None for no limit.
    prices
        A price file; None for the prices that come with sbench.

    Raises
    ------
    UsageError
        If a value is invalid, or the limit is for an executor without costs.
    """
    if max_cost is not None and not (info := info_of(executor)).billed:
        costs = "is free" if info.shares_memory else "costs what its machines cost"
        billed = " or ".join(executors_where(lambda info: info.billed))
        raise wrong(
            "max_cost",
            f"needs an executor that is billed; `executor` {executor} {costs}",
            hint=f"choose `executor` {billed}; the cost of a bucket on AWS is in the report",
        )
    if max_cost is not None and not max_cost > 0:
        raise wrong("max_cost", f"must be positive, got {max_cost:g}")
    loaded_prices = None
    if prices is not None:
        # Loading prices is needed only for jobs with a price file.
        from serverless_bench.features.cost.prices import load_prices

        loaded_prices = load_prices(prices)
    return CostLimit(limit=max_cost, prices=loaded_prices)
