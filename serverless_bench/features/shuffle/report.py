"""Lines about a shuffle."""

from collections.abc import Iterator

from serverless_bench.base.units import format_count, format_seconds
from serverless_bench.metrics.summary import Summary


def shuffle(summary: Summary) -> Iterator[tuple[str, str]]:
    """Yield a row for both phases, and one for waiting; none for another job."""
    shuffling, bill = summary.shuffle, summary.bill
    if shuffling is None:
        return
    phases = (
        f"{phase.phase} until {format_seconds(phase.end_s)}"
        f" (plan {format_seconds(phase.planned_end_s)}),"
        f" {sum(phase.requests.values()):,} requests (plan {phase.planned_requests:,})"
        for phase in shuffling.phases
    )
    yield "phases", "; ".join((*phases, "each byte counts twice, as written and as read"))
    late_s, dollars = shuffling.waited_for_stragglers_s, shuffling.stragglers_dollars
    cost = "" if bill is None or dollars is None else f", {bill.money(dollars)}"
    text = f"reducers {format_seconds(shuffling.waited_s)} together"
    yield "waited", f"{text}, {format_seconds(late_s)} for the slower half of the mappers{cost}"


def lost(summary: Summary, most: int | None) -> Iterator[str]:
    """Yield a line with the names of up to ``most`` lost partitions, if there are any."""
    shuffling = summary.shuffle
    if shuffling is None or not shuffling.lost:
        return
    names = [
        f"{part.mapper}-{part.reducer} ({part.error or 'not read'})"
        for part in shuffling.lost_partitions[:most]
    ]
    if more := shuffling.lost - len(names):
        names.append(f"{more:,} more")
    count = format_count(shuffling.lost, "partition")
    yield f"lost {count} of {shuffling.partitions:,}, as mapper-reducer: {', '.join(names)}"
