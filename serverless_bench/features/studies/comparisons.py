"""Comparisons of two cells within rounds, and verdicts on them as one family. Pure.

In a round each cell runs once. An influence that slows a complete round (other work of the
machine, a store that ages) affects both parts of a ratio and cancels out: a randomised block
design. The remainder is assumed to be normal on logarithms. Student's t keeps its level if
both cells have the same distribution, but not if a ratio is skewed (compare/README.md).

There are two families, "these differ", and "these do not differ by as much as matters". In
each of them the probability of any false verdict in a study is at most 5 %, by Holm's
procedure; a comparison that belongs to multiple hypotheses counts as one comparison. The
outcomes of claims, and the power of a study, are values of this module.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import inf, log, log1p
from typing import Final

from serverless_bench.features.compare.ratio import (
    UPPER,
    RatioEstimate,
    found_share,
    rounds_needed,
    spread_factor,
)
from serverless_bench.features.compare.verdict import (
    ALPHA,
    MIN_BLOCKS,
    THRESHOLD,
    Interval,
    Verdict,
    holm,
)
from serverless_bench.features.studies.cells import published_row
from serverless_bench.features.studies.definition import Hypothesis, Metric, Study, Value
from serverless_bench.features.studies.knee import Knee
from serverless_bench.features.studies.observations import CellRuns

TO_PROPORTION: Final = frozenset({"linear", "proportional"})
"""Tests against proportionality to the axis: not less (linear), or equal (proportional)."""


@dataclass(frozen=True, slots=True)
class CellGroup:
    """Cells of a verdict."""

    cells: Sequence[CellRuns]

    @property
    def crowded(self) -> str:
        """Reason why this machine cannot measure the gain of more functions or CPUs."""
        texts = {runs.cell.crowded for runs in self.cells}
        return "" if len(texts) == 1 else max(texts)

    @property
    def shaped_store(self) -> bool:
        """Whether any of the stores has a configured behaviour."""
        return any(runs.cell.shaped_store for runs in self.cells)

    @property
    def store_bound(self) -> bool:
        """Whether all cells spent most of their time waiting for the store or the network to it."""
        return all(runs.store_bound for runs in self.cells)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellComparison:
    """Comparison of a metric of two cells, and the claim about them."""

    metric: Metric
    first: CellRuns
    second: CellRuns
    paired: RatioEstimate
    """Second over first; for tests in ``TO_PROPORTION``, over the proportional value."""
    test: str = "same"
    """Test of the claim, as in ``Hypothesis``."""
    threshold: float = THRESHOLD
    published_times: float = 1.0
    """For tests in ``TO_PROPORTION``: the proportional ratio of the published cells."""

    @property
    def gain(self) -> RatioEstimate:
        """Ratio in the direction in which more is better."""
        return self.paired if self.metric.better == "more" else self.paired.inverse()

    @property
    def limit(self) -> float:
        """Logarithm of the smallest ratio that matters."""
        return log1p(self.threshold)

    @property
    def difference_key(self) -> Hashable:
        """Key that is equal for comparisons with the same p of a difference."""
        return self._about, frozenset({self.first.cell.slug, self.second.cell.slug})

    @property
    def within_key(self) -> Hashable:
        """Key that is equal for comparisons with the same p of no difference that matters."""
        if self.test not in {"no-gain", "linear"}:
            return self.difference_key, self.threshold
        order = (self.first.cell.slug, self.second.cell.slug)
        return self._about, self.test, order, self.threshold

    @property
    def _about(self) -> tuple[object, ...]:
        return self.metric.of, self.metric.for_bytes, self.test in TO_PROPORTION

    @property
    def cells(self) -> CellGroup:
        """Both cells."""
        return CellGroup((self.first, self.second))

    @property
    def enough(self) -> bool:
        """Whether there are enough rounds for a verdict."""
        return self.paired.rounds >= MIN_BLOCKS

    def p_difference(self) -> float:
        """Return the p of "they do not differ"."""
        return self.paired.p_different() if self.enough else 1.0

    def p_within(self) -> float:
        """Return the p of "they differ by as much as matters", in the direction claimed."""
        if not self.enough:
            return 1.0
        if self.test == "no-gain":
            return self.gain.p_below(self.limit)
        if self.test == "linear":
            return self.gain.p_above(-self.limit)
        return self.paired.p_same(self.limit)


@dataclass(frozen=True, slots=True)
class Family:
    """All p of a study, adjusted as a family, by the comparisons' keys."""

    difference: Mapping[Hashable, float]
    within: Mapping[Hashable, float]

    def verdict(self, comparison: CellComparison) -> tuple[Verdict, float, float]:
        """Return the verdict, and the p that decided it or came closest: adjusted, and unadjusted.

        ``SAME`` may be one-sided, like the test of the comparison.
        """
        p_apart, p_near = (
            self.difference[comparison.difference_key],
            self.within[comparison.within_key],
        )
        gain = comparison.gain.mean
        if p_apart <= ALPHA and abs(gain) > comparison.limit:
            verdict = Verdict.FASTER if gain > 0 else Verdict.SLOWER
            return verdict, p_apart, comparison.p_difference()
        if p_near <= ALPHA:
            return Verdict.SAME, p_near, comparison.p_within()
        verdict = Verdict.UNDECIDED if comparison.enough else Verdict.NOT_ENOUGH_RUNS
        if abs(gain) > comparison.limit:
            return verdict, p_apart, comparison.p_difference()
        return verdict, p_near, comparison.p_within()


def family_of(
    comparisons: Iterable[CellComparison],
    knees: Mapping[Hashable, tuple[float, float]] | None = None,
) -> Family:
    """Adjust all p of a study as a family.

    Parameters
    ----------
    comparisons
        Comparisons of two cells each.
    knees
        For each claim about a knee, by a unique key: the p against it, and the p for it.
    """
    comparisons, knees = list(comparisons), knees or {}
    difference = {
        comparison.difference_key: comparison.p_difference() for comparison in comparisons
    }
    within = {comparison.within_key: comparison.p_within() for comparison in comparisons}
    return Family(
        holm({**difference, **{key: p for key, (p, _) in knees.items()}}),
        holm({**within, **{key: p for key, (_, p) in knees.items()}}),
    )


MATTERS: Final = 1.25
"""True ratio that is simulated: a published difference is large from this value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    """Power of a study to find an existing difference."""

    published: float
    """Published ratio, second over first."""
    ratio: float
    """True ratio of the simulation."""
    found: tuple[float, float]
    """Minimum and maximum fraction of such studies that find it, for the upper 80 %
    limit of the spread and for the median, as few rounds do not determine it well. 0 if there are
    too few rounds for a verdict.
    """
    rounds: tuple[int | None, int | None]
    """Minimum and maximum number of runs of each cell, as long as these, that find it in ``ENOUGH``
    of
    the studies, with the same spreads; None for more than ``MOST_ROUNDS``.
    """
    run_s: float
    """Duration of a run of the cell with the longer runs."""


def power_for(study: Study, comparison: CellComparison, tests: int) -> Power | None:
    """Return the power of these rounds, if the published difference is large.

    The result is None if the published row of a cell is missing, if the published ratio is less
    than ``MATTERS``, or if the spread is unknown.
    """
    published, paired = published_ratio(study, comparison), comparison.paired
    if published is None or abs(log(published)) < log(MATTERS):
        return None
    if paired.rounds < 2 or not 0 <= paired.sd < inf:
        return None
    about = {"ratio": MATTERS, "threshold": comparison.threshold}
    likely, large = (spread_factor(paired.freedom, confidence) for confidence in (0.5, UPPER))
    freedom = paired.freedom if comparison.enough else 0.0
    return Power(
        published=published,
        ratio=MATTERS,
        found=(
            found_share(paired.error * large, freedom, tests, **about),
            found_share(paired.error * likely, freedom, tests, **about),
        ),
        rounds=(
            rounds_needed(paired.sd * likely, tests, **about),
            rounds_needed(paired.sd * large, tests, **about),
        ),
        run_s=max(comparison.first.run_s, comparison.second.run_s),
    )


def published_ratio(study: Study, comparison: CellComparison) -> float | None:
    """Return the published figure of the second cell over that of the first."""
    metric, times = comparison.metric, comparison.published_times
    rows = (published_row(study, runs.cell) for runs in (comparison.first, comparison.second))
    first, second = (None if row is None else row.range(metric.name) for row in rows)
    if first is None or second is None or not first[0] or not second[0]:
        return None
    return second[0] / first[0] / (times if metric.better == "more" else 1 / times)


class Decision(StrEnum):
    """Outcome of a claim."""

    CONFIRMED = "confirmed"
    REJECTED = "rejected"
    TOLD_APART = "the method distinguishes them (shaped store)"
    """Replaces both if a store has a configured behaviour: the claim itself is not tested."""
    ALIKE = "the method finds no difference (shaped store)"
    NOT_IDENTIFIABLE = "not identifiable"
    """Neither these runs nor this machine can decide the claim."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """Judgement on a segment, or on a knee."""

    group: Mapping[str, Value]
    """Values of the other axes."""
    segment: tuple[Value, Value] | None
    """Segment; None for a knee."""
    outcome: Decision
    shaped_store: bool = False
    """Whether a store of these cells has a configured behaviour."""
    verdict: Verdict | None = None
    """Verdict on the second cell relative to the first; ``same`` is one-sided like the claim."""
    ratio: float | None = None
    """Second over first, within a round; for ``linear``, over the proportional value."""
    interval: Interval | None = None
    """Interval of the ratio by itself, at 95 %."""
    p: float | None = None
    """The p that decided, or came closest, as one of ``among`` comparisons (Holm)."""
    alone: float | None = None
    """The same p without any other comparison."""
    among: int = 0
    """Comparisons of the study that share its 5 % of false alarms."""
    knee: Knee | None = None
    power: Power | None = None
    """Power, if the published difference is large and there is no verdict."""
    why: str = ""
    """Reason for an outcome that is not identifiable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A hypothesis with the judgements on it."""

    hypothesis: Hypothesis
    judgements: tuple[Judgement, ...]
    knees: tuple[tuple[Mapping[str, Value], Knee], ...]
    """Knee of each line with a numeric axis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """Effect of a single change, relative to the baseline."""

    metric: str
    axis: str
    base: Value
    value: Value
    verdict: Verdict
    ratio: float
    """Ratio of the metric, changed over baseline, within a round."""
    interval: Interval | None
    why: str = ""
    """Reason why the machine cannot measure the effect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """Verdicts of a study, with a joint limit of 5 % on false alarms."""

    judged: tuple[Judged, ...]
    effects: tuple[Effect, ...]
    """Effects in descending order; only in one-factor designs."""
    among: int
    """Number of distinct comparisons and claims about knees."""
