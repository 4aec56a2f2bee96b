"""Ranks of percentiles and of the bounds of their intervals, among sorted values. Pure functions.

A percentile is the smallest value that is at or above a given share of all values (nearest rank,
Hyndman and Fan's type 1), both for raw values and for histograms. The number of values at or below
the true percentile is binomial, so two ranks bound it for any distribution (Conover 1999,
"Practical Nonparametric Statistics", section 3.2).
"""

from functools import cache
from math import lgamma, log, sqrt
from typing import Final

import numpy as np

ALPHA: Final = 0.05
"""Maximum probability that an interval misses the true percentile."""
_REACH: Final = 9.0
"""Standard deviations on either side of the mean; probabilities beyond are below rounding."""


@cache
def interval_ranks(percent: float, count: int) -> tuple[int, int]:
    """Return the ranks of the bounds of a percentile's interval, at least at ``1 - ALPHA``.

    Parameters
    ----------
    percent
        Percentage, above 0 and below 100.
    count
        Number of values.

    Returns
    -------
    tuple
        From 1 to ``count``; 0 or ``count + 1`` if there are too few values for a bound.
    """
    share = percent / 100
    reach = _REACH * sqrt(count * share * (1 - share)) + _REACH
    first, last = max(0, int(count * share - reach)), min(count, int(count * share + reach))
    below = np.arange(first, last)
    steps = np.log((count - below) / (below + 1) * (share / (1 - share)))
    at_first = lgamma(count + 1) - lgamma(first + 1) - lgamma(count - first + 1)
    at_first += first * log(share) + (count - first) * log(1 - share)
    # Probabilities that at most this number of values is at or below the percentile.
    at_most = np.cumsum(np.exp(at_first + np.concatenate(([0.0], np.cumsum(steps)))))
    low, high = np.searchsorted(at_most, (ALPHA / 2, 1 - ALPHA / 2), side="right").tolist()
    return first + low, first + high + 1
