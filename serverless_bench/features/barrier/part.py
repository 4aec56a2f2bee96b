"""The figures of the start barrier, and their row."""

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from serverless_bench.base.units import NS_PER_S, format_count, format_seconds
from serverless_bench.metrics.part import Part, Position, Reduced, Rows
from serverless_bench.metrics.timeline import counted
from serverless_bench.rundir.tables import ABSENT, Percentiles, percentiles

if TYPE_CHECKING:
    from serverless_bench.metrics.summary import Summary


class GateSummary(Struct, frozen=True, kw_only=True):
    """Passage of the functions through the gate; figures.toml defines each field."""

    expected: int | None
    announced: int | None
    late: int
    wait_s: Percentiles | None


class _GatePart(Part[GateSummary]):
    name = "gate"
    after = "clocks"
    option = "gate"
    in_all = True
    position = Position.PACE

    def compute(self, reduced: Reduced) -> GateSummary | None:
        """Return how the functions passed the gate."""
        run = reduced.run
        functions, opened, counts = run.functions, run.gate or {}, counted(run)
        waited = counts & (functions["gate_wait_ns"] != ABSENT)
        return GateSummary(
            expected=opened.get("expected"),
            announced=opened.get("announced"),
            late=int((functions["gate_late"][counts] > 0).sum()),
            wait_s=percentiles(functions["gate_wait_ns"][waited] / NS_PER_S),
        )

    def rows(self, figures: GateSummary, summary: "Summary") -> Rows:
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
        yield "gate", text


PART: Final = _GatePart()
