"""Two things compared within rounds, as the mean logarithm of their ratios; power. Pure.

What makes a whole round slow is in both parts of a ratio and goes out of it: a randomised
block design. What is left is taken to be normal on logarithms; Student's t holds its level well
where it is not, and no rank test can: with 5 rounds the least p of a sign test is 0.06.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from math import ceil, exp, inf, isnan, log, pi, sqrt
from statistics import NormalDist
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
