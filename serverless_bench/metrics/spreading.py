"""Sum byte intervals with constant rates, and overlaps, in segments of equal length. Pure."""

from typing import Final

import numpy as np

from serverless_bench.rundir.tables import Floats, Ints

_MOST_PIECES: Final = 1 << 24
"""Maximum number of pieces; a thousand intervals of a month would have a hundred million."""


def elapsed_before(length: Ints, row: Ints) -> Ints:
    """Return the sum of the earlier steps of the same operation for each step, in ns.

    Parameters
    ----------
    length
        Duration of each step, in ns.
    row
        Operation of each step, ascending; same shape.
    """
    before = np.cumsum(length) - length
    is_first = np.ones(len(row), dtype=bool)
    is_first[1:] = row[1:] != row[:-1]
    counts = np.diff(np.append(np.flatnonzero(is_first), len(row)))
    return np.asarray(before - np.repeat(before[is_first], counts), dtype=np.int64)


def spread(segments: Ints, begin: Ints, length: Ints, moved: Ints, segment_ns: int) -> None:
    """Add intervals with constant rates to ``segments``, splitting them at segment borders."""
    last_ns = len(segments) * segment_ns - 1
    first = np.clip(begin, 0, last_ns) // segment_ns
    last = np.clip(begin + np.maximum(length, 1) - 1, 0, last_ns) // segment_ns
    single = first == last
    np.add.at(segments, first[single], moved[single])
    if single.all():
        return
    first, last, begin, length, moved = (
        values[~single] for values in (first, last, begin, length, moved)
    )
    pieces = last - first + 1
    if pieces.sum() > _MOST_PIECES:
        segments += _rounded(len(segments), begin, length, moved, segment_ns)
        return
    of = np.repeat(np.arange(len(first)), pieces)
    nth = np.arange(len(of)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    cell = first[of] + nth
    share = ((cell + 1) * segment_ns - begin[of]) / length[of]
    # A cumulative sum per interval that ends at exactly its number of bytes: differences of
    # integers add up to it, regardless of rounding in the division above.
    until = np.where(nth == pieces[of] - 1, moved[of], (moved[of] * share).astype(np.int64))
    before = np.where(nth == 0, 0, np.concatenate(([0], until[:-1])))
    np.add.at(segments, cell, until - before)


def _rounded(count: int, begin: Ints, length: Ints, moved: Ints, segment_ns: int) -> Ints:
    """Return the bytes in each segment without splitting the intervals.

    ``spread`` rounds each interval, while this function rounds their sum: a segment may differ by a
    byte per interval, and the total is the same.
    """
    edges = np.arange(count + 1, dtype=np.float64) * segment_ns
    rate = moved / length
    until = np.zeros(count + 1)
    for at, sign in ((begin, 1), (begin + length, -1)):
        order = np.argsort(at, kind="stable")
        begun = np.searchsorted(at[order], edges, side="right")
        rates, starts = (
            np.concatenate(([0.0], np.cumsum(values)))
            for values in (rate[order], (rate * at)[order])
        )
        until += sign * (rates[begun] * edges - starts[begun])
    total = int(moved.sum())
    cumulative = np.maximum.accumulate(np.clip(until, 0, total).astype(np.int64))
    # Bytes outside of the range belong to the first and the last segment.
    cumulative[0], cumulative[-1] = 0, total
    return np.asarray(np.diff(cumulative), dtype=np.int64)


def mean_in_flight(start: Ints, end: Ints, segment_ns: int, count: int) -> Floats:
    """Return the mean number of intervals that cover each segment, shape ``(count,)``."""
    edges = np.arange(count + 1, dtype=np.int64) * segment_ns
    return np.diff(_ramps(edges, start) - _ramps(edges, end)) / segment_ns


def _ramps(at: Ints, start: Ints) -> Floats:
    """Return the sum over i of ``max(0, at - start[i])``, shape of ``at``."""
    ordered = np.sort(start)
    started = np.searchsorted(ordered, at, side="right")
    # Use floats, because the sum of a million timestamps of five hours exceeds 2**63.
    total = np.concatenate(([0.0], np.cumsum(ordered, dtype=np.float64)))
    return np.asarray(started * at.astype(np.float64) - total[started], dtype=np.float64)
