"""Compute the power of comparisons, and the number of runs for a given power. Pure functions."""

from functools import cache
from math import ceil, log, sqrt
from statistics import NormalDist
from typing import Final

import numpy as np

from serverless_bench.features.compare.distributions import chi_squared_quantile
from serverless_bench.features.compare.verdict import ALPHA, MIN_BLOCKS
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
