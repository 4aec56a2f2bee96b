"""The bill of a run as text."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from serverless_bench.base.units import format_number
from serverless_bench.job.target import StoreProtocol
from serverless_bench.metrics.summary import Summary

if TYPE_CHECKING:
    from serverless_bench.features.cost.bill import Bill

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


def bill_rows(summary: Summary) -> Iterator[tuple[str, str]]:
    """Yield the costs of a run as names and values; empty for runs without costs."""
    bill = summary.bill
    if bill is None:
        if summary.store.startswith(_UNPRICED) or any(
            host in summary.store for host in _NO_DOLLARS
        ):
            yield "bill", "none: the prices that come with sbench are AWS's alone, in dollars"
        return
    money = bill.money
    costs = {
        "Lambda": bill.dollars.compute + bill.dollars.invocations,
        "PUT class": bill.dollars.puts,
        "GET": bill.dollars.gets,
        "control": bill.dollars.control,
        "logs": bill.dollars.logs,
        "transfer": bill.dollars.network,
    }
    parts = ", ".join(f"{name} {money(amount)}" for name, amount in costs.items() if amount)
    yield "bill", f"{money(bill.total)}: {parts}; {billed(summary, bill)}"
    if moved := bill.transferred():
        yield "transfer", moved
    if not bill.requests_exact:
        yield "requests", "at least: a library does not show all, or not all were counted"
    yield "prices", bill.origin()
    if missing := "; ".join(_not_in(bill)):
        yield "not in it", missing
    if bill.estimate is not None and bill.estimate_error is not None:
        yield "estimate", f"{money(bill.estimate)}, error {bill.estimate_error:+.1%}"
    if bill.storage_per_h:
        hour, month = money(bill.storage_per_h), money(bill.storage_per_month)
        yield "storage", f"{hour} an hour, {month} a month if forgotten"


def billed(summary: Summary, bill: "Bill") -> str:
    """Return what a bill is for: where the functions ran, and for how long."""
    where = "" if summary.simulated is None else "simulated, "
    is_outside = bill.internet_bytes is not None
    where += "" if bill.on_aws or is_outside else "as if on AWS Lambda, "
    if not bill.invocations:
        return f"{where}requests only"
    return f"{where}{format_number(bill.gb_s)} GB-s on {bill.architecture}"


def _not_in(bill: "Bill") -> Iterator[str]:
    """Yield the costs that a bill does not include."""
    if bill.unknown:
        yield f"{bill.unknown} without a record, {bill.money(bill.unknown_at_most)} at most"
    if not bill.invocations:
        yield "the machines"
    if bill.internet_bytes is not None and not bill.dollars.puts + bill.dollars.gets:
        yield "what the store outside of AWS bills"
    for name, amount in (bill.on_top or {}).items():
        yield f"{bill.money(amount)} {_ON_TOP[name]}"
