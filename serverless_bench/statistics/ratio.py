"""The ratio of two geometric means, with a standard error from the design of the runs. Pure.

Runs in blocks are pairs: what makes a whole block slow is in both parts of a ratio and goes out
of it. Runs without blocks are two samples, whose variances may differ (Welch 1947). Either way
Student's t is used on logarithms. No rank test can decide as little: with 5 blocks the least p
of a sign test is 0.06.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import exp, inf, isnan, log, sqrt
from typing import Final

import numpy as np

from serverless_bench.rundir.tables import Floats
from serverless_bench.statistics.verdict import ALPHA, Interval

MIN_BLOCKS: Final = 6
"""Blocks or rounds in which both have a run, or runs per side; with fewer a verdict would hang on
the shape of their distribution, and there is none."""
_MOST_LOG: Final = 700.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RatioEstimate:
    """Second over first: the difference of their mean logarithms."""

    mean: float
    """Difference of the mean logarithms."""
    error: float
    """Its standard error."""
    freedom: float
    """Degrees of freedom of the standard error; 0 if there is none."""

    @property
    def ratio(self) -> float:
        """Geometric mean of the second over that of the first."""
        return exp(self.mean)

    @property
    def rounds(self) -> int:
        """Number of rounds that a paired ratio comes from."""
        return round(self.freedom) + 1

    @property
    def sd(self) -> float:
        """Standard deviation of the logarithm of a paired ratio within a round."""
        return self.error * sqrt(self.rounds)

    def shifted(self, by: float) -> "RatioEstimate":
        """Return it with a logarithm added."""
        return replace(self, mean=self.mean + by)

    def inverse(self) -> "RatioEstimate":
        """Return first over second."""
        return replace(self, mean=-self.mean)

    def interval(self, confidence: float = 1 - ALPHA) -> Interval | None:
        """Return the interval of the true ratio; None without a standard error."""
        if not self.freedom:
            return None
        from scipy import special  # noqa: PLC0415 - an extra, and slow to load

        reach = float(special.stdtrit(self.freedom, (1 + confidence) / 2)) * self.error
        # Few degrees of freedom may reach beyond the largest float.
        low, high = (exp(min(end, _MOST_LOG)) for end in (self.mean - reach, self.mean + reach))
        return Interval(low=low, high=high, confidence=confidence)

    def p_above(self, limit: float = 0.0) -> float:
        """Return the p of "the logarithm is at most ``limit``": small if it is above."""
        return self._upper_tail(self.mean - limit)

    def p_below(self, limit: float = 0.0) -> float:
        """Return the p of "the logarithm is at least ``limit``": small if it is below."""
        return self._upper_tail(limit - self.mean)

    def p_different(self) -> float:
        """Return the two-sided p of "the ratio is 1"."""
        return min(1.0, 2 * self._upper_tail(abs(self.mean)))

    def p_same(self, limit: float) -> float:
        """Return the p of "they differ by ``limit`` or more" (Schuirmann 1987)."""
        return self._upper_tail(limit - abs(self.mean))

    def _upper_tail(self, beyond: float) -> float:
        if not self.freedom or isnan(beyond):
            return 1.0
        from scipy import special  # noqa: PLC0415 - an extra, and slow to load

        t = beyond / self.error if self.error else (inf if beyond > 0 else -inf)
        return float(special.stdtr(self.freedom, -t))


def paired_ratio(first: Mapping[int, float], second: Mapping[int, float]) -> RatioEstimate | None:
    """Compare two cells in the rounds that both have; None if there is none.

    Parameters
    ----------
    first, second
        The same metric of each run, by round; what is not positive does not count.
    """
    common = [r for r in first if r in second and first[r] > 0 and second[r] > 0]
    return ratio_of_logs(np.array([log(second[r] / first[r]) for r in common])) if common else None


def ratio_of_logs(logs: Floats) -> RatioEstimate:
    """Return the ratio that has one logarithm per round."""
    freedom = len(logs) - 1
    error = float(logs.std(ddof=1)) / sqrt(len(logs)) if freedom else inf
    return RatioEstimate(mean=float(logs.mean()), error=error, freedom=freedom)


def welch_ratio(first: Floats, second: Floats) -> RatioEstimate:
    """Compare two samples of logarithms, at least two each, that may differ in variance."""
    variances = np.array([side.var(ddof=1) / len(side) for side in (first, second)])
    sizes = np.array([len(first) - 1, len(second) - 1])
    # In shares of the sum, which may be too small to be squared.
    total = float(variances.sum())
    shares = variances / total if total else sizes / sizes.sum()
    return RatioEstimate(
        mean=float(second.mean() - first.mean()),
        error=sqrt(total),
        freedom=float(1 / (shares**2 / sizes).sum()),
    )
