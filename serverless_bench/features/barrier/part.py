"""The figures of the start barrier, and their row."""

from typing import Final

from msgspec import Struct

from serverless_bench.base.units import NS_PER_S, format_count, format_seconds
from serverless_bench.metrics.part import Part, Position, Reduced, Rows
from serverless_bench.metrics.summary import Summary
from serverless_bench.metrics.timeline import counted
from serverless_bench.rundir.tables import ABSENT, Percentiles, percentiles


class BarrierSummary(Struct, frozen=True, kw_only=True):
    """Passage of the functions through the barrier; figures.toml defines each field."""

    expected: int | None
    announced: int | None
    late: int
    wait_s: Percentiles | None


class _BarrierPart(Part[BarrierSummary]):
    name = "barrier"
    after = "clocks"
    option = "barrier"
    in_all = True
    position = Position.PACE

    def compute(self, reduced: Reduced) -> BarrierSummary | None:
        """Return how the functions passed the barrier."""
        run = reduced.run
        functions, opened, counts = run.functions, run.barrier or {}, counted(run)
        waited = counts & (functions["barrier_wait_ns"] != ABSENT)
        return BarrierSummary(
            expected=opened.get("expected"),
            announced=opened.get("announced"),
            late=int((functions["barrier_late"][counts] > 0).sum()),
            wait_s=percentiles(functions["barrier_wait_ns"][waited] / NS_PER_S),
        )

    def rows(self, figures: BarrierSummary, summary: Summary) -> Rows:
        """Yield a row with the functions that were present when it opened, and late."""
        if figures.expected is None:
            text = "never opened by the driver"
        else:
            announced = format_count(figures.announced or 0, "function")
            text = f"opened with {announced} present, {figures.expected} expected"
        if figures.late:
            text += f", {figures.late} late"
        if figures.wait_s:
            text += f"; waited p50 {format_seconds(figures.wait_s['p50'])}"
        yield "barrier", text


PART: Final = _BarrierPart()
