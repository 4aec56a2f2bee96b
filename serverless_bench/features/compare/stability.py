"""Decide whether the mean rate is known well enough to stop, using batch means. Pure functions.

A run that ends as soon as an interval is narrow is checked repeatedly, and tends to end when the
interval is too narrow by chance. Four rules preserve the coverage. Blocks are longer than the
autocorrelation time of the rate, and there are at least ``MIN_BLOCKS``, with Student's t for the
small number of degrees of freedom. The trend of the rate over the window is at most ``MOST_TREND``
times the requested precision. Both have to hold at every check for an additional share of the
run, ``HOLDING_SHARE``. And a run takes at least ``MIN_S``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, inf, sqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from serverless_bench.features.compare.distributions import student_quantile
from serverless_bench.rundir.tables import Floats

SAMPLE_S: Final = 0.05
"""Duration of each sample of the rate."""
LOOK_S: Final = 0.5
"""Minimum time between checks."""
HOLDING_SHARE: Final = 0.5
"""Additional duration, as a share of the time until the conditions first held."""
MOST_TREND: Final = 3.0
"""Maximum change of the rate over the window, as a multiple of the requested precision."""
MIN_BLOCKS: Final = 12
MIN_S: Final = 30.0
"""Minimum duration: bursts and cycles of a store may exceed it, but not as frequently as they
exceed a few seconds."""
CONFIDENCE: Final = 0.95
_MIN_BLOCK: Final = 5
"""Minimum length of a block in samples."""
BLOCK_AUTOCORRELATION_TIMES: Final = 6.0
"""Length of a block in autocorrelation times of the rate."""
_LAUNCHING_SHARE: Final = 0.2
"""Share of the samples excluded at the start, while functions are launched."""
_FOR_LOOKING: Final = 1.15
"""Widening of the interval due to repeated checks: without it, the interval contained the true
value in 93 of 100 autocorrelated series that were stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RateEstimate:
    """Estimate of the mean rate from a window of samples, per second."""

    mean_per_s: float
    low_per_s: float
    high_per_s: float
    half_width: float
    """Half-width of the interval relative to the mean; infinite if there are too few blocks."""
    trend: float
    """Upper bound of the change over the window relative to the mean: change of the fitted line
    plus two standard errors."""
    blocks: int
    block_s: float

    def holds(self, asked: float) -> bool:
        """Return whether the rate is known to the requested precision and has no trend."""
        return self.half_width <= asked and self.trend <= MOST_TREND * asked


@dataclass(slots=True)
class StoppingRule:
    """Checks samples during a run, and decides when to stop.

    Parameters
    ----------
    asked
        Requested half-width of the interval relative to the mean.
    """

    asked: float
    latest: RateEstimate | None = None
    looks: int = 0
    _since: int | None = None

    def stable(self, samples: Sequence[float] | Floats) -> bool:
        """Check all samples so far; return whether they have been stable for long enough."""
        self.latest, count = rate_estimate(samples), len(samples)
        self.looks += 1
        if self.latest is None or not self.latest.holds(self.asked):
            self._since = None
        elif self._since is None:
            self._since = count
        is_long = self._since is not None and count >= (1 + HOLDING_SHARE) * self._since
        return is_long and count * SAMPLE_S >= MIN_S


def rate_estimate(samples: Sequence[float] | Floats) -> RateEstimate | None:
    """Return the estimate from samples of a rate; None if they are empty or zero.

    Parameters
    ----------
    samples
        Amount in each interval of ``SAMPLE_S``, in order, starting with the first non-zero one.
    """
    window = np.asarray(samples, dtype=np.float64)[int(_LAUNCHING_SHARE * len(samples)) :]
    if not len(window) or not window.any():
        return None
    length = max(_MIN_BLOCK, ceil(BLOCK_AUTOCORRELATION_TIMES * _autocorrelation_time(window)))
    count = len(window) // length
    mean = float(window.mean()) / SAMPLE_S
    low, high, half_width, trend = 0.0, inf, inf, inf
    if count >= MIN_BLOCKS:
        # Samples that do not fill a block are dropped at the start.
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
    """Return an upper bound of the change of the block means from first to last."""
    count = len(blocks)
    at = np.arange(count) - (count - 1) / 2
    spread = float((at**2).sum())
    slope = float((at * blocks).sum()) / spread
    rest = blocks - blocks.mean() - slope * at
    error = sqrt(float((rest**2).sum()) / (count - 2) / spread)
    return count * (abs(slope) + 2 * error)


def _autocorrelation_time(window: Floats) -> float:
    """Return the integrated autocorrelation time in samples; 1 for independent samples.

    Pairs are summed as long as they are positive (Geyer 1992, "Practical Markov chain Monte
    Carlo", section 3.3).
    """
    away = window - window.mean()
    max_lag = len(away) // 2
    size = 1 << (2 * len(away) - 1).bit_length()
    power = np.abs(np.fft.rfft(away, size)) ** 2
    covariance = np.fft.irfft(power, size)[:max_lag]
    if max_lag < 2 or covariance[0] <= 0:
        return 1.0
    correlation = covariance / covariance[0]
    pairs = correlation[: max_lag // 2 * 2].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(pairs <= 0)
    until = int(negative[0]) if len(negative) else len(pairs)
    return max(1.0, float(2 * pairs[:until].sum() - 1))


def _interval(blocks: Floats, mean: float) -> tuple[float, float]:
    """Return the interval of the mean by Student's t, widened for repeated checks."""
    error = float(blocks.std(ddof=1)) / sqrt(len(blocks))
    reach = _FOR_LOOKING * student_quantile(len(blocks) - 1, 0.5 + CONFIDENCE / 2) * error
    return max(0.0, mean - reach), mean + reach


def batch_means(samples: NDArray[Any], count: int) -> Floats:
    """Return the means of ``count`` batches of equal length that cover all samples."""
    means: Floats = samples.reshape(count, len(samples) // count).mean(axis=1)
    return means
