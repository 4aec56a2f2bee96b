"""Even stretches of bytes, and intervals, added up in segments of equal length. Pure."""

from typing import Final

import numpy as np

from serverless_bench.rundir.tables import Floats, Ints

_MOST_PIECES: Final = 1 << 24
"""That stretches are cut into; a thousand of a month each would be a hundred million."""


def elapsed_before(length: Ints, row: Ints) -> Ints:
    """Return for each step the sum of its operation's steps before it, in ns.

    Parameters
    ----------
    length
        How long each step took, in ns.
    row
        Which operation it is of, ascending; shape as before.
    """
    before = np.cumsum(length) - length
    is_first = np.ones(len(row), dtype=bool)
    is_first[1:] = row[1:] != row[:-1]
    counts = np.diff(np.append(np.flatnonzero(is_first), len(row)))
    return np.asarray(before - np.repeat(before[is_first], counts), dtype=np.int64)


def spread(segments: Ints, begin: Ints, length: Ints, moved: Ints, segment_ns: int) -> None:
    """Add even stretches to ``segments``, splitting each at the borders it crosses."""
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
    # A running total per stretch that ends at exactly its bytes: the differences of
    # integers add up to it whatever the division above rounded.
    until = np.where(nth == pieces[of] - 1, moved[of], (moved[of] * share).astype(np.int64))
    before = np.where(nth == 0, 0, np.concatenate(([0], until[:-1])))
    np.add.at(segments, cell, until - before)


def _rounded(count: int, begin: Ints, length: Ints, moved: Ints, segment_ns: int) -> Ints:
    """Return what even stretches add to each segment, without cutting them into pieces.

    The sum over all stretches is rounded where ``spread`` rounds each: a segment may differ
    by a byte per stretch, and all of them together add up to the same.
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
    whole = np.maximum.accumulate(np.clip(until, 0, total).astype(np.int64))
    # What lies before the first segment or behind the last one is in them.
    whole[0], whole[-1] = 0, total
    return np.asarray(np.diff(whole), dtype=np.int64)


def mean_in_flight(start: Ints, end: Ints, segment_ns: int, count: int) -> Floats:
    """Return the mean number of intervals that cover each segment, shape ``(count,)``."""
    edges = np.arange(count + 1, dtype=np.int64) * segment_ns
    covered = _ramps(edges, start) - _ramps(edges, end)
    return np.diff(covered) / segment_ns


def _ramps(at: Ints, start: Ints) -> Floats:
    """Return the sum over i of ``max(0, at - start[i])``, shape of ``at``."""
    ordered = np.sort(start)
    started = np.searchsorted(ordered, at, side="right")
    # As floats: the sum of a million instants of five hours is above 2**63.
    total = np.concatenate(([0.0], np.cumsum(ordered, dtype=np.float64)))
    return np.asarray(started * at.astype(np.float64) - total[started], dtype=np.float64)
