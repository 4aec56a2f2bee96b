"""The part of a report about a shuffle."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from serverless_bench.base.units import format_count, format_seconds
from serverless_bench.features.cost.part import PART as BILL
from serverless_bench.features.cost.part import given
from serverless_bench.features.shuffle.figures import Shuffling, shuffling
from serverless_bench.metrics.part import Part, Reduced, Rows, Section

if TYPE_CHECKING:
    from serverless_bench.metrics.summary import Summary


class _ShufflePart(Part[Shuffling]):
    name = "shuffle"
    after = "stopped"
    displaces = False

    def compute(self, reduced: Reduced) -> Shuffling | None:
        """Return the results of both phases."""
        bill, prices = reduced.results_of(BILL), given(reduced)
        return shuffling(reduced.run, reduced.measured, reduced.good, bill, prices)

    def brief(self, figures: Shuffling, summary: "Summary") -> Rows:
        """Yield a row for both phases, and one for waiting."""
        bill = BILL.results_in(summary)
        phases = (
            f"{phase.phase} until {format_seconds(phase.end_s)}"
            f" (plan {format_seconds(phase.planned_end_s)}),"
            f" {sum(phase.requests.values()):,} requests (plan {phase.planned_requests:,})"
            for phase in figures.phases
        )
        yield "phases", "; ".join((*phases, "each byte counts twice, as written and as read"))
        late_s, dollars = figures.waited_for_stragglers_s, figures.stragglers_dollars
        cost = "" if bill is None or dollars is None else f", {bill.money(dollars)}"
        text = (
            f"{format_seconds(figures.waited_s)}, of which {format_seconds(late_s)} on stragglers"
        )
        yield "reducer wait", f"{text}{cost}"

    def tables(self, figures: Shuffling, summary: "Summary") -> Iterable[Section]:
        """Yield a table with a row for each phase."""
        bill = BILL.results_in(summary)
        header = ("phase", "ended", "planned", "stragglers", "requests", "planned", "503s", "cost")
        yield Section(
            title="phases",
            header=header,
            rows=tuple(
                (
                    phase.phase,
                    format_seconds(phase.end_s),
                    format_seconds(phase.planned_end_s),
                    format_seconds(phase.straggler_s),
                    ", ".join(f"{count:,} {name}" for name, count in phase.requests.items()),
                    f"{phase.planned_requests:,}",
                    f"{phase.throttled:,}",
                    "-" if bill is None or phase.dollars is None else bill.money(phase.dollars),
                )
                for phase in figures.phases
            ),
            names=1,
        )

    def missing(self, figures: Shuffling, most: int | None) -> Iterable[str]:
        """Yield a line with the names of lost partitions, if there are any."""
        if not figures.lost:
            return
        names = [
            f"{part.mapper}-{part.reducer} ({part.error or 'not read'})"
            for part in figures.lost_partitions[:most]
        ]
        if more := figures.lost - len(names):
            names.append(f"{more:,} more")
        count = format_count(figures.lost, "partition")
        yield f"lost {count} of {figures.partitions:,}, as mapper-reducer: {', '.join(names)}"


PART = _ShufflePart()
