"""Two cells compared round by round, and all comparisons judged as one family. Pure.

In a round each cell runs once, so that what makes a whole round slow (the machine's other
work, a store that ages) is in both parts of a ratio and goes out of it: a randomised block
design. What is left is taken to be normal on logarithms; Student's t holds its level where
both cells have one distribution, and not where a ratio is lopsided (docs/compare.md).

There are two families, "these differ", and "these do not by as much as matters". In each
the chance of one false verdict or more in a whole experiment is at most 5 %, by Holm's
procedure; a comparison that stands in several hypotheses is one comparison. What becomes of
the claims, and what so many rounds can find, is here as values.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import inf, log, log1p
from typing import Final

from serverless_bench.statistics.power import UPPER, found_share, rounds_needed, spread_factor
from serverless_bench.statistics.ratio import MIN_BLOCKS, RatioEstimate
from serverless_bench.statistics.verdict import ALPHA, THRESHOLD, Interval, Verdict, holm
from serverless_bench.studies.cells import published_row
from serverless_bench.studies.definition import Experiment, Hypothesis, Metric, Value
from serverless_bench.studies.knee import Knee
from serverless_bench.studies.observations import CellRuns

TO_PROPORTION: Final = frozenset({"linear", "proportional"})
"""Tests against what would be proportional to the axis: not less, or neither less nor more."""


@dataclass(frozen=True, slots=True)
class CellGroup:
    """Cells that a verdict is about."""

    cells: Sequence[CellRuns]

    @property
    def crowded(self) -> str:
        """Why this machine cannot tell what more functions or processors bring; or empty."""
        texts = {runs.cell.crowded for runs in self.cells}
        return "" if len(texts) == 1 else max(texts)

    @property
    def shaped_store(self) -> bool:
        """Whether a store of theirs was told how to behave."""
        return any(runs.cell.shaped_store for runs in self.cells)

    @property
    def store_bound(self) -> bool:
        """Whether all waited for the store, or the network to it, most of all."""
        return all(runs.store_bound for runs in self.cells)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellComparison:
    """A metric of one cell beside that of another, and what is claimed of the two."""

    metric: Metric
    first: CellRuns
    second: CellRuns
    paired: RatioEstimate
    """Second over first; for those in ``TO_PROPORTION``, over what would be proportional."""
    test: str = "same"
    """As in ``Hypothesis``."""
    threshold: float = THRESHOLD
    published_times: float = 1.0
    """For those in ``TO_PROPORTION``: what would be proportional of the published cells."""

    @property
    def gain(self) -> RatioEstimate:
        """The ratio, as if more were better."""
        return self.paired if self.metric.better == "more" else self.paired.inverse()

    @property
    def limit(self) -> float:
        """From which logarithm on a difference matters."""
        return log1p(self.threshold)

    @property
    def difference_key(self) -> Hashable:
        """Equal for comparisons whose p of a difference is one and the same."""
        return self._about, frozenset({self.first.cell.slug, self.second.cell.slug})

    @property
    def within_key(self) -> Hashable:
        """Equal for comparisons whose p of no difference that matters is the same."""
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
        """Whether there are rounds enough for a verdict."""
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
    """Every p of an experiment adjusted for all of them, by the comparisons' keys."""

    difference: Mapping[Hashable, float]
    within: Mapping[Hashable, float]

    def verdict(self, one: CellComparison) -> tuple[Verdict, float, float]:
        """Return the verdict, and the p that made it or came closest: adjusted, and alone.

        ``SAME`` may be one-sided, as the test of the comparison is.
        """
        apart, near = self.difference[one.difference_key], self.within[one.within_key]
        gain = one.gain.mean
        if apart <= ALPHA and abs(gain) > one.limit:
            verdict = Verdict.FASTER if gain > 0 else Verdict.SLOWER
            return verdict, apart, one.p_difference()
        if near <= ALPHA:
            return Verdict.SAME, near, one.p_within()
        verdict = Verdict.UNDECIDED if one.enough else Verdict.NOT_ENOUGH_RUNS
        if abs(gain) > one.limit:
            return verdict, apart, one.p_difference()
        return verdict, near, one.p_within()


def family_of(
    comparisons: Iterable[CellComparison],
    knees: Mapping[Hashable, tuple[float, float]] | None = None,
) -> Family:
    """Adjust every p of an experiment for all of them.

    Parameters
    ----------
    comparisons
        Of two cells each.
    knees
        Of each claim about a knee, by a key of its own: the p against it, and for it.
    """
    comparisons, knees = list(comparisons), knees or {}
    difference = {one.difference_key: one.p_difference() for one in comparisons}
    within = {one.within_key: one.p_within() for one in comparisons}
    return Family(
        holm({**difference, **{key: p for key, (p, _) in knees.items()}}),
        holm({**within, **{key: p for key, (_, p) in knees.items()}}),
    )


MATTERS: Final = 1.25
"""The true ratio that is simulated: from here on a published difference is large."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    """How often such an experiment finds a difference that is there."""

    published: float
    """Second over first, as published."""
    ratio: float
    """The true ratio that was simulated."""
    found: tuple[float, float]
    """Least and most share of such experiments that find it, with a spread at its upper 80 %
    limit and at its median: that of few rounds is not known well. 0 where there are too few
    rounds for a verdict."""
    rounds: tuple[int | None, int | None]
    """Fewest and most runs of each cell, as long as these, that find it in ``ENOUGH`` of the
    experiments, with the same spreads; None for more than ``MOST_ROUNDS``."""
    run_s: float
    """How long a run of the slower-running cell was."""


def power_for(experiment: Experiment, comparison: CellComparison, tests: int) -> Power | None:
    """Return what these rounds could find, where the published difference is large.

    None where nothing was published of both cells, or less than ``MATTERS``, or where the
    spread is not known.
    """
    published, paired = published_ratio(experiment, comparison), comparison.paired
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


def published_ratio(experiment: Experiment, comparison: CellComparison) -> float | None:
    """Return the published figure of the second cell over that of the first."""
    metric, times = comparison.metric, comparison.published_times
    rows = (published_row(experiment, one.cell) for one in (comparison.first, comparison.second))
    first, second = (None if row is None else row.range(metric.name) for row in rows)
    if first is None or second is None or not first[0] or not second[0]:
        return None
    return second[0] / first[0] / (times if metric.better == "more" else 1 / times)


class Decision(StrEnum):
    """What becomes of a claim."""

    CONFIRMED = "confirmed"
    REJECTED = "rejected"
    TOLD_APART = "the method tells them apart (shaped store)"
    """In place of both where a store does as it was told: the claim itself is not tested."""
    ALIKE = "the method finds no difference (shaped store)"
    NOT_IDENTIFIABLE = "not identifiable"
    """These runs, or this machine, do not tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """One segment, or one knee."""

    group: Mapping[str, Value]
    """Where the other axes are."""
    segment: tuple[Value, Value] | None
    """None for a knee."""
    outcome: Decision
    shaped_store: bool = False
    """Whether a store of these cells was told how to behave."""
    verdict: Verdict | None = None
    """Of the second cell, seen from the first; ``same`` is one-sided where the claim is."""
    ratio: float | None = None
    """Second over first, within a round; for ``linear``, over what would be proportional."""
    interval: Interval | None = None
    """Of the ratio by itself, at 95 %."""
    p: float | None = None
    """Of what decided, or came closest to it, as one of ``among`` comparisons (Holm)."""
    alone: float | None = None
    """The same p if nothing else had been compared."""
    among: int = 0
    """Comparisons of the experiment that share its 5 % of false alarms."""
    knee: Knee | None = None
    power: Power | None = None
    """Where the published difference is large and there is no verdict."""
    why: str = ""
    """What is missing, where the outcome is not identifiable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A hypothesis and what was found."""

    hypothesis: Hypothesis
    judgements: tuple[Judgement, ...]
    knees: tuple[tuple[Mapping[str, Value], Knee], ...]
    """Of each line, wherever the axis has numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What one change does by itself: against the baseline, all else alike."""

    metric: str
    axis: str
    base: Value
    value: Value
    verdict: Verdict
    ratio: float
    """Of the metric, changed over baseline, within a round."""
    interval: Interval | None
    why: str = ""
    """Reason why the machine cannot tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """What holds of an experiment, its false alarms held at 5 % together."""

    judged: tuple[Judged, ...]
    effects: tuple[Effect, ...]
    """The largest first; none but in one-factor designs."""
    among: int
    """Comparisons and claims about knees, each once."""
