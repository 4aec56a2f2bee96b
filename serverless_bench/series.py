"""Add up the progress curves of a run: bytes over time, exactly. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from serverless_bench.archive import Run
from serverless_bench.columns import Floats, Ints, Mask, is_text
from serverless_bench.units import NS_PER_S

_CHUNK: Final = 1 << 20
"""Steps that are spread at a time; bounds the memory of a large reduction."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Timeline:
    """Bytes moved over time, in half-open segments of equal length."""

    start_ns: int
    """Start of the first segment: the first operation's start."""
    end_ns: int
    """End of the last operation; the last segment may reach beyond it."""
    segment_ns: int
    segment_bytes: Ints
    """Bytes moved in each segment, shape ``(segments,)``; they add up to all bytes."""
    in_flight: Floats
    """Mean number of operations under way in each segment, shape ``(segments,)``."""

    @property
    def bytes_per_s(self) -> Floats:
        """Throughput in each segment, shape ``(segments,)``."""
        return np.asarray(self.segment_bytes * (NS_PER_S / self.segment_ns), dtype=np.float64)

    @property
    def seconds(self) -> Floats:
        """Start of each segment in seconds since ``start_ns``, shape ``(segments,)``."""
        return np.arange(len(self.segment_bytes), dtype=np.float64) * (self.segment_ns / NS_PER_S)


def timeline(run: Run, *, segment_ns: int = NS_PER_S) -> Timeline:
    """Add up the progress curves of all successful operations.

    Parameters
    ----------
    run
        A saved run.
    segment_ns
        Length of a segment in nanoseconds.

    Returns
    -------
    Timeline
        Its bytes add up to ``Summary.bytes`` as integers: every step of a curve is split
        at segment borders by differences of one running total, so rounding moves a byte
        to the neighbouring segment but never loses it. PyWren's and Lithops' plots lose
        up to 12 % of the bytes, because they count the left edges of bins that a job's
        mean rate touches (s3_benchmark.ipynb, cell 7).

    Raises
    ------
    ValueError
        If no operation succeeded, or ``segment_ns`` is not positive.
    """
    if segment_ns <= 0:
        raise ValueError(f"segment_ns must be positive, got {segment_ns}")
    good = good_operations(run)
    if not good.any():
        raise ValueError("a timeline needs an operation that succeeded")
    start = run.operations["start_ns"][good]
    end = run.operations["end_ns"][good]
    origin, last = int(start.min()), int(end.max())
    count = max(1, -(-(last - origin) // segment_ns))
    return Timeline(
        start_ns=origin,
        end_ns=last,
        segment_ns=segment_ns,
        segment_bytes=_spread_steps(run, good, origin, segment_ns, count),
        in_flight=_mean_in_flight(start - origin, end - origin, segment_ns, count),
    )


def counted(run: Run) -> Mask:
    """Return which rows of ``functions`` are records that count."""
    return is_text(run.functions["status"], "ok") | is_text(run.functions["status"], "failed")


def good_operations(run: Run) -> Mask:
    """Return which rows of ``operations`` succeeded, in invocations that count."""
    operations = run.operations
    return is_text(operations["error"], None) & counted(run)[operations["function"]]


def _spread_steps(run: Run, good: Mask, origin: int, segment_ns: int, count: int) -> Ints:
    """Return the bytes in each segment, shape ``(count,)``."""
    steps, operations = run.steps, run.operations
    # A record's operations are numbered from 0, and rows come function by function.
    first_row = np.searchsorted(operations["function"], np.arange(len(run.functions["index"])))
    segments = np.zeros(count, dtype=np.int64)
    for part in _function_slices(steps["function"]):
        row = first_row[steps["function"][part]] + steps["operation"][part]
        length, moved = steps["step_ns"][part], steps["step_bytes"][part]
        begin = operations["start_ns"][row] + _elapsed_before(length, row) - origin
        wanted = good[row] & (moved > 0)
        _spread(segments, begin[wanted], length[wanted], moved[wanted], segment_ns)
    return segments


def _function_slices(function: Ints) -> Iterator[slice]:
    """Yield slices of about ``_CHUNK`` rows that keep each function's rows together."""
    begin = 0
    while begin < len(function):
        if begin + _CHUNK >= len(function):
            end = len(function)
        else:
            end = int(np.searchsorted(function, function[begin + _CHUNK], side="right"))
        yield slice(begin, end)
        begin = end


def _elapsed_before(length: Ints, row: Ints) -> Ints:
    """Return for each step the sum of its operation's steps before it, in ns."""
    before = np.cumsum(length) - length
    is_first = np.ones(len(row), dtype=bool)
    is_first[1:] = row[1:] != row[:-1]
    counts = np.diff(np.append(np.flatnonzero(is_first), len(row)))
    return np.asarray(before - np.repeat(before[is_first], counts), dtype=np.int64)


def _spread(segments: Ints, begin: Ints, length: Ints, moved: Ints, segment_ns: int) -> None:
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
    of = np.repeat(np.arange(len(first)), pieces)
    nth = np.arange(len(of)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    cell = first[of] + nth
    share = ((cell + 1) * segment_ns - begin[of]) / length[of]
    # A running total per stretch that ends at exactly its bytes: the differences of
    # integers add up to it whatever the division above rounded.
    until = np.where(nth == pieces[of] - 1, moved[of], (moved[of] * share).astype(np.int64))
    before = np.where(nth == 0, 0, np.concatenate(([0], until[:-1])))
    np.add.at(segments, cell, until - before)


def _mean_in_flight(start: Ints, end: Ints, segment_ns: int, count: int) -> Floats:
    """Return the mean number of intervals that cover each segment, shape ``(count,)``."""
    edges = np.arange(count + 1, dtype=np.int64) * segment_ns
    covered = _ramps(edges, start) - _ramps(edges, end)
    return np.diff(covered) / segment_ns


def _ramps(at: Ints, start: Ints) -> Floats:
    """Return the sum over i of ``max(0, at - start[i])``, shape of ``at``."""
    ordered = np.sort(start)
    started = np.searchsorted(ordered, at, side="right")
    total = np.concatenate(([0], np.cumsum(ordered)))
    return (started * at - total[started]).astype(np.float64)
