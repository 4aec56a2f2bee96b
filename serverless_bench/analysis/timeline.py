"""Add up the progress curves of a run: bytes over time, exactly. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Final

import numpy as np

from serverless_bench.analysis.clock_offsets import Offsets, aligned, worker_offsets
from serverless_bench.analysis.spreading import elapsed_before, mean_in_flight, spread
from serverless_bench.rundir.run import Run, first_operations
from serverless_bench.rundir.tables import (
    Floats,
    Ints,
    Mask,
    is_text,
    largest_by,
    least_by,
    parts,
    sum_by,
)
from serverless_bench.units import NS_PER_S

_LEAST_STEP_NS: Final = 10_000_000
"""Clocks are not known much better."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Timeline:
    """Bytes moved over time, in half-open segments of equal length.

    Examples
    --------
    >>> series = sbench.timeline(read, segment_ns=100_000_000)
    >>> len(series.seconds) == len(series.bytes_per_s) == len(series.in_flight)
    True
    """

    start_ns: int
    """Start of the first segment: the first measured operation's start."""
    end_ns: int
    """End of the last one, which may have failed; the last segment may reach beyond it."""
    segment_ns: int
    segment_bytes: Ints
    """Bytes moved in each segment, shape ``(segments,)``; they add up to all bytes."""
    in_flight: Floats
    """Mean number of operations under way in each segment, shape ``(segments,)``; without
    the user's own stretches (``call``) if operations of ours are in them."""
    earliest: Ints
    latest: Ints
    """Bytes moved by the end of each segment if every worker's clock was as far behind,
    and as far ahead, as its evidence allows; shape ``(segments,)``."""

    def __repr__(self) -> str:
        each = f"{len(self.segment_bytes)} segments of {self.segment_ns / NS_PER_S:g} s"
        return f"<Timeline: {each}, {int(self.segment_bytes.sum())} bytes>"

    @property
    def bytes_per_s(self) -> Floats:
        """Throughput in each segment, shape ``(segments,)``."""
        return np.asarray(self.segment_bytes * (NS_PER_S / self.segment_ns), dtype=np.float64)

    @property
    def at_least(self) -> Ints:
        """Bytes that each segment holds whatever the clocks were, shape ``(segments,)``."""
        before = np.concatenate(([0], self.earliest[:-1]))
        return np.asarray(np.maximum(self.latest - before, 0), dtype=np.int64)

    @property
    def at_most(self) -> Ints:
        """Bytes that each segment can hold, shape ``(segments,)``."""
        before = np.concatenate(([0], self.latest[:-1]))
        return np.asarray(self.earliest - before, dtype=np.int64)

    @property
    def seconds(self) -> Floats:
        """Start of each segment in seconds since ``start_ns``, shape ``(segments,)``."""
        return np.arange(len(self.segment_bytes), dtype=np.float64) * (self.segment_ns / NS_PER_S)


def timeline(run: Run, *, segment_ns: int = NS_PER_S) -> Timeline:
    """Add up the progress curves of all successful operations, on the driver's clock.

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

    Examples
    --------
    >>> int(sbench.timeline(written).segment_bytes.sum())
    4194304
    """
    offsets = worker_offsets(run)
    on_one_clock = aligned(run, offsets)
    return _added_up(segments_of(on_one_clock, segment_ns), offsets)


def timeline_to_draw(on_one_clock: Run, offsets: Offsets, *, most: int) -> Timeline | None:
    """Return a timeline in steps that suit its length; None if no operation succeeded.

    Parameters
    ----------
    on_one_clock
        A run whose instants are on the driver's clock.
    offsets
        What they were corrected by.
    most
        Segments that it may have.
    """
    try:
        grid = segments_of(on_one_clock, _LEAST_STEP_NS)
    except ValueError:
        return None
    segment_ns = step_ns(grid.end_ns - grid.start_ns, most)
    return _added_up(replace(grid, segment_ns=segment_ns), offsets)


def _added_up(grid: "Segments", offsets: Offsets) -> Timeline:
    sure = offsets.known & ~offsets.suspect
    early = np.where(sure, offsets.high_ns - offsets.best_ns, 0)
    late = np.where(sure, offsets.low_ns - offsets.best_ns, 0)
    moved, earliest, latest = grid.moved((None, early, late))
    return Timeline(
        start_ns=grid.start_ns,
        end_ns=grid.end_ns,
        segment_ns=grid.segment_ns,
        segment_bytes=moved,
        in_flight=grid.in_flight(),
        earliest=np.cumsum(earliest),
        latest=np.cumsum(latest),
    )


def clock_band(series: Timeline) -> tuple[Floats, Floats]:
    """Return the rates of a timeline if all clocks are wrong one way, and the other."""
    shifted = [np.diff(moved, prepend=0) for moved in (series.earliest, series.latest)]
    for moved in shifted:
        # What would lie outside has been put into these two.
        moved[[0, -1]] = series.segment_bytes[[0, -1]]
    every, per_s = [series.segment_bytes, *shifted], NS_PER_S / series.segment_ns
    return np.min(every, axis=0) * per_s, np.max(every, axis=0) * per_s


def step_ns(span_ns: int, most: int) -> int:
    """Return the least of 10, 20, 50, 100 ... ms that cuts a span into no more than ``most``."""
    steps: Iterator[int] = (
        _LEAST_STEP_NS * 10**n * factor for n in count() for factor in (1, 2, 5)
    )
    return next(step for step in steps if span_ns <= step * most)


def bytes_by_group(run: Run, group: Ints, groups: int, *, segment_ns: int) -> Ints:
    """Return a timeline's bytes, those of groups of functions apart, instants as they are.

    Parameters
    ----------
    run
        A saved run.
    group
        Of each row of ``functions``, from 0; shape ``(functions,)``.
    groups
        How many there are.
    segment_ns
        Length of a segment in nanoseconds.

    Returns
    -------
    numpy.ndarray
        Shape ``(groups, segments)``.

    Raises
    ------
    ValueError
        As ``timeline``.
    """
    grid = segments_of(run, segment_ns)
    # One group after the other, as if they had worked at different times.
    after = grid.count * segment_ns
    long = replace(grid, end_ns=grid.start_ns + groups * after)
    return long.moved((-group * after,))[0].reshape(groups, grid.count)


def functions_at_work(run: Run, group: Ints, groups: int, *, segment_ns: int) -> Floats:
    """Return the mean number of functions that ran in each segment, for groups of them apart.

    Parameters, shape and errors as of ``bytes_by_group``; functions of a group below 0, and
    those that never began, count nowhere.
    """
    grid = segments_of(run, segment_ns)
    after = grid.count * segment_ns
    wanted = counted(run) & (group >= 0)
    start, end = (
        np.clip(run.functions[name][wanted] - grid.start_ns, 0, after) + group[wanted] * after
        for name in ("start_ns", "end_ns")
    )
    return mean_in_flight(start, end, segment_ns, groups * grid.count).reshape(groups, grid.count)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Segments:
    """Where the segments of a run lie, and what counts in them."""

    run: Run
    good: Mask
    """Operations that count, shape ``(operations,)``."""
    start_ns: int
    """First measured operation's start."""
    end_ns: int
    """Last measured operation's end, which may have failed."""
    segment_ns: int

    @property
    def count(self) -> int:
        """How many there are."""
        return max(1, -(-(self.end_ns - self.start_ns) // self.segment_ns))

    def moved(self, aheads: Sequence[Ints | None] = (None,)) -> tuple[Ints, ...]:
        """Return the bytes in each segment, shape ``(count,)``, once for each of ``aheads``.

        One that is not None has a value per row of ``functions``: all its instants are taken for
        so much earlier; what falls off either end stays in the outermost segment.
        """
        found = tuple(np.zeros(self.count, dtype=np.int64) for _ in aheads)
        first, start = first_operations(self.run), self.run.operations["start_ns"]
        # Once over the steps, which are most of a run and may have to be read from the disk.
        for part in parts(self.run.steps):
            function, length, moved = part["function"], part["step_ns"], part["step_bytes"]
            row = first[function] + part["operation"]
            begin = start[row] + elapsed_before(length, row) - self.start_ns
            wanted = self.good[row] & (moved > 0)
            function, begin, length, moved = (
                values[wanted] for values in (function, begin, length, moved)
            )
            for cells, ahead in zip(found, aheads, strict=True):
                at = begin if ahead is None else begin - ahead[function]
                spread(cells, at, length, moved, self.segment_ns)
        return found

    def in_flight(self) -> Floats:
        """Return the mean number of operations under way, each of them once."""
        operations = self.run.operations
        wanted = self.good & ~is_text(operations["kind"], "call")
        if not wanted.any():
            wanted = self.good
        start, end = (operations[name][wanted] - self.start_ns for name in ("start_ns", "end_ns"))
        return mean_in_flight(start, end, self.segment_ns, self.count)


def segments_of(run: Run, segment_ns: int) -> Segments:
    """Return the segments of a run's timeline, instants as they are.

    Raises
    ------
    ValueError
        As ``timeline``.
    """
    if segment_ns <= 0:
        raise ValueError(f"segment_ns must be positive, got {segment_ns}")
    good = good_operations(run)
    if not good.any():
        raise ValueError("a timeline needs an operation that succeeded")
    measured = measured_operations(run)
    return Segments(
        run=run,
        good=good,
        start_ns=int(run.operations["start_ns"][measured].min()),
        end_ns=int(run.operations["end_ns"][measured].max()),
        segment_ns=segment_ns,
    )


def counted(run: Run) -> Mask:
    """Return which rows of ``functions`` are records that count."""
    return is_text(run.functions["status"], "ok") | is_text(run.functions["status"], "failed")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spans:
    """When each function that is ok moved its bytes; arrays have one value per function."""

    rows: Ints
    """Of ``functions``, ascending."""
    start_ns: Ints
    """First good operation's start."""
    end_ns: Ints
    """Last good operation's end, at least a nanosecond later."""
    moved: Ints
    """Bytes, more than none."""

    @property
    def took_s(self) -> Floats:
        """Seconds from start to end."""
        return np.asarray((self.end_ns - self.start_ns) / NS_PER_S, dtype=np.float64)

    @property
    def bytes_per_s(self) -> Floats:
        """Bytes over that time."""
        return self.moved / self.took_s


def function_spans(run: Run) -> Spans:
    """Return the spans of the functions that are ok and moved bytes."""
    good, count = good_operations(run), len(run.functions["index"])
    operations = {name: run.operations[name][good] for name in ("start_ns", "end_ns", "bytes")}
    function = run.operations["function"][good]
    moved = sum_by(function, operations["bytes"], count)
    first = least_by(function, operations["start_ns"], count)
    last = largest_by(function, operations["end_ns"], count)
    rows = np.flatnonzero(is_text(run.functions["status"], "ok") & (moved > 0))
    return Spans(
        rows=rows,
        start_ns=first[rows],
        end_ns=np.maximum(last[rows], first[rows] + 1),
        moved=moved[rows],
    )


def good_operations(run: Run) -> Mask:
    """Return which rows of ``operations`` succeeded and are measurements.

    Those of invocations that count, and not of the warm-up.
    """
    return measured_operations(run) & is_text(run.operations["error"], None)


def measured_operations(run: Run) -> Mask:
    """Return which ``operations`` are measured, failed ones too: all that count but the warm-up."""
    operations = run.operations
    measured: Mask = counted(run)[operations["function"]] & (operations["warmup"] == 0)
    return measured
