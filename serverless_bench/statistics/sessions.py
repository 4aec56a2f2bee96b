"""One more session of runs beside earlier ones: random effects by moments. Pure.

Runs of one session share its hour. A session's level varies from session to session, a run's
logarithm around its session's level, and a session of few runs is known less well than one of
many: two variances, each from its own sum of squares (Searle, Casella and McCulloch 1992,
chapter 3). Sessions that follow each other may be alike: their correlation is estimated, and
the standard error made larger, and its degrees of freedom fewer, as of an autoregressive series
of first order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import sqrt
from typing import Final

import numpy as np

from serverless_bench.rundir.tables import Floats
from serverless_bench.statistics.ratio import RatioEstimate

_MOST_CORRELATION: Final = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSpread:
    """Spread of recorded sessions and of the runs within them, on logarithms."""

    levels: tuple[float, ...]
    """Mean of each session."""
    between: float
    """Standard deviation of these levels."""
    correlation: float
    """Correlation of sessions that follow each other."""
    within: float
    """Variance of a run within its session; 0 if no session has two runs."""
    within_freedom: int
    share: float
    """Mean share of that variance that is left in a level: 1 if each session has one run."""

    @classmethod
    def of(cls, sessions: Sequence[Floats]) -> "SessionSpread":
        """Return the spread of two sessions or more, each of one run or more."""
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
        """Return a new session's level against the mean of recorded ones.

        Parameters
        ----------
        level
            Of the new session.
        runs
            In the new session.
        sessions
            Recorded ones of the same spread.
        """
        factor, worth = _prediction_factors(sessions, self.correlation)
        recorded = self.between**2 * factor
        # Of a new session with fewer runs than the recorded ones, more of the variance is left.
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
    """Return the correlation of neighbours in a series, 0 at least.

    The estimate of a short series is too low, by (1 + 4r) / n on average where the mean is
    estimated, too (Marriott and Pope 1954); that is added.
    """
    off = logs - logs.mean()
    squares = float(off @ off)
    if not squares:
        return 0.0
    raw = float(off[1:] @ off[:-1]) / squares
    return round(min(max(raw + (1 + 4 * raw) / len(logs), 0.0), _MOST_CORRELATION), 2)


@cache
def _prediction_factors(number: int, correlation: float) -> tuple[float, int]:
    """Return the prediction variance of a series, and how many observations it is worth.

    Of an autoregressive series of first order: the variance of one more observation less the
    mean, over the expected sample variance, both exact; and Bartlett's number of independent
    observations whose sample variance is known as well.
    """
    places = np.arange(number + 1)
    covariance = correlation ** np.abs(places[:, None] - places)
    recorded, ahead = covariance[:-1, :-1], covariance[:-1, -1]
    sample = (number - recorded.sum() / number) / (number - 1)
    variance = 1 + recorded.mean() - 2 * ahead.mean()
    return float(variance / sample), max(2, int(number**2 / (recorded**2).sum()))
