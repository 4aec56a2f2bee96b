"""Latencies as counts that can be added up: percentiles of many runs, within 1 %. Pure.

Percentiles cannot be averaged, counts can be added. A bucket is one of 64 of equal width
between two powers of two, as in HdrHistogram and OpenHistogram, so the middle of a bucket
is within 1/128 (0.8 %) of everything in it, from 128 ns up to 292 years; below 128 ns
every nanosecond has its own. Which bucket a duration is in is arithmetic of integers:
merging is exact, in any order, on any machine.

Own code, because the libraries take one value at a time (``ddsketch``, ``hdrhistogram``:
a second or so for a million operations, this takes 15 ms), need protobuf or a C library,
and their buckets are no JSON. What is saved is what this package is for: a reduction.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np

from serverless_bench.rundir.tables import Floats, Ints

_BITS: Final = 6
"""Of a duration that decide, with its magnitude, in which bucket it is."""
_PER_OCTAVE: Final = 1 << _BITS
_CHUNK: Final = 1 << 16
"""Durations that are sorted into buckets at a time."""

RELATIVE_ERROR: Final = 1 / (2 * _PER_OCTAVE)
"""How far a percentile may be from the order statistic that it stands for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """How often each duration occurred. Empty as it is; ``of`` and ``merge`` fill one.

    ``dataclasses.asdict`` makes JSON of it and ``from_json`` takes it back.
    """

    count: int = 0
    sum_ns: int = 0
    """Exact."""
    min_ns: int | None = None
    max_ns: int | None = None
    """Exact; None when it is empty."""
    buckets: tuple[int, ...] = ()
    """Those that anything is in, ascending."""
    counts: tuple[int, ...] = ()
    """How many durations are in each of them."""

    @classmethod
    def of(cls, durations_ns: Ints) -> Self:
        """Return the histogram of durations, shape ``(durations,)``.

        Raises
        ------
        ValueError
            If one is negative.
        """
        if not len(durations_ns):
            return cls()
        lowest = int(durations_ns.min())
        if lowest < 0:
            raise ValueError(f"a duration of {lowest} ns")
        highest = int(durations_ns.max())
        found = np.zeros(int(_bucket(np.asarray([highest]))[0]) + 1, dtype=np.int64)
        for begin in range(0, len(durations_ns), _CHUNK):
            some = durations_ns[begin : begin + _CHUNK]
            found += np.bincount(_bucket(some), minlength=len(found))
        buckets = np.flatnonzero(found)
        return cls(
            count=len(durations_ns),
            sum_ns=_sum(durations_ns),
            min_ns=lowest,
            max_ns=highest,
            buckets=tuple(buckets.tolist()),
            counts=tuple(found[buckets].tolist()),
        )

    def merge(self, other: "Histogram") -> "Histogram":
        """Return the histogram of both's durations: the same in any order and grouping."""
        counts = Counter(dict(zip(self.buckets, self.counts, strict=True)))
        counts.update(dict(zip(other.buckets, other.counts, strict=True)))
        lows = [one.min_ns for one in (self, other) if one.min_ns is not None]
        highs = [one.max_ns for one in (self, other) if one.max_ns is not None]
        return Histogram(
            count=self.count + other.count,
            sum_ns=self.sum_ns + other.sum_ns,
            min_ns=min(lows, default=None),
            max_ns=max(highs, default=None),
            buckets=tuple(sorted(counts)),
            counts=tuple(counts[bucket] for bucket in sorted(counts)),
        )

    def at_ranks(self, ranks: Sequence[int]) -> Floats:
        """Return the durations in ns of some ranks, from 1, of a histogram that is not empty.

        They are within ``RELATIVE_ERROR`` of these order statistics; the largest is exact.
        """
        places = np.searchsorted(np.cumsum(self.counts), ranks).tolist()
        found = np.array([middle_ns(self.buckets[place]) for place in places])
        found[np.asarray(ranks) >= self.count] = self.max_ns
        return np.asarray(np.clip(found, self.min_ns, self.max_ns))

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return the histogram that ``asdict`` made ``data`` from.

        Raises
        ------
        TypeError, ValueError
            If ``data`` is anything else.
        """
        lists = {name: tuple(map(int, data.get(name, ()))) for name in ("buckets", "counts")}
        found = cls(**{**data, **lists})
        if len(found.buckets) != len(found.counts) or sum(found.counts) != found.count:
            raise ValueError("the counts of a histogram do not add up")
        return found


def _bucket(durations_ns: Ints) -> Ints:
    """Return the bucket of each duration."""
    # Beyond 2**53 ``frexp`` may round up to the next power of two; what is shifted by one
    # more bit then is 63 of that octave, which is 127 of the one below: the same bucket.
    magnitude = np.frexp(durations_ns.astype(np.float64))[1].astype(np.int64)
    shift = np.maximum(magnitude - (_BITS + 1), 0)
    return np.asarray(shift * _PER_OCTAVE + (durations_ns >> shift), dtype=np.int64)


def middle_ns(bucket: int) -> float:
    """Return the middle of what is in a bucket, in ns."""
    shift = max(0, bucket // _PER_OCTAVE - 1)
    low = (bucket - shift * _PER_OCTAVE) << shift
    return low + ((1 << shift) - 1) / 2


def _sum(durations_ns: Ints) -> int:
    """Return the sum; a million of five hours each are more than an int64 holds."""
    return (int((durations_ns >> 32).sum()) << 32) + int((durations_ns & 0xFFFF_FFFF).sum())
