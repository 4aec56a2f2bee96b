"""The row about second requests for slow reads."""

from serverless_bench.analysis.summary import Summary
from serverless_bench.units import format_count, format_seconds, format_size


def hedging(summary: Summary) -> str | None:
    """Return the benefit and the cost of hedging; None for a run without it."""
    hedged = summary.hedging
    if hedged is None:
        return None
    is_percentile = hedged.after.startswith("p")
    after = hedged.after if is_percentile else format_seconds(float(hedged.after))
    text = f"{format_count(hedged.hedges, 'second request')} after {after}"
    if not hedged.hedges:
        return text
    text += f" ({hedged.share or 0:.1%}): {hedged.won:,} won, {hedged.failed:,} failed"
    text += f", at least {format_size(hedged.wasted_bytes)} wasted"
    if summary.bill is not None and hedged.cost is not None:
        text += f", {summary.bill.money(hedged.cost)}"
    p99, without = format_seconds(hedged.p99_s), format_seconds(hedged.p99_without_s)
    text += f"; p99 {p99}, without them at least {without}; "
    if hedged.made_worse:
        throttled = format_count(hedged.displaced, "request")
        return f"{text}made things WORSE: {throttled} throttled in favour of requests given up"
    return f"{text}whether they made others slower is not known"
