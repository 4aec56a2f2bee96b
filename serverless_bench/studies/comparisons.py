"""Two cells compared round by round, and all comparisons judged as one family. Pure.

In a round each cell runs once, so that what makes a whole round slow (the machine's other
work, a store that ages) is in both parts of a ratio and goes out of it: a randomised block
design. What is left is taken to be normal on logarithms; Student's t holds its level well
where it is not, and no rank test can: with 5 rounds the least p of a sign test is 0.06.

There are two families, "these differ", and "these do not by as much as matters". In each
the chance of one false verdict or more in a whole experiment is at most 5 %, by Holm's
procedure; a comparison that stands in several hypotheses is one comparison.
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from math import log1p
from typing import Final

from serverless_bench.statistics.multiple import holm
from serverless_bench.statistics.paired import MIN_ROUNDS, PairedRatio
from serverless_bench.statistics.verdict import ALPHA, THRESHOLD, Verdict
from serverless_bench.studies.definition import Metric
from serverless_bench.studies.observations import CellRuns

TO_PROPORTION: Final = frozenset({"linear", "proportional"})
"""Tests against what would be proportional to the axis: not less, or neither less nor more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellComparison:
    """A metric of one cell beside that of another, and what is claimed of the two."""

    metric: Metric
    first: CellRuns
    second: CellRuns
    paired: PairedRatio
    """Second over first; for those in ``TO_PROPORTION``, over what would be proportional."""
    test: str = "same"
    """As in ``Hypothesis``."""
    threshold: float = THRESHOLD
    published_times: float = 1.0
    """For those in ``TO_PROPORTION``: what would be proportional of the published cells."""

    @property
    def gain(self) -> PairedRatio:
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
    def enough(self) -> bool:
        """Whether there are rounds enough for a verdict."""
        return self.paired.rounds >= MIN_ROUNDS

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
