"""Histograms of latencies, and ranks of their percentiles. Pure.

Percentiles cannot be averaged, but counts can be added. Each interval between powers of two has 64
buckets of equal width, as in HdrHistogram and OpenHistogram, so the middle of a bucket is within
1/128 (0.8 %) of all its values, from 128 ns to 292 years; below 128 ns each nanosecond has a
bucket. Buckets are computed with integer arithmetic, so they are the same on any machine.

Existing libraries were not used because they take single values (``ddsketch``, ``hdrhistogram``:
about a second for a million operations, compared to 15 ms here), need protobuf or a C library,
and do not store their buckets as JSON. Reductions are also the purpose of this package.

A percentile is the smallest value that is at or above a given share of all values (nearest rank,
Hyndman and Fan's type 1), both for raw values and for histograms. The number of values at or below
the true percentile is binomial, so two ranks bound it for any distribution (Conover 1999,
"Practical Nonparametric Statistics", section 3.2).
"""

from collections.abc import Sequence
from functools import cache
from math import lgamma, log, sqrt
from typing import Final, Self

import numpy as np
from msgspec import Struct

from serverless_bench.rundir.tables import Floats, Ints

_BITS: Final = 6
"""Number of leading bits that select the bucket within a power of two."""
_PER_OCTAVE: Final = 1 << _BITS
_CHUNK: Final = 1 << 16
"""Number of durations processed at a time."""

RELATIVE_ERROR: Final = 1 / (2 * _PER_OCTAVE)
"""Maximum relative error of a percentile compared to the order statistic."""


class Histogram(Struct, frozen=True, kw_only=True):
    """Number of occurrences of each duration. Empty by default; see ``of``."""

    count: int = 0
    sum_ns: int = 0
    """Exact sum."""
    min_ns: int | None = None
    max_ns: int | None = None
    """Exact maximum; None if the histogram is empty."""
    buckets: tuple[int, ...] = ()
    """Buckets with values, ascending."""
    counts: tuple[int, ...] = ()
    """Number of durations in each bucket."""

    @classmethod
    def from_durations(cls, durations_ns: Ints) -> Self:
        """Return the histogram of durations, shape ``(durations,)``.

        Raises
        ------
        ValueError
            If a duration is negative.
        """
        if not len(durations_ns):
            return cls()
        lowest = int(durations_ns.min())
        if lowest < 0:
            raise ValueError(f"a duration is negative: {lowest} ns")
        highest = int(durations_ns.max())
        counts_by_bucket = np.zeros(int(_bucket(np.asarray([highest]))[0]) + 1, dtype=np.int64)
        for begin in range(0, len(durations_ns), _CHUNK):
            some = durations_ns[begin : begin + _CHUNK]
            counts_by_bucket += np.bincount(_bucket(some), minlength=len(counts_by_bucket))
        buckets = np.flatnonzero(counts_by_bucket)
        return cls(
            count=len(durations_ns),
            sum_ns=_sum(durations_ns),
            min_ns=lowest,
            max_ns=highest,
            buckets=tuple(buckets.tolist()),
            counts=tuple(counts_by_bucket[buckets].tolist()),
        )

    def at_ranks(self, ranks: Sequence[int]) -> Floats:
        """Return the durations in ns at the given ranks, from 1, of a non-empty histogram.

        They are within ``RELATIVE_ERROR`` of the order statistics; the largest is exact.
        """
        places = np.searchsorted(np.cumsum(self.counts), ranks).tolist()
        durations = np.array([middle_ns(self.buckets[place]) for place in places])
        durations[np.asarray(ranks) >= self.count] = self.max_ns
        return np.asarray(np.clip(durations, self.min_ns, self.max_ns))


def _bucket(durations_ns: Ints) -> Ints:
    """Return the bucket of each duration."""
    # Beyond 2**53, ``frexp`` may round up to the next power of two; the additional shift then
    # gives 63 of that octave, which is 127 of the octave below: the same bucket.
    magnitude = np.frexp(durations_ns.astype(np.float64))[1].astype(np.int64)
    shift = np.maximum(magnitude - (_BITS + 1), 0)
    return np.asarray(shift * _PER_OCTAVE + (durations_ns >> shift), dtype=np.int64)


def middle_ns(bucket: int) -> float:
    """Return the middle of a bucket, in ns."""
    shift = max(0, bucket // _PER_OCTAVE - 1)
    low = (bucket - shift * _PER_OCTAVE) << shift
    return low + ((1 << shift) - 1) / 2


def _sum(durations_ns: Ints) -> int:
    """Return the sum without overflow; a million durations of five hours exceed an int64."""
    return (int((durations_ns >> 32).sum()) << 32) + int((durations_ns & 0xFFFF_FFFF).sum())


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
