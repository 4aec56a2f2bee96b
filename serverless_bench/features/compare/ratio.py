"""Estimate the ratio of two geometric means, with a standard error for the design. Pure functions.

Runs in blocks are pairs: a disturbance of a full block affects both parts of a ratio and cancels
out. Runs without blocks are two samples, whose variances may differ (Welch 1947). In both cases
Student's t is applied to logarithms. Rank tests need more data: with 5 blocks, the smallest p of a
sign test is 0.06.
"""

from collections.abc import Mapping
from math import exp, inf, isnan, log, sqrt
from typing import Final

import numpy as np
from msgspec import Struct, structs

from serverless_bench.features.compare.distributions import student_quantile, student_tail
from serverless_bench.features.compare.verdict import ALPHA, Interval
from serverless_bench.rundir.tables import Floats

_MOST_LOG: Final = 700.0


class RatioEstimate(Struct, frozen=True, kw_only=True):
    """Ratio of the second to the first sample: the difference of their mean logarithms."""

    mean: float
    """Difference of the mean logarithms."""
    error: float
    """Standard error of the difference."""
    freedom: float
    """Degrees of freedom of the standard error; 0 if it is unknown."""

    @property
    def ratio(self) -> float:
        """Geometric mean of the second sample divided by that of the first."""
        return exp(self.mean)

    @property
    def rounds(self) -> int:
        """Number of rounds of a paired ratio."""
        return round(self.freedom) + 1

    @property
    def sd(self) -> float:
        """Standard deviation of the logarithm of a paired ratio within a round."""
        return self.error * sqrt(self.rounds)

    def shifted(self, by: float) -> "RatioEstimate":
        """Return the estimate with a constant added to the logarithm."""
        return structs.replace(self, mean=self.mean + by)

    def inverse(self) -> "RatioEstimate":
        """Return the ratio of the first to the second sample."""
        return structs.replace(self, mean=-self.mean)

    def interval(self, confidence: float = 1 - ALPHA) -> Interval | None:
        """Return the interval of the true ratio; None without a standard error."""
        if not self.freedom:
            return None
        reach = student_quantile(self.freedom, (1 + confidence) / 2) * self.error
        # With few degrees of freedom, the interval may exceed the range of floats.
        low, high = (exp(min(end, _MOST_LOG)) for end in (self.mean - reach, self.mean + reach))
        return Interval(low=low, high=high, confidence=confidence)

    def p_above(self, limit: float = 0.0) -> float:
        """Return the p-value of "the logarithm is at most ``limit``"; small if it is above."""
        return self._upper_tail(self.mean - limit)

    def p_below(self, limit: float = 0.0) -> float:
        """Return the p-value of "the logarithm is at least ``limit``"; small if it is below."""
        return self._upper_tail(limit - self.mean)

    def p_different(self) -> float:
        """Return the two-sided p-value of "the ratio is 1"."""
        return min(1.0, 2 * self._upper_tail(abs(self.mean)))

    def p_same(self, limit: float) -> float:
        """Return the p-value of "they differ by ``limit`` or more" (Schuirmann 1987)."""
        return self._upper_tail(limit - abs(self.mean))

    def _upper_tail(self, beyond: float) -> float:
        if not self.freedom or isnan(beyond):
            return 1.0
        t = beyond / self.error if self.error else (inf if beyond > 0 else -inf)
        return student_tail(self.freedom, t)


def paired_ratio(first: Mapping[int, float], second: Mapping[int, float]) -> RatioEstimate | None:
    """Compare two cells in their common rounds; None without common rounds.

    Parameters
    ----------
    first, second
        Values of the same metric, by round; values that are not positive are ignored.
    """
    common = [r for r in first if r in second and first[r] > 0 and second[r] > 0]
    return ratio_of_logs(np.array([log(second[r] / first[r]) for r in common])) if common else None


def ratio_of_logs(logs: Floats) -> RatioEstimate:
    """Return the ratio estimated from a logarithm per round."""
    freedom = len(logs) - 1
    error = float(logs.std(ddof=1)) / sqrt(len(logs)) if freedom else inf
    return RatioEstimate(mean=float(logs.mean()), error=error, freedom=freedom)


def welch_ratio(first: Floats, second: Floats) -> RatioEstimate:
    """Compare samples of at least two logarithms, possibly with different variances."""
    variances = np.array([side.var(ddof=1) / len(side) for side in (first, second)])
    sizes = np.array([len(first) - 1, len(second) - 1])
    # Use shares of the sum, because squares of the variances may underflow.
    total = float(variances.sum())
    shares = variances / total if total else sizes / sizes.sum()
    return RatioEstimate(
        mean=float(second.mean() - first.mean()),
        error=sqrt(total),
        freedom=float(1 / (shares**2 / sizes).sum()),
    )
