"""What an open loop was asked for and what it did, in words."""

from collections.abc import Iterator

from serverless_bench.analysis.summary import Summary
from serverless_bench.units import format_count, format_per_s, format_seconds


def counts(summary: Summary) -> Iterator[str]:
    """Yield the counts for the first line of a report; nothing of a closed loop."""
    found = summary.latencies
    if not found.open_loop or found.due is None:
        return
    text = f"{found.due:,} due, {found.begun:,} begun"
    if found.overdue:
        text += f", {found.overdue:,} never begun"
    if found.achieved_per_s is not None and found.target_per_s is not None:
        text += f" ({format_per_s(found.achieved_per_s)} of {format_per_s(found.target_per_s)})"
    yield text


def rates(summary: Summary) -> str:
    """Return the three rates of an open loop next to each other."""
    found = summary.latencies
    named = {
        "asked": found.target_per_s,
        "offered": found.offered_per_s,
        "achieved": found.achieved_per_s,
    }
    return ", ".join(
        f"{name} {format_per_s(rate)}" for name, rate in named.items() if rate is not None
    )


def overdue(summary: Summary) -> Iterator[str]:
    """Yield what is to be said when an open loop did not keep up."""
    found = summary.latencies
    if not found.overdue:
        return
    threads = f"{format_count(summary.threads, 'thread')} per function"
    waits = (row.queueing.percentiles_s["max"] for row in found.by_kind if row.queueing)
    yield (
        f"{found.overdue:,} of {found.due:,} operations that were due never began:"
        f" {threads} could not keep up; they waited up to {format_seconds(max(waits))} and more,"
        " which is in the response times"
    )
