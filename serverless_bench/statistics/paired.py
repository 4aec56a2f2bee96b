"""Two things compared within rounds, as the mean logarithm of their ratios. Pure.

What makes a whole round slow is in both parts of a ratio and goes out of it: a randomised
block design. What is left is taken to be normal on logarithms; Student's t holds its level well
where it is not, and no rank test can: with 5 rounds the least p of a sign test is 0.06.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import exp, inf, isnan, sqrt
from typing import Final

import numpy as np

from serverless_bench.rundir.tables import Floats
from serverless_bench.statistics.verdict import ALPHA, Interval

MIN_ROUNDS: Final = 4
"""Rounds in which both have a run; with fewer there is no verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedRatio:
    """The mean logarithm of second over first within a round."""

    mean: float
    sd: float
    """Of one round's logarithm."""
    rounds: int

    @property
    def ratio(self) -> float:
        """Second over first."""
        return exp(self.mean)

    def shifted(self, by: float) -> "PairedRatio":
        """Return it with a logarithm added."""
        return replace(self, mean=self.mean + by)

    def inverse(self) -> "PairedRatio":
        """Return first over second."""
        return replace(self, mean=-self.mean)

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
        from scipy import special  # noqa: PLC0415 - an extra, and slow to load

        t = beyond / self._error if self._error else (inf if beyond > 0 else -inf)
        return float(special.stdtr(self.rounds - 1, -t))


def paired_ratio(first: Mapping[int, float], second: Mapping[int, float]) -> PairedRatio | None:
    """Compare two cells in the rounds that both have; None if there is none.

    Parameters
    ----------
    first, second
        The same metric of each run, by round; what is not positive does not count.
    """
    common = [r for r in first if r in second and first[r] > 0 and second[r] > 0]
    return ratio_of_logs(np.log([second[r] / first[r] for r in common])) if common else None


def ratio_of_logs(logs: Floats) -> PairedRatio:
    """Return the ratio of which each round has a logarithm."""
    sd = float(logs.std(ddof=1)) if len(logs) > 1 else inf
    return PairedRatio(mean=float(logs.mean()), sd=sd, rounds=len(logs))
