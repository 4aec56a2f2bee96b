"""A limit, shown to a reader."""

from collections.abc import Iterator
from typing import Final

from serverless_bench.reporters.text_table import table
from serverless_bench.series.limit.result import LevelRow, Limit
from serverless_bench.statistics.knee import LawKnee
from serverless_bench.units import format_count, format_per_s, format_seconds

_WHAT: Final = {
    "rate": "operations per second",
    "number": "functions",
    "connections": "connections of each function",
    "threads": "threads of each function",
}
_HEADING: Final = (
    *("level", "achieved/s", "p50", "p99", "p99 interval", "errors", "never begun"),
    *("queue", "blocks", "verdict"),
)


def lines(limit: Limit, style: str) -> Iterator[str]:
    """Yield the lines of a report, as plain text or as Markdown."""
    align = "r" * (len(_HEADING) - 1) + "l"
    yield from table(_HEADING, [*map(_cells, limit.rows)], style, align=align)
    if style == "markdown":
        yield ""
    yield _headline(limit)
    yield f"ended: {_ending(limit)}"
    yield _knee(limit.knee)
    if any(row.overdue for row in limit.rows if row.verdict != "does not hold"):
        yield (
            "operations never began at levels around the limit: more --number, or --threads with"
            " as many --objects, tell whether that is the store's limit or the functions'"
        )


def _cells(row: LevelRow) -> tuple[str, ...]:
    low = _seconds(row.p99_low_s)
    above = "or more" if row.p99_high_s is None else f"to {_seconds(row.p99_high_s)}"
    return (
        str(row.level),
        format_per_s(row.achieved_per_s).removesuffix("/s"),
        _seconds(row.p50_s),
        _seconds(row.p99_s),
        low if row.p99_low_s is None else f"{low} {above}",
        f"{row.failed / max(row.due, 1):.2%}",
        str(row.overdue),
        _queue(row),
        str(row.blocks),
        row.verdict,
    )


def _queue(row: LevelRow) -> str:
    if not row.growing or row.later_per_s is None:
        return "-" if row.later_per_s is None else "steady"
    return f"grows {format_seconds(max(row.later_per_s, 0.0))}/s"


def _seconds(seconds: float | None) -> str:
    return "not done" if seconds is None else format_seconds(seconds)


def _headline(limit: Limit) -> str:
    what, asked = _WHAT[limit.over], limit.objective
    parts = [] if asked.p99_s is None else [f"p99 {format_seconds(asked.p99_s)}"]
    parts += [] if asked.errors is None else [f"errors {asked.errors:.3%}"]
    objective = " and ".join(parts)
    if limit.ended == "lowest":
        return f"limit: {objective} does not hold even at {limit.lowest} {what}"
    if limit.ended == "highest":
        return f"limit: {objective} holds up to {limit.highest} {what}, the most that was allowed"
    low = f"below {limit.lowest}" if limit.low is None else str(limit.low)
    high = f"above {limit.highest}" if limit.high is None else str(limit.high)
    return (
        f"limit: {objective} holds up to {limit.limit} {what}"
        f" ({limit.confidence:.0%} interval {low} to {high})"
    )


def _ending(limit: Limit) -> str:
    blocks = format_count(limit.blocks, "block")
    spent = f"{blocks} of {format_seconds(limit.block_s)} in {format_seconds(limit.took_s)}"
    why = {
        "precision": f"within {limit.precision:.1%} of the limit",
        "budget": f"the budget is spent, and {limit.precision:.1%} of the limit is not reached",
        "lowest": "the lowest level does not hold",
        "highest": "the highest level holds",
    }
    return f"{why[limit.ended]}; {spent}"


def _knee(knee: LawKnee | None) -> str:
    if knee is None:
        return "knee: too few levels to say"
    most = f"at most {format_per_s(knee.most_per_s)} achieved"
    capped = "not met" if knee.capped is None else f"{knee.capped:.4g}"
    usl = "not met" if knee.usl is None else f"{knee.usl:.4g}"
    return f"knee: min(linear, cap) {capped}; universal scalability law {usl}; {most}"
