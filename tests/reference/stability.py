"""The check of a rate, by sums over all pairs and the textbook's formulas."""

from collections.abc import Sequence
from math import ceil, inf, sqrt
from statistics import fmean, linear_regression, stdev
from typing import NamedTuple

from scipy.stats import t


class Figures(NamedTuple):
    """The figures of ``[stability]`` that a look has."""

    blocks: int
    block_s: float
    mean_per_s: float
    half_width: float
    """Return the half-width of a t-interval."""
    trend: float


def figures(samples: Sequence[float]) -> Figures:
    """Return the figures for samples of 50 ms each, without the first fifth of them."""
    window = samples[len(samples) // 5 :]
    length = max(5, ceil(6 * autocorrelation_time(window)))
    count = len(window) // length
    first = len(window) - count * length
    blocks = [20 * fmean(window[first + n * length :][:length]) for n in range(count)]
    if count < 12:
        return Figures(count, length / 20, 20 * fmean(window), inf, inf)
    mean = fmean(blocks)
    # A factor of 1.15 compensates for repeated checks.
    half = 1.15 * t.ppf(0.975, count - 1) * stdev(blocks) / sqrt(count)
    return Figures(count, length / 20, mean, half / mean, _trend(blocks) / mean)


def autocorrelation_time(window: Sequence[float]) -> float:
    """Return the integrated autocorrelation time, by Geyer's initial positive sequence."""
    mean = fmean(window)
    away = [one - mean for one in window]
    lags = range(len(window) // 2 // 2 * 2)
    at = [sum(a * b for a, b in zip(away, away[lag:], strict=False)) for lag in lags]
    total = 0.0
    for even in lags[::2]:
        pair = at[even] + at[even + 1]
        if pair <= 0:
            break
        total += pair
    return max(1.0, 2 * total / at[0] - 1)


def _trend(blocks: Sequence[float]) -> float:
    places = range(len(blocks))
    slope, start = linear_regression(places, blocks)
    off = [one - start - slope * at for at, one in enumerate(blocks)]
    middle = fmean(places)
    spread = sum((at - middle) ** 2 for at in places)
    error = sqrt(sum(one * one for one in off) / (len(blocks) - 2) / spread)
    return len(blocks) * (abs(slope) + 2 * error)
