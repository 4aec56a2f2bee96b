"""How often chance lets a simulated share be met: for tests of error rates with few runs."""

from typing import Final

from scipy import stats

_ONCE_IN: Final = 1e6
"""A test with one of these bounds fails by chance once in so many seeds."""


def most(count: int, share: float) -> int:
    """Return how many of so many runs can be what at most this share of all are."""
    return int(stats.binom.ppf(1 - 1 / _ONCE_IN, count, share))


def least(count: int, share: float) -> int:
    """Return how many of so many runs have to be what at least this share of all are."""
    return int(stats.binom.ppf(1 / _ONCE_IN, count, share))
