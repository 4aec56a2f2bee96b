"""The row about second requests."""

from serverless_bench.base.units import format_count, format_seconds, format_size
from serverless_bench.metrics.summary import Summary


def hedging(summary: Summary) -> str | None:
    """Return the benefit and the cost of hedging; None for a run without it."""
    hedged, bill = summary.hedging, summary.bill
    if hedged is None:
        return None
    after = hedged.after
    after = after if after.startswith("p") else format_seconds(float(after))
    text = f"{format_count(hedged.hedges, 'second request')} after {after}"
    if not hedged.hedges:
        return text
    cost = "" if bill is None or hedged.cost is None else f", {bill.money(hedged.cost)}"
    worse = "effect on others not known"
    if hedged.made_worse:
        cause = "reads slowed down with them"
        if hedged.displaced > hedged.won:
            throttled = format_count(hedged.displaced, "request")
            cause = f"{throttled} throttled for others that were given up"
        worse = f"made things WORSE: {cause}"
    return (
        f"{text} ({hedged.share or 0:.1%}): {hedged.won:,} won, {hedged.failed:,} failed; {worse};"
        f" p99 {format_seconds(hedged.p99_s)}, without them at least"
        f" {format_seconds(hedged.p99_without_s)}; at least"
        f" {format_size(hedged.wasted_bytes)} wasted{cost}"
    )
