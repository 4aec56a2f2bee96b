"""The result of a search as data and as text: tested levels, the limit, the knee. Pure."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from math import ceil, floor, sqrt
from typing import Any, Final

import numpy as np

from serverless_bench.base.units import format_count, format_number, format_per_s, format_seconds
from serverless_bench.features.answers.answer import Drawing, Mark
from serverless_bench.features.limit.block import Block, Objective
from serverless_bench.features.limit.crossing import Crossing, breaks_alike
from serverless_bench.features.limit.search import CONFIDENCE, Search
from serverless_bench.features.scale.scaling import LawKnee, knee_of_laws
from serverless_bench.metrics.display import Printed
from serverless_bench.report.text_table import table
from serverless_bench.rundir.tables import Floats, rank_of

_Z: Final = 1.96
"""Standard errors on either side of an interval with ``CONFIDENCE``."""
_NONE: Final = {"none": "holds at no level", "undecided": "is not shown to hold at any level"}
_AS_FAST: Final = 1.1
"""Maximum slowdown of operations on average at which the store is not considered the cause."""
_BUSY: Final = 0.8
"""Minimum share of the threads' time in operations at which the threads are the limit."""
_UNSEEN: Final = 3.0
"""Expected stalls of a time that has one with 95 %."""
_SURE: Final = 1 - (1 - CONFIDENCE) / 2
_CLEAN: Final = 2.28
"""Expected bad operations needed to show that a level without any holds: README.md."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelRow:
    """All blocks of a level."""

    level: int
    blocks: int
    due: int
    failed: int
    dropped: int
    achieved_per_s: float
    p50_s: float | None
    p99_s: float | None
    """p99 of all operations; None if more than 1 % failed or did not start."""
    p99_low_s: float | None
    p99_high_s: float | None
    errors: float
    """Share of operations that failed or did not start."""
    growing: int
    """Number of blocks with a growing queue that would break the objective in a longer run."""
    later_per_s: float | None
    """Increase of delay in seconds per second; None in a closed loop."""
    broken: bool
    """Whether the operations at or below the level break the objective together."""
    broken_below: int | None
    """Highest lower level with operations that break the objective, unless the level's own do."""
    holds: float
    """Probability that the limit is at or above this level."""
    together: float
    """Probability that the blocks at or below the level, or at or below a higher one, hold the
    objective together; 0 if they are too few to have met a stall."""

    @property
    def verdict(self) -> str:
        """Verdict on the level: the objective holds, does not hold, or is undecided."""
        if min(self.holds, self.together) >= _SURE and not self.broken:
            return "holds"
        return "does not hold" if self.holds <= 1 - _SURE else "undecided"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit(Printed):
    """The highest level that holds an objective; ``print`` shows it like ``sbench limit``.

    Examples
    --------
    >>> found = sbench.limit(writing, "limit", p99_s=5.0, budget_s=5.0, resume=True, **quick)
    >>> str(found).splitlines()[0].split()[:3]
    ['level', 'achieved/s', 'p50']
    """

    over: str
    objective: Objective
    limit: int | None
    """None if it is outside of the allowed levels."""
    low: int | None
    high: int | None
    """Upper bound of the interval; None if no tested level bounds it."""
    ended: str
    """precision, budget, lowest, highest; none if no level holds, undecided if that is unknown."""
    precision: float
    lowest: int
    highest: int
    blocks: int
    rounds: int
    block_s: float
    settle_s: float
    took_s: float
    dispersion: float
    rows: tuple[LevelRow, ...]
    knee: LawKnee | None
    load_limited: bool
    """Whether operations above the limit started late because all threads of the functions were
    busy, while the store was as fast on average as below the limit."""
    confidence: float = CONFIDENCE

    def __str__(self) -> str:
        return "\n".join(lines(self, "text"))

    def to_json(self) -> dict[str, Any]:
        """Return the JSON document of ``--format json``."""
        data = asdict(self)
        for row, document in zip(self.rows, data["rows"], strict=True):
            document["verdict"] = row.verdict
        return data


def result_of(
    search: Search,
    blocks: Sequence[Block],
    objective: Objective,
    *,
    over: str,
    block_s: float,
    settle_s: float,
    took_s: float,
) -> Limit:
    """Return the result of the blocks of a search."""
    estimate = search.conclude()
    ended = search.reached or "budget"
    low, high = search.interval
    levels = sorted({block.level for block in blocks})
    # A level holds if a higher one does.
    together = np.maximum.accumulate([*map(search.together, reversed(levels))])[::-1]
    rows = tuple(
        _row(blocks, level, objective, estimate, holds)
        for level, holds in zip(levels, together.tolist(), strict=True)
    )
    if ended in {"precision", "budget", "highest"} and not _levels(rows, "holds"):
        alike = (
            breaks_alike(search.allowed[name], trials, level)
            for level in _levels(rows, "does not hold")[:1]
            for name, trials in search.trials.items()
        )
        # Clusters may leave open whether a level holds although its operations do.
        ended = "none" if rows[0].holds < _SURE and any(alike) else "undecided"
    # Outside of the tested levels the limit is unknown.
    inside = ended in {"precision", "budget"}
    return Limit(
        over=over,
        objective=objective,
        limit=min(floor(estimate.quantile(0.5)), rows[-1].level) if inside else None,
        low=None if low < search.lowest or ended in _NONE else floor(low),
        high=None if high > min(search.highest, rows[-1].level) else ceil(high),
        ended=ended,
        precision=search.precision,
        lowest=search.lowest,
        highest=search.highest,
        blocks=len(blocks),
        rounds=search.rounds,
        block_s=block_s,
        settle_s=settle_s,
        took_s=took_s,
        dispersion=estimate.dispersion,
        rows=rows,
        knee=_knee(blocks),
        load_limited=_load_limited(blocks, objective, rows),
    )


def _row(
    tried: Sequence[Block], level: int, objective: Objective, estimate: Crossing, together: float
) -> LevelRow:
    below = [block for block in tried if block.level <= level]
    blocks = [block for block in below if block.level == level]
    undone = sum(block.failed + block.dropped for block in blocks)
    took_s = np.sort(np.concatenate([block.took_s for block in blocks]))
    due = len(took_s) + undone
    slopes = [block.growth.per_s for block in blocks if block.growth is not None]
    around = _Z * sqrt(estimate.dispersion * 0.99 * 0.01 / max(due, 1))
    return LevelRow(
        level=level,
        blocks=len(blocks),
        due=due,
        failed=sum(block.failed for block in blocks),
        dropped=sum(block.dropped for block in blocks),
        achieved_per_s=float(np.mean([block.achieved_per_s for block in blocks])),
        p50_s=_at(took_s, due, 0.5),
        p99_s=_at(took_s, due, 0.99),
        p99_low_s=_at(took_s, due, 0.99 - around),
        p99_high_s=_at(took_s, due, 0.99 + around),
        errors=undone / max(due, 1),
        growing=sum(block.grows(objective) for block in blocks),
        later_per_s=float(np.mean(slopes)) if slopes else None,
        broken=_break(below, objective),
        broken_below=None if _break(blocks, objective) else _broken_below(below, objective, level),
        holds=estimate.above(level),
        together=together,
    )


def _break(blocks: Sequence[Block], objective: Objective) -> bool:
    """Return whether the operations of some blocks break the objective together."""
    due = sum(block.due for block in blocks)
    return any(
        sum(block.bad(objective)[name] for block in blocks) > allowed * due
        for name, allowed in objective.allowed.items()
    )


def _broken_below(below: Sequence[Block], objective: Objective, level: int) -> int | None:
    lower = sorted({block.level for block in below} - {level}, reverse=True)
    broken = (
        other
        for other in lower
        if _break([block for block in below if block.level == other], objective)
    )
    return next(broken, None)


def _load_limited(blocks: Sequence[Block], objective: Objective, rows: Sequence[LevelRow]) -> bool:
    """Return whether operations break the objective because they start late."""
    p99_s = objective.p99_s
    broken = min(_levels(rows, "does not hold"), default=0)
    above = [block for block in blocks if block.level == broken]
    below = [block for block in blocks if block.level < broken]
    own_s = [
        np.concatenate([block.own_s for block in group if block.own_s is not None] or [np.zeros(0)])
        for group in (above, below)
    ]
    if p99_s is None or not all(map(len, own_s)):
        return False
    bad = sum(block.bad(objective)["p99"] for block in above)
    late = sum(block.begun_late(p99_s) for block in above)
    # A store that stalls makes few operations slow, one of each thread, and all others late.
    slower, before = (float(times.mean()) for times in own_s)
    is_busy = all(block.busy is None or block.busy >= _BUSY for block in above)
    return late > bad / 2 and slower <= _AS_FAST * before and is_busy


def _levels(rows: Iterable[LevelRow], verdict: str) -> list[int]:
    return [row.level for row in rows if row.verdict == verdict]


def _at(took_s: Floats, due: int, share: float) -> float | None:
    """Return a percentile of all operations due, with infinite durations for incomplete ones."""
    place = rank_of(100 * share, due) - 1
    return float(took_s[place]) if place < len(took_s) else None


def _knee(blocks: Iterable[Block]) -> LawKnee | None:
    rates: dict[int, list[float]] = {}
    for block in blocks:
        if block.achieved_per_s > 0:
            rates.setdefault(block.level, []).append(block.achieved_per_s)
    return knee_of_laws(rates)


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


def headline(limit: Limit) -> str:
    """Return the limit in a few words."""
    unit = "/s" if limit.over == "rate" else f" {limit.over}"
    if limit.limit is not None:
        low, high = (end if end is not None else "?" for end in (limit.low, limit.high))
        return f"{limit.limit}{unit} ({low} to {high})"
    return {
        "lowest": f"below {limit.lowest}{unit}",
        "highest": f"at least {limit.highest}{unit}",
        **_NONE,
    }[limit.ended]


def drawings(limit: Limit) -> tuple[Drawing, ...]:
    """Return the percentile of each level, and the achieved rate."""
    p99 = tuple(
        Mark(
            at=row.level,
            value=row.p99_s * 1e3,
            low=None if row.p99_low_s is None else row.p99_low_s * 1e3,
            high=None if row.p99_high_s is None else row.p99_high_s * 1e3,
            group=row.verdict,
        )
        for row in limit.rows
        if row.p99_s is not None
    )
    achieved = tuple(
        Mark(at=row.level, value=row.achieved_per_s, group=row.verdict) for row in limit.rows
    )
    return (
        Drawing(
            title="99th percentile, ms",
            says="All operations of each level; bars are 95% intervals. Levels without a dot left"
            " more than 1% of their operations undone.",
            at=_WHAT[limit.over],
            value="ms",
            marks=p99,
        ),
        Drawing(
            title="Achieved operations per second",
            says="Mean of the runs of each level.",
            at=_WHAT[limit.over],
            value="operations/s",
            marks=achieved,
        ),
    )


def lines(limit: Limit, style: str, width: int = sys.maxsize) -> Iterator[str]:
    """Yield the lines of a report, as Markdown, or as text with tables of this width."""
    align = "r" * (len(_HEADING) - 1) + "l"
    yield from table(_HEADING, [*map(_cells, limit.rows)], style, align=align, width=width)
    yield _headline(limit)
    if watched := sum(row.blocks for row in limit.rows if row.verdict == "holds"):
        lasted_s = watched * limit.block_s
        yield (
            f"it held in {watched} blocks of {format_seconds(limit.block_s - limit.settle_s)};"
            f" stalls less often than every {format_seconds(lasted_s / _UNSEEN)} could hide"
        )
    yield f"ended: {_ending(limit)}"
    if limit.ended == "undecided":
        least = ceil(limit.dispersion * _CLEAN / min(limit.objective.allowed.values()))
        yield (
            "to decide it, use a larger --budget or --block; to show that a level holds takes"
            f" about {least:,} operations at or above it without a bad one"
        )
    yield _knee_text(limit.knee)
    if limit.load_limited:
        yield (
            "this is a limit of the load, not of the store: all threads were busy while the"
            " store was as fast as before; use more --number, or more --threads and --objects"
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
        str(row.dropped),
        _queue(row),
        str(row.blocks),
        _verdict(row),
    )


def _verdict(row: LevelRow) -> str:
    """Return the verdict, with the reason if the level's own operations are not the reason."""
    if row.verdict == "does not hold" and row.broken_below is not None:
        return f"not shown: {row.broken_below} below was broken"
    return row.verdict


def _queue(row: LevelRow) -> str:
    if not row.growing or row.later_per_s is None:
        return "-" if row.later_per_s is None else "steady"
    return f"grows {format_seconds(max(row.later_per_s, 0.0))}/s"


def _seconds(seconds: float | None) -> str:
    return "not done" if seconds is None else format_seconds(seconds)


def _headline(limit: Limit) -> str:
    unit, target = _WHAT[limit.over], limit.objective
    parts = [] if target.p99_s is None else [f"p99 {format_seconds(target.p99_s)}"]
    parts += [] if target.errors is None else [f"errors {target.errors:.3%}"]
    objective = " and ".join(parts)
    if limit.ended == "lowest":
        return f"limit: {objective} does not hold even at {limit.lowest} {unit}"
    if limit.ended == "highest":
        return f"limit: {objective} holds up to {limit.highest} {unit}, the highest level allowed"
    if limit.ended in _NONE:
        broken = "" if limit.high is None else f"; it is broken from {limit.high}"
        return f"limit: {objective} {_NONE[limit.ended]}{broken}"
    low = f"below {limit.lowest}" if limit.low is None else str(limit.low)
    high = f"above {limit.rows[-1].level}" if limit.high is None else str(limit.high)
    return (
        f"limit: {objective} holds up to {limit.limit} {unit}"
        f" ({limit.confidence:.0%} interval {low} to {high})"
    )


def _ending(limit: Limit) -> str:
    blocks = format_count(limit.blocks, "block")
    spent = f"{blocks} of {format_seconds(limit.block_s)} in {format_seconds(limit.took_s)}"
    reasons = {
        "precision": f"within {limit.precision:.1%} of the limit",
        "budget": f"the budget is spent before {limit.precision:.1%} of the limit was reached",
        "lowest": "the lowest level does not hold",
        "none": "lower levels break it in the same way",
        "undecided": "undecided: no level is shown to hold, nor all to fail",
        "highest": "the highest level holds",
    }
    return f"{reasons[limit.ended]}; {spent}"


def _knee_text(knee: LawKnee | None) -> str:
    if knee is None:
        return "knee: too few levels"
    most = f"at most {format_per_s(knee.most_per_s)} achieved"
    if knee.law is None:
        return f"knee: undecided from these levels; {most}"
    law = {"capped": "linear up to a cap", "usl": "universal scalability law"}[knee.law]
    at = "not met" if knee.at is None else format_number(knee.at)
    return f"knee: {at} ({law}); {most}"
