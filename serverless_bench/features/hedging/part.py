"""The part of a report about second requests."""

from typing import TYPE_CHECKING

from serverless_bench.base.units import format_count, format_seconds, format_size
from serverless_bench.features.cost.part import PART as BILL
from serverless_bench.metrics.part import Part, Reduced, Rows

if TYPE_CHECKING:
    # Only imported for runs with second requests.
    from serverless_bench.features.cost.bill import Bill
    from serverless_bench.features.hedging.figures import HedgingSummary
    from serverless_bench.metrics.summary import Summary


class _HedgingPart(Part["HedgingSummary"]):
    name = "hedging"
    after = "not_shown"
    option = "hedge"

    def compute(self, reduced: Reduced) -> "HedgingSummary | None":
        """Return the totals over second requests."""
        from serverless_bench.features.hedging.figures import hedging_summary

        return hedging_summary(reduced.run, reduced.good, reduced.results_of(BILL))

    def rows(self, figures: "HedgingSummary", summary: "Summary") -> Rows:
        """Yield a row with the benefit and the cost."""
        yield "hedging", _text(figures, BILL.results_in(summary))

    brief = rows


def _text(hedged: "HedgingSummary", bill: "Bill | None") -> str:
    """Return the benefit and the cost of hedging."""
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


PART = _HedgingPart()
