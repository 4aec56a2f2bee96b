"""Sum the progress curves of a run: exact number of bytes over time. Pure functions."""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from serverless_bench.base.units import NS_PER_S
from serverless_bench.metrics.clock_offsets import Offsets, aligned, worker_offsets
from serverless_bench.metrics.spreading import elapsed_before, mean_in_flight, spread
from serverless_bench.rundir.run import AnyRun, Run, as_run, first_operations
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


class Timeline(Struct, frozen=True, kw_only=True, eq=False):
    """Bytes transferred over time, in half-open segments of equal length.

    Examples
    --------
    >>> series = sbench.timeline(read, segment_ns=100_000_000)
    >>> len(series.seconds) == len(series.bytes_per_s) == len(series.in_flight)
    True
    """

    start_ns: int
    """Start of the first segment, which is the start of the first measured operation."""
    end_ns: int
    """End of the last measured operation, successful or not; the last segment may be longer."""
    segment_ns: int
    segment_bytes: Ints
    """Bytes transferred in each segment, shape ``(segments,)``; they add up to all bytes."""
    in_flight: Floats
    """Mean number of operations in progress in each segment, shape ``(segments,)``. Blocks of a
    user's function (``call``) are excluded if they contain other operations."""
    earliest: Ints
    latest: Ints
    """Cumulative bytes at the end of each segment if every worker's clock is as far behind, or as
    far ahead, as the evidence allows; shape ``(segments,)``."""

    def __repr__(self) -> str:
        segments = f"{len(self.segment_bytes)} segments of {self.segment_ns / NS_PER_S:g} s"
        return f"<Timeline: {segments}, {int(self.segment_bytes.sum())} bytes>"

    @property
    def bytes_per_s(self) -> Floats:
        """Throughput in each segment, shape ``(segments,)``."""
        return np.asarray(self.segment_bytes * (NS_PER_S / self.segment_ns), dtype=np.float64)

    @property
    def at_least(self) -> Ints:
        """Minimum bytes in each segment for all possible clock offsets, shape ``(segments,)``."""
        before = np.concatenate(([0], self.earliest[:-1]))
        return np.asarray(np.maximum(self.latest - before, 0), dtype=np.int64)

    @property
    def at_most(self) -> Ints:
        """Maximum bytes in each segment for all possible clock offsets, shape ``(segments,)``."""
        before = np.concatenate(([0], self.latest[:-1]))
        return np.asarray(self.earliest - before, dtype=np.int64)

    @property
    def seconds(self) -> Floats:
        """Start of each segment in seconds since ``start_ns``, shape ``(segments,)``."""
        return np.arange(len(self.segment_bytes), dtype=np.float64) * (self.segment_ns / NS_PER_S)


def timeline(run: AnyRun, *, segment_ns: int = NS_PER_S) -> Timeline:
    """Sum the progress curves of all successful operations, on the driver's clock.

    Parameters
    ----------
    run
        A run, its name or its directory.
    segment_ns
        Length of a segment in nanoseconds.

    Returns
    -------
    Timeline
        The bytes add up to ``Summary.bytes`` as integers: each step of a curve is split at
        segment borders by differences of a running total, so rounding moves a byte to the
        adjacent segment but never drops it. The plots of PyWren and Lithops drop up to 12 % of
        the bytes, because they count the left edges of bins that the mean rate of a job
        touches (s3_benchmark.ipynb, cell 7).

    Raises
    ------
    ValueError
        If no operation succeeded, or ``segment_ns`` is not positive.

    Examples
    --------
    >>> int(sbench.timeline(written).segment_bytes.sum())
    4194304
    """
    run = as_run(run)
    offsets = worker_offsets(run)
    return added_up(segments_of(aligned(run, offsets), segment_ns), offsets)


def added_up(grid: "Segments", offsets: Offsets) -> Timeline:
    """Return the timeline of these segments, whose run has its timestamps on one clock."""
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


class Segments(Struct, frozen=True, kw_only=True, eq=False):
    """Positions of a run's segments, and the operations to count."""

    run: Run
    good: Mask
    """Operations to count, shape ``(operations,)``."""
    start_ns: int
    """Start of the first measured operation."""
    end_ns: int
    """End of the last measured operation, successful or not."""
    segment_ns: int

    @property
    def count(self) -> int:
        """Number of segments."""
        return max(1, -(-(self.end_ns - self.start_ns) // self.segment_ns))

    def moved(self, aheads: Sequence[Ints | None] = (None,)) -> tuple[Ints, ...]:
        """Return the bytes in each segment, shape ``(count,)``, for each of ``aheads``.

        An array has a value per row of ``functions`` that is subtracted from its timestamps; bytes
        shifted beyond either end are added to the outermost segment.
        """
        totals = tuple(np.zeros(self.count, dtype=np.int64) for _ in aheads)
        first, start = first_operations(self.run), self.run.operations["start_ns"]
        # Iterate over the steps only once: they are most of a run and may be on disk.
        for part in parts(self.run.steps):
            function, length, moved = part["function"], part["step_ns"], part["step_bytes"]
            row = first[function] + part["operation"]
            begin = start[row] + elapsed_before(length, row) - self.start_ns
            wanted = self.good[row] & (moved > 0)
            function, begin, length, moved = (
                values[wanted] for values in (function, begin, length, moved)
            )
            for cells, ahead in zip(totals, aheads, strict=True):
                at = begin if ahead is None else begin - ahead[function]
                spread(cells, at, length, moved, self.segment_ns)
        return totals

    def in_flight(self) -> Floats:
        """Return the mean number of operations in progress, counting each operation once."""
        operations = self.run.operations
        wanted = self.good & ~is_text(operations["kind"], "call")
        if not wanted.any():
            wanted = self.good
        start, end = (operations[name][wanted] - self.start_ns for name in ("start_ns", "end_ns"))
        return mean_in_flight(start, end, self.segment_ns, self.count)


def segments_of(run: Run, segment_ns: int) -> Segments:
    """Return the segments of a run's timeline, without clock correction.

    Raises
    ------
    ValueError
        See ``timeline``.
    """
    if segment_ns <= 0:
        raise ValueError(f"segment_ns must be positive, got {segment_ns}")
    good = good_operations(run)
    if not good.any():
        raise ValueError("a timeline needs a successful operation")
    measured = measured_operations(run)
    return Segments(
        run=run,
        good=good,
        start_ns=int(run.operations["start_ns"][measured].min()),
        end_ns=int(run.operations["end_ns"][measured].max()),
        segment_ns=segment_ns,
    )


def counted(run: Run) -> Mask:
    """Return a mask of the rows of ``functions`` that count."""
    return is_text(run.functions["status"], "ok") | is_text(run.functions["status"], "failed")


class Spans(Struct, frozen=True, kw_only=True, eq=False):
    """Periods in which successful functions transferred bytes; arrays have a value per function."""

    rows: Ints
    """Rows of ``functions``, ascending."""
    start_ns: Ints
    """Start of the first successful operation."""
    end_ns: Ints
    """End of the last successful operation, at least 1 ns after the start."""
    moved: Ints
    """Bytes transferred, at least 1."""

    @property
    def took_s(self) -> Floats:
        """Durations in seconds."""
        return np.asarray((self.end_ns - self.start_ns) / NS_PER_S, dtype=np.float64)

    @property
    def bytes_per_s(self) -> Floats:
        """Bytes per second over these durations."""
        return self.moved / self.took_s


def function_spans(run: Run) -> Spans:
    """Return the spans of the ok functions that transferred bytes."""
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
    """Return a mask of the successful measured rows of ``operations``.

    They belong to invocations that count, and not to the warm-up.
    """
    return measured_operations(run) & is_text(run.operations["error"], None)


def measured_operations(run: Run) -> Mask:
    """Return a mask of measured ``operations``, successful or not, without the warm-up."""
    operations = run.operations
    measured: Mask = counted(run)[operations["function"]] & (operations["warmup"] == 0)
    return measured
