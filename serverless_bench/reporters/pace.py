"""What an open loop was asked for and what it did, and whether a rate was stable, in words."""

from collections.abc import Iterator

from serverless_bench.analysis.summary import Summary
from serverless_bench.rundir.schema import Stability
from serverless_bench.units import format_count, format_per_s, format_rate, format_seconds


def achieved(summary: Summary) -> Iterator[str]:
    """Yield how far an open loop kept up, for the first line of a report; else nothing."""
    found = summary.latencies
    if not found.open_loop or found.due is None:
        return
    if found.achieved_per_s is not None and found.target_per_s is not None:
        done, asked = format_per_s(found.achieved_per_s), format_per_s(found.target_per_s)
        yield f"achieved {done} of {asked} asked"
    yield f"{found.overdue:,} of {found.due:,} operations due never began"


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
    waits = (row.queueing.percentiles_s["max"] for row in found.by_kind if row.queueing)
    yield (
        f"{found.overdue:,} of {found.due:,} operations that were due never began:"
        f" {format_count(summary.threads, 'thread')} per function could not keep up; they waited"
        f" up to {format_seconds(max(waits))} and more, which is in the response times"
    )


def stability(found: Stability | None) -> str | None:
    """Return how it went with ``--until-stable``."""
    if found is None:
        return None
    if found.half_width is None or found.mean_per_s is None:
        return f"not stable within {found.asked:.1%}: {found.blocks} blocks are too few to say"
    form = format_rate if found.of == "bytes" else format_per_s
    known = (
        f"{form(found.mean_per_s)} within {found.half_width:.1%},"
        f" {found.blocks} blocks of these {format_seconds(found.looked_s)}"
    )
    if found.reached:
        return f"stable within {found.asked:.1%} after {format_seconds(found.after_s)}: {known}"
    may = "" if found.trend is None else f"; over the window it may have moved {found.trend:.0%}"
    return f"not stable within {found.asked:.1%}: {known}{may}"
