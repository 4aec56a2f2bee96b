"""Whether a rate is known well enough to stop: means of blocks that may be looked at. Pure.

A run that ends as soon as an interval is narrow is looked at again and again, and ends when
the interval happens to be too narrow. Four things keep its word all the same. Blocks are as
long as several autocorrelation times of the rate, and there are at least ``MIN_BLOCKS``, whose
few degrees of freedom are made up for (Student's t). The rate has no trend over the window that
could be more than ``MOST_TREND`` times what is asked for. And all of that holds for as long
again as a share of the run, ``HOLDING_SHARE``, at every look, and not before ``MIN_S``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, inf, sqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from serverless_bench.rundir.tables import Floats

SAMPLE_S: Final = 0.05
"""How long each sample of the rate is."""
LOOK_S: Final = 0.5
"""From one look to the next, at least."""
HOLDING_SHARE: Final = 0.5
"""Of the time from the beginning until it held for the first time."""
MOST_TREND: Final = 3.0
"""How many times what is asked for the rate may rise or fall over the window."""
MIN_BLOCKS: Final = 12
MIN_S: Final = 30.0
"""How long a run is looked at, at least: bursts of a store and its cycles are longer than that,
but not as often as they are longer than a few seconds."""
CONFIDENCE: Final = 0.95
_MIN_BLOCK: Final = 5
"""Samples."""
BLOCK_AUTOCORRELATION_TIMES: Final = 6.0
"""How long a block is, in autocorrelation times of the rate."""
_LAUNCHING_SHARE: Final = 0.2
"""Share of the samples, the first ones, that no window has: functions are launched then."""
_FOR_LOOKING: Final = 1.15
"""How much wider the interval is for having been looked at: without, it held the truth in 93 of
100 autocorrelated series that were stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RateEstimate:
    """What a window of samples says of the mean rate; per second."""

    mean_per_s: float
    low_per_s: float
    high_per_s: float
    half_width: float
    """Of the interval, over the mean; infinite if there are too few blocks."""
    trend: float
    """How much the rate may rise or fall over the window, over the mean: the fitted line's
    rise, and two standard errors more."""
    blocks: int
    block_s: float

    def holds(self, asked: float) -> bool:
        """Tell whether the rate is known within a share of it, and goes nowhere."""
        return self.half_width <= asked and self.trend <= MOST_TREND * asked


@dataclass(slots=True)
class StoppingRule:
    """Looks at samples as they come, and says when to stop.

    Parameters
    ----------
    asked
        Half the width of the interval over the mean.
    """

    asked: float
    latest: RateEstimate | None = None
    looks: int = 0
    _since: int | None = None

    def stable(self, samples: Sequence[float] | Floats) -> bool:
        """Look at all samples so far; return whether they have been stable for long enough."""
        self.latest, count = rate_estimate(samples), len(samples)
        self.looks += 1
        if self.latest is None or not self.latest.holds(self.asked):
            self._since = None
        elif self._since is None:
            self._since = count
        if self._since is None or count * SAMPLE_S < MIN_S:
            return False
        return count >= (1 + HOLDING_SHARE) * self._since


def rate_estimate(samples: Sequence[float] | Floats) -> RateEstimate | None:
    """Return what samples of a rate say; None if there is nothing in them.

    Parameters
    ----------
    samples
        What each stretch of ``SAMPLE_S`` had, in order, from the first one that had anything.
    """
    window = np.asarray(samples, dtype=np.float64)[int(_LAUNCHING_SHARE * len(samples)) :]
    if not len(window) or not window.any():
        return None
    length = max(_MIN_BLOCK, ceil(BLOCK_AUTOCORRELATION_TIMES * _autocorrelation_time(window)))
    count = len(window) // length
    mean = float(window.mean()) / SAMPLE_S
    low, high, half_width, trend = 0.0, inf, inf, inf
    if count >= MIN_BLOCKS:
        # What does not fill a block is left out at the beginning.
        blocks = batch_means(window[len(window) - count * length :], count) / SAMPLE_S
        mean = float(blocks.mean())
        low, high = _interval(blocks, mean)
        half_width, trend = (high - low) / 2 / mean, _trend(blocks) / mean
    return RateEstimate(
        mean_per_s=mean,
        low_per_s=low,
        high_per_s=high,
        half_width=half_width,
        trend=trend,
        blocks=count,
        block_s=length * SAMPLE_S,
    )


def _trend(blocks: Floats) -> float:
    """Return how much the mean of blocks may have risen or fallen from the first to the last."""
    count = len(blocks)
    at = np.arange(count) - (count - 1) / 2
    spread = float((at**2).sum())
    slope = float((at * blocks).sum()) / spread
    rest = blocks - blocks.mean() - slope * at
    error = sqrt(float((rest**2).sum()) / (count - 2) / spread)
    return count * (abs(slope) + 2 * error)


def _autocorrelation_time(window: Floats) -> float:
    """Return the integrated autocorrelation time, in samples: 1 if they are independent.

    Sums of pairs are added up as long as they are positive (Geyer 1992, "Practical Markov chain
    Monte Carlo", section 3.3).
    """
    away = window - window.mean()
    most = len(away) // 2
    size = 1 << (2 * len(away) - 1).bit_length()
    power = np.abs(np.fft.rfft(away, size)) ** 2
    covariance = np.fft.irfft(power, size)[:most]
    if most < 2 or covariance[0] <= 0:
        return 1.0
    correlation = covariance / covariance[0]
    pairs = correlation[: most // 2 * 2].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(pairs <= 0)
    until = int(negative[0]) if len(negative) else len(pairs)
    return max(1.0, float(2 * pairs[:until].sum() - 1))


def _interval(blocks: Floats, mean: float) -> tuple[float, float]:
    """Return the interval of the mean of blocks by Student's t, stretched for looking."""
    from scipy.special import stdtrit  # noqa: PLC0415 - most runs need none

    error = float(blocks.std(ddof=1)) / sqrt(len(blocks))
    reach = _FOR_LOOKING * float(stdtrit(len(blocks) - 1, 0.5 + CONFIDENCE / 2)) * error
    return max(0.0, mean - reach), mean + reach


def batch_means(samples: NDArray[Any], count: int) -> Floats:
    """Return the means of so many batches of equal length, which have all samples."""
    means: Floats = samples.reshape(count, len(samples) // count).mean(axis=1)
    return means
