"""Estimate the ratio of two geometric means, with a standard error for the design. Pure functions.

Runs in blocks are pairs: a disturbance of a full block affects both parts of a ratio and cancels
out. Runs without blocks are two samples, whose variances may differ (Welch 1947). In both cases
Student's t is applied to logarithms. Rank tests need more data: with 5 blocks, the smallest p of a
sign test is 0.06.

The power of comparisons, and the number of runs for a given power, follow from the same design.
"""

from collections.abc import Mapping
from functools import cache
from math import ceil, exp, inf, isnan, log, sqrt
from statistics import NormalDist
from typing import Final

import numpy as np
from msgspec import Struct, structs

from serverless_bench.features.compare.distributions import (
    chi_squared_quantile,
    student_quantile,
    student_tail,
)
from serverless_bench.features.compare.verdict import ALPHA, MIN_BLOCKS, Interval
from serverless_bench.rundir.tables import Floats

ENOUGH: Final = 0.9
MOST_ROUNDS: Final = 200
UPPER: Final = 0.8
"""Confidence of the upper limit of a spread, for recommended numbers of runs."""
_GRID: Final = (np.arange(400) + 0.5) / 400
"""Quantiles at which the distribution of a standard deviation is evaluated."""


def found_share(
    error: float, freedom: float, tests: int, *, ratio: float, threshold: float
) -> float:
    """Return the share of comparisons that detect a true ratio.

    Parameters
    ----------
    error
        Standard error of the logarithm of the estimated ratio.
    freedom
        Degrees of freedom of the standard error.
    tests
        Number of comparisons of the study. Each uses its share of ``ALPHA``; Holm's
        procedure has at least this power.
    ratio, threshold
        True ratio, and the minimum relative difference of an estimate.
    """
    if not freedom:
        return 0.0
    from scipy import special

    critical = float(special.stdtrit(freedom, 1 - ALPHA / (2 * max(1, tests))))
    estimated = error * _spreads(freedom)
    least = np.maximum(critical * estimated, log(1 + threshold))
    return float(special.ndtr((log(ratio) - least) / max(error, np.finfo(float).tiny)).mean())


@cache
def _spreads(freedom: float) -> Floats:
    """Return quantiles of an estimated standard deviation relative to the true value."""
    from scipy import special

    return np.asarray(np.sqrt(special.chdtri(freedom, _GRID) / freedom))


def rounds_needed(sd: float, tests: int, *, ratio: float, threshold: float) -> int | None:
    """Return the number of rounds that detect a true ratio with power ``ENOUGH``.

    At least ``MIN_BLOCKS``; None if more than ``MOST_ROUNDS``. ``sd`` is the standard deviation of
    the logarithm of a ratio within a round.
    """

    def enough(rounds: int) -> bool:
        error = sd / sqrt(rounds)
        return found_share(error, rounds - 1, tests, ratio=ratio, threshold=threshold) >= ENOUGH

    return next((number for number in range(MIN_BLOCKS, MOST_ROUNDS + 1) if enough(number)), None)


def runs_for_same(variance: float, limit: float) -> int:
    """Return the runs per side with which equal sides are judged the same with power ``ENOUGH``.

    Two one-sided tests on normal data (Chow, Shao and Wang 2008, section 3.2.3), and
    Guenther's (1981) quarter of z squared for few runs.

    Parameters
    ----------
    variance
        Variance of the logarithm of a run.
    limit
        Smallest relevant difference, as a logarithm.
    """
    test_z = NormalDist().inv_cdf(1 - ALPHA)
    z = test_z + NormalDist().inv_cdf((1 + ENOUGH) / 2)
    return ceil(2 * variance * (z / limit) ** 2 + test_z**2 / 4)


def spread_factor(freedom: float, confidence: float = 0.5) -> float:
    """Return an upper limit of the true standard deviation relative to its estimate.

    Parameters
    ----------
    freedom
        Degrees of freedom of the estimate.
    confidence
        Confidence of the limit. Estimates from few runs are too small more often than not, and
        would overestimate the power.
    """
    return sqrt(freedom / chi_squared_quantile(freedom, 1 - confidence))


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
