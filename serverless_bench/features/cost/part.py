"""The part of a report about the costs of a run."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, cast

from serverless_bench.base.units import format_number
from serverless_bench.job.endpoint import is_billed_by_aws
from serverless_bench.job.target import StoreProtocol
from serverless_bench.metrics.part import Part, Position, Reduced, Rows
from serverless_bench.rundir.tables import ABSENT

if TYPE_CHECKING:
    # Only imported for runs that are billed.
    from serverless_bench.features.cost.bill import Bill
    from serverless_bench.features.cost.prices import Prices
    from serverless_bench.metrics.summary import Summary

_NO_DOLLARS: Final = (".amazonaws.com.cn", ".amazonaws.eu")
"""Stores that charge for requests in other currencies."""
_ON_TOP: Final = {
    "nat": "if their VPC leads to the store through a NAT gateway",
    "internet": "for what was read, if the machines are not in AWS",
}
"""Conditions of additional costs, by their names in the bill."""
_UNPRICED: Final = tuple(
    f"{protocol}://" for protocol in StoreProtocol if protocol is not StoreProtocol.S3
)
"""Stores with unknown prices for requests."""


class _CostPart(Part["Bill"]):
    name = "bill"
    after = "bad_ranges"
    position = Position.LAST
    title = "Cost"
    nothing = "No bill: the functions had no memory size, and the bucket was not on AWS."

    def compute(self, reduced: Reduced) -> "Bill | None":
        """Return the bill; None if neither functions nor bucket were on AWS."""
        run = reduced.run
        on_lambda = (run.functions["memory_mib"] != ABSENT).any()
        if not on_lambda and not is_billed_by_aws(run.job.target.endpoint_url):
            return None
        from serverless_bench.features.cost.bill import bill

        return bill(run, given(reduced))

    def brief(self, figures: "Bill", summary: "Summary") -> Rows:
        """Yield the total."""
        yield "cost", f"{figures.money(figures.total)}; {billed(figures, summary)}"

    def absent(self, summary: "Summary") -> Rows:
        """Yield why there is no bill, if that may surprise."""
        if summary.store.startswith(_UNPRICED) or any(
            host in summary.store for host in _NO_DOLLARS
        ):
            yield "bill", "none: the prices that come with sbench are AWS's alone, in dollars"

    def rows(self, figures: "Bill", summary: "Summary") -> Rows:
        """Yield the costs as names and values."""
        money = figures.money
        costs = {
            "Lambda": figures.dollars.compute + figures.dollars.invocations,
            "PUT class": figures.dollars.puts,
            "GET": figures.dollars.gets,
            "control": figures.dollars.control,
            "logs": figures.dollars.logs,
            "transfer": figures.dollars.network,
        }
        parts = ", ".join(f"{name} {money(amount)}" for name, amount in costs.items() if amount)
        yield "bill", f"{money(figures.total)}: {parts}; {billed(figures, summary)}"
        if moved := figures.transferred():
            yield "transfer", moved
        if not figures.requests_exact:
            yield "requests", "at least: a library does not show all, or not all were counted"
        yield "prices", figures.origin()
        if missing := "; ".join(_not_in(figures)):
            yield "not in it", missing
        if figures.estimate is not None and figures.estimate_error is not None:
            yield "estimate", f"{money(figures.estimate)}, error {figures.estimate_error:+.1%}"
        if figures.storage_per_h:
            hour, month = money(figures.storage_per_h), money(figures.storage_per_month)
            yield "storage", f"{hour} an hour, {month} a month if forgotten"


def given(reduced: Reduced) -> "Prices | None":
    """Return the prices that a caller of ``summarize`` gave."""
    return cast("Prices | None", reduced.prices)


def billed(bill: "Bill", summary: "Summary") -> str:
    """Return what a bill is for: where the functions ran, and for how long."""
    where = "" if summary.simulated is None else "simulated, "
    is_outside = bill.internet_bytes is not None
    where += "" if bill.on_aws or is_outside else "as if on AWS Lambda, "
    if not bill.invocations:
        return f"{where}requests only"
    return f"{where}{format_number(bill.gb_s)} GB-s on {bill.architecture}"


def _not_in(bill: "Bill") -> Iterator[str]:
    """Yield the costs that a bill does not include."""
    is_foreign = bill.internet_bytes is not None and not bill.dollars.puts + bill.dollars.gets
    at_most = bill.money(bill.unknown_at_most)
    costs = {
        f"{bill.unknown} without a record, {at_most} at most": bill.unknown,
        "the machines": not bill.invocations,
        "what the store outside of AWS bills": is_foreign,
    }
    yield from (cost for cost, is_missing in costs.items() if is_missing)
    for name, amount in (bill.on_top or {}).items():
        yield f"{bill.money(amount)} {_ON_TOP[name]}"


PART = _CostPart()
