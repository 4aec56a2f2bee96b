"""Two cells compared round by round, and many comparisons judged together. Pure.

In a round each cell runs once, so that what makes a whole round slow (the machine's other
work, a store that ages) is in both parts of a ratio and goes out of it: a randomised block
design. What is left is taken to be normal on logarithms; Student's t holds its level well
where it is not, and no rank test can: with 5 rounds the least p of a sign test is 0.06.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from math import exp, inf, isnan, sqrt
from typing import Final, TypeVar

import numpy as np

from serverless_bench.analysis.compare import ALPHA, Interval
from serverless_bench.rundir.tables import Floats

MIN_ROUNDS: Final = 4
"""In which both cells have a run; with fewer there is no verdict."""

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """The mean logarithm of second over first within a round."""

    mean: float
    sd: float
    """Of one round's logarithm."""
    rounds: int

    @property
    def ratio(self) -> float:
        """Second over first."""
        return exp(self.mean)

    def shifted(self, by: float) -> "Contrast":
        """Return the contrast with a logarithm added."""
        return Contrast(mean=self.mean + by, sd=self.sd, rounds=self.rounds)

    def turned(self) -> "Contrast":
        """Return first over second."""
        return Contrast(mean=-self.mean, sd=self.sd, rounds=self.rounds)

    def interval(self, confidence: float = 1 - ALPHA) -> Interval | None:
        """Return where the true ratio is, by Student's t; None with one round."""
        if self.rounds < 2:
            return None
        from scipy import special  # noqa: PLC0415 - an extra, and slow to load

        reach = float(special.stdtrit(self.rounds - 1, (1 + confidence) / 2)) * self._error
        return Interval(
            low=exp(self.mean - reach), high=exp(self.mean + reach), confidence=confidence
        )

    def p_above(self, limit: float = 0.0) -> float:
        """Return the p of "the logarithm is at most ``limit``": small if it is above."""
        return self._upper_tail(self.mean - limit)

    def p_below(self, limit: float = 0.0) -> float:
        """Return the p of "the logarithm is at least ``limit``": small if it is below."""
        return self._upper_tail(limit - self.mean)

    def p_different(self) -> float:
        """Return the two-sided p of "the ratio is 1"."""
        return min(1.0, 2 * min(self.p_above(), self.p_below()))

    def p_same(self, limit: float) -> float:
        """Return the p of "they differ by ``limit`` or more" (Schuirmann 1987)."""
        return max(self.p_below(limit), self.p_above(-limit))

    @property
    def _error(self) -> float:
        return self.sd / sqrt(self.rounds)

    def _upper_tail(self, beyond: float) -> float:
        if self.rounds < 2 or isnan(beyond):
            return 1.0
        from scipy import special  # noqa: PLC0415 - as above

        t = beyond / self._error if self._error else (inf if beyond > 0 else -inf)
        return float(special.stdtr(self.rounds - 1, -t))


def contrast(first: Mapping[int, float], second: Mapping[int, float]) -> Contrast | None:
    """Compare two cells in the rounds that both have; None if there is none.

    Parameters
    ----------
    first, second
        The same metric of each run, by round; what is not positive does not count.
    """
    there = [r for r in first if r in second and first[r] > 0 and second[r] > 0]
    if not there:
        return None
    return contrast_of(np.log([second[r] / first[r] for r in there]))


def contrast_of(logs: Floats) -> Contrast:
    """Return the contrast of a logarithm per round."""
    sd = float(logs.std(ddof=1)) if len(logs) > 1 else inf
    return Contrast(mean=float(logs.mean()), sd=sd, rounds=len(logs))


def holm(p: Mapping[K, float]) -> dict[K, float]:
    """Return p of each comparison as one of all of them (Holm 1979).

    Whoever believes all whose adjusted p is at most 5 % believes nothing false in 95 % of
    such families, however the comparisons depend on each other.
    """
    found: dict[K, float] = {}
    highest = 0.0
    for place, key in enumerate(sorted(p, key=lambda key: p[key])):
        highest = max(highest, min(1.0, (len(p) - place) * p[key]))
        found[key] = highest
    return found
