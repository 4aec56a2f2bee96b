"""Compare a new session of runs with earlier sessions: random effects by moments. Pure functions.

Runs of a session share its time. The level of a session varies between sessions, the logarithm of a
run varies around the level of its session, and the level of a session with few runs is known less
precisely: two variances, each from its own sum of squares (Searle, Casella and McCulloch 1992,
chapter 3). Consecutive sessions may be similar: their correlation is estimated, and the standard
error is increased, and its degrees of freedom reduced, as for an autoregressive series of first
order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import sqrt
from typing import Final

import numpy as np

from serverless_bench.features.compare.ratio import RatioEstimate
from serverless_bench.rundir.tables import Floats

_MOST_CORRELATION: Final = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSpread:
    """Spread of recorded sessions and of their runs, on logarithms."""

    levels: tuple[float, ...]
    """Mean of each session."""
    between: float
    """Standard deviation of the levels."""
    correlation: float
    """Correlation of consecutive sessions."""
    within: float
    """Variance of runs within sessions; 0 if no session has two runs."""
    within_freedom: int
    share: float
    """Mean share of this variance that remains in a level: 1 if each session has a single run."""

    @classmethod
    def from_levels(cls, sessions: Sequence[Floats]) -> "SessionSpread":
        """Return the spread of at least two non-empty sessions."""
        levels = np.array([session.mean() for session in sessions])
        squares = sum(float(((session - session.mean()) ** 2).sum()) for session in sessions)
        freedom = sum(len(session) - 1 for session in sessions)
        return cls(
            levels=tuple(levels.tolist()),
            between=float(levels.std(ddof=1)),
            correlation=serial_correlation(levels),
            within=squares / freedom if freedom else 0.0,
            within_freedom=freedom,
            share=float(np.mean([1 / len(session) for session in sessions])),
        )

    def one_more(self, level: float, runs: int, sessions: int) -> RatioEstimate:
        """Return the level of a new session compared with the mean of recorded sessions.

        Parameters
        ----------
        level
            Level of the new session.
        runs
            Number of runs in the new session.
        sessions
            Number of recorded sessions with the same spread.
        """
        factor, worth = _prediction_factors(sessions, self.correlation)
        recorded = self.between**2 * factor
        # A new session with fewer runs than the recorded sessions retains more of the variance.
        unlike = self.within * (1 / runs - self.share)
        variance, freedom = recorded + unlike, worth - 1.0
        if variance < self.within / runs:
            variance, freedom = self.within / runs, float(self.within_freedom)
        elif unlike:
            shares = np.array([recorded, unlike]) / variance
            freedom = float(1 / (shares**2 / [worth - 1, self.within_freedom]).sum())
        return RatioEstimate(
            mean=level - float(np.mean(self.levels)), error=sqrt(variance), freedom=freedom
        )


def serial_correlation(logs: Floats) -> float:
    """Return the correlation of consecutive values of a series, at least 0.

    The estimate from a short series with estimated mean is biased by -(1 + 4r) / n on average
    (Marriott and Pope 1954); this bias is corrected.
    """
    deviations = logs - logs.mean()
    squares = float(deviations @ deviations)
    if not squares:
        return 0.0
    raw = float(deviations[1:] @ deviations[:-1]) / squares
    return round(min(max(raw + (1 + 4 * raw) / len(logs), 0.0), _MOST_CORRELATION), 2)


@cache
def _prediction_factors(number: int, correlation: float) -> tuple[float, int]:
    """Return the prediction variance of a series, and its effective number of observations.

    For an autoregressive series of first order: the exact variance of the next observation minus
    the mean, relative to the exact expected sample variance; and Bartlett's number of independent
    observations whose sample variance is equally precise.
    """
    places = np.arange(number + 1)
    covariance = correlation ** np.abs(places[:, None] - places)
    recorded, ahead = covariance[:-1, :-1], covariance[:-1, -1]
    sample = (number - recorded.sum() / number) / (number - 1)
    variance = 1 + recorded.mean() - 2 * ahead.mean()
    return float(variance / sample), max(2, int(number**2 / (recorded**2).sum()))
