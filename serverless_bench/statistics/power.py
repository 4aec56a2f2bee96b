"""Runs that it takes to find a difference, or that there is none. Pure."""

from functools import cache
from math import ceil, log, pi, sqrt
from statistics import NormalDist
from typing import Final

import numpy as np

from serverless_bench.rundir.tables import Floats
from serverless_bench.statistics.verdict import ALPHA

ENOUGH: Final = 0.9
MOST_ROUNDS: Final = 200
_DRAWS: Final = 2_000
_SEED: Final = 20261121
_STEP: Final = 1.15


def found_share(sd: float, rounds: int, tests: int, *, ratio: float, threshold: float) -> float:
    """Return the share of simulated experiments that find a true ratio.

    Parameters
    ----------
    sd
        Of the logarithm of a ratio within one round.
    rounds
        How many.
    tests
        Comparisons of the experiment. Each is held to its share of ``ALPHA``; Holm's
        procedure finds at least as much.
    ratio, threshold
        What is there, and how much an estimate must be off 1.
    """
    if rounds < 2:
        return 0.0
    from scipy import special  # noqa: PLC0415 - an extra, and slow to load

    means, spreads = _drawn(rounds)
    mean, error = log(ratio) + sd * means, sd * spreads / sqrt(rounds)
    least = float(special.stdtrit(rounds - 1, 1 - ALPHA / (2 * max(1, tests))))
    hit = (mean > least * error) & (mean > log(1 + threshold))
    return float(np.mean(hit))


def rounds_needed(sd: float, tests: int, *, ratio: float, threshold: float) -> int | None:
    """Return the rounds that find a true ratio in ``ENOUGH`` of the experiments."""
    rounds = last = 2
    while rounds <= MOST_ROUNDS:
        if found_share(sd, rounds, tests, ratio=ratio, threshold=threshold) >= ENOUGH:
            # Between the last step and this one.
            return next(
                n
                for n in range(last, rounds + 1)
                if found_share(sd, n, tests, ratio=ratio, threshold=threshold) >= ENOUGH
            )
        last, rounds = rounds + 1, max(rounds + 1, round(rounds * _STEP))
    return None


@cache
def _drawn(rounds: int) -> tuple[Floats, Floats]:
    """Return means and standard deviations of so many normal numbers, drawn by a fixed seed.

    Both as of a standard deviation of 1: they scale, so that one draw serves all cells.
    """
    drawn = np.random.default_rng((_SEED, rounds)).standard_normal((_DRAWS, rounds))
    return drawn.mean(axis=1), drawn.std(axis=1, ddof=1)


def runs_for_same(variance: float, limit: float) -> int:
    """Return the runs per side with which equal sides are found the same in ``ENOUGH`` of cases.

    Two one-sided tests on normal data (Chow, Shao and Wang 2008, section 3.2.3), pi/3 times
    as many because ranks are used, and Guenther's (1981) quarter of z squared for few runs.

    Parameters
    ----------
    variance
        Of the logarithm of a run.
    limit
        Logarithm from which on a difference matters.
    """
    test_z = NormalDist().inv_cdf(1 - ALPHA)
    z = test_z + NormalDist().inv_cdf((1 + ENOUGH) / 2)
    return ceil(2 * variance * (z / limit) ** 2 * pi / 3 + test_z**2 / 4)


def small_sample_factor(rounds: int) -> float:
    """Return the factor that makes a standard deviation as likely too large as too small.

    That of few blocks is too small more often than not, and would promise too much power.
    """
    from scipy import special  # noqa: PLC0415 - as above

    return sqrt((rounds - 1) / float(special.chdtri(rounds - 1, 0.5)))
