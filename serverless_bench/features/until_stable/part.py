"""The figures of a run that may end when it is stable, and their row."""

from typing import Final

from serverless_bench.base.units import format_per_s, format_rate, format_seconds
from serverless_bench.metrics.part import Part, Position, Reduced, Rows
from serverless_bench.metrics.summary import Summary
from serverless_bench.rundir.schema import Stability


class _StabilityPart(Part[Stability]):
    name = "stability"
    after = "not_shown"
    option = "until_stable"
    in_all = True
    position = Position.PACE

    def compute(self, reduced: Reduced) -> Stability | None:
        """Return the result that the driver saved, if it did."""
        return reduced.run.stability

    def rows(self, figures: Stability, summary: Summary) -> Rows:
        """Yield a row with the result."""
        yield "stability", _text(figures)

    brief = rows


PART: Final = _StabilityPart()


def _text(result: Stability) -> str:
    if result.half_width is None or result.mean_per_s is None:
        return f"not stable within {result.asked:.1%}: {result.blocks} blocks are too few"
    form = format_rate if result.of == "bytes" else format_per_s
    estimate = (
        f"{form(result.mean_per_s)} within {result.half_width:.1%},"
        f" {result.blocks} blocks of these {format_seconds(result.looked_s)}"
    )
    if result.reached:
        return (
            f"stable within {result.asked:.1%} after {format_seconds(result.after_s)}: {estimate}"
        )
    trend = (
        ""
        if result.trend is None
        else f"; it may have changed by {result.trend:.0%} over the window"
    )
    return f"not stable within {result.asked:.1%}: {estimate}{trend}"
