"""What is asked of the runs: comparisons that share one allowance of false alarms. Pure.

Two families: "these differ", and "these do not by as much as matters". In each the chance
of one false verdict or more in a whole experiment is at most 5 %, by Holm's procedure; a
question that stands in several hypotheses is one question.
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from math import log1p

from serverless_bench.analysis.compare import ALPHA, Verdict
from serverless_bench.experiments.contrasts import MIN_ROUNDS, Contrast, holm
from serverless_bench.experiments.observations import Observed
from serverless_bench.experiments.schema import DEFAULT_THRESHOLD, Metric


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """How a metric of one cell compares with that of another."""

    metric: Metric
    first: Observed
    second: Observed
    contrast: Contrast
    """Second over first; for ``linear``, over what would be proportional."""
    test: str = "same"
    """As in ``Hypothesis``."""
    threshold: float = DEFAULT_THRESHOLD
    told_times: float = 1.0
    """For ``linear``: what would be proportional of the published cells."""

    @property
    def gain(self) -> Contrast:
        """The contrast, as if more were better."""
        return self.contrast if self.metric.better == "more" else self.contrast.turned()

    @property
    def limit(self) -> float:
        """From which logarithm on a difference matters."""
        return log1p(self.threshold)

    @property
    def difference_key(self) -> Hashable:
        """Equal for questions whose p of a difference is one and the same."""
        return self._about, frozenset({self.first.cell.slug, self.second.cell.slug})

    @property
    def within_key(self) -> Hashable:
        """Equal for questions whose p of no difference that matters is the same."""
        if self.test not in {"no-gain", "linear"}:
            return self.difference_key, self.threshold
        order = (self.first.cell.slug, self.second.cell.slug)
        return self._about, self.test, order, self.threshold

    @property
    def _about(self) -> tuple[object, ...]:
        return self.metric.of, self.metric.for_bytes, self.test == "linear"

    def p_difference(self) -> float:
        """Return the p of "they do not differ"."""
        return self._told(self.contrast.p_different())

    def p_within(self) -> float:
        """Return the p of "they differ by as much as matters", in the direction asked."""
        if self.test == "no-gain":
            return self._told(self.gain.p_below(self.limit))
        if self.test == "linear":
            return self._told(self.gain.p_above(-self.limit))
        return self._told(self.contrast.p_same(self.limit))

    @property
    def enough(self) -> bool:
        """Whether there are rounds enough for a verdict."""
        return self.contrast.rounds >= MIN_ROUNDS

    def _told(self, p: float) -> float:
        return p if self.enough else 1.0


@dataclass(frozen=True, slots=True)
class Answers:
    """Every p of an experiment as one of all, by the questions' keys."""

    difference: Mapping[Hashable, float]
    within: Mapping[Hashable, float]

    def verdict(self, asked: Question) -> tuple[Verdict, float, float]:
        """Return the verdict, and the p that made it or came closest: of all, and alone.

        ``SAME`` may be one-sided, as the test of the question is.
        """
        apart, near = self.difference[asked.difference_key], self.within[asked.within_key]
        gain = asked.gain.mean
        if apart <= ALPHA and abs(gain) > asked.limit:
            verdict = Verdict.FASTER if gain > 0 else Verdict.SLOWER
            return verdict, apart, asked.p_difference()
        if near <= ALPHA:
            return Verdict.SAME, near, asked.p_within()
        verdict = Verdict.UNDECIDED if asked.enough else Verdict.NOT_ENOUGH_RUNS
        if abs(gain) > asked.limit:
            return verdict, apart, asked.p_difference()
        return verdict, near, asked.p_within()


def answer(
    asked: Iterable[Question], knees: Mapping[Hashable, tuple[float, float]] | None = None
) -> Answers:
    """Judge all questions of an experiment together.

    Parameters
    ----------
    asked
        Comparisons of two cells.
    knees
        Of each claim about a knee, by a key of its own: the p against it, and for it.
    """
    questions, knees = list(asked), knees or {}
    difference = {one.difference_key: one.p_difference() for one in questions}
    within = {one.within_key: one.p_within() for one in questions}
    return Answers(
        holm({**difference, **{key: p for key, (p, _) in knees.items()}}),
        holm({**within, **{key: p for key, (_, p) in knees.items()}}),
    )
