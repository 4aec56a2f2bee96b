"""Compute percentiles of durations for each segment of time. Pure functions."""

from typing import Final

import numpy as np
from msgspec import Struct

from serverless_bench.base.units import NS_PER_S
from serverless_bench.rundir.tables import ABSENT, Ints, Table, rank_of

_SEGMENTS: Final = 120
"""Maximum number of segments, unless a run takes months."""
_EACH: Final = 20
"""Minimum mean number of operations per segment, so that percentiles are meaningful."""
_SEGMENT_NS: Final = tuple(f * 10**n for n in range(8, 14) for f in (1, 2, 5))


class OverTime(Struct, frozen=True, kw_only=True):
    """Operations of a kind by segment.

    An operation belongs to the segment in which it started, or should have started in an open
    loop: a stall is visible when it occurred, not when it ended.
    """

    kind: str
    count: tuple[int, ...]
    overdue: tuple[int, ...]
    p50_s: tuple[float | None, ...]
    p99_s: tuple[float | None, ...]


class TimeGrid(Struct, frozen=True):
    """Segments of equal length."""

    first_ns: int
    count: int
    segment_ns: int

    def of(self, began_ns: Ints) -> Ints:
        """Return the segment of each timestamp; undefined for operations that do not count."""
        return np.asarray((began_ns - self.first_ns) // self.segment_ns, dtype=np.int64)


def began(operations: Table) -> Ints:
    """Return the start of each operation; in an open loop, its intended start."""
    intended = operations["intended_ns"]
    return np.where(intended != ABSENT, intended, operations["start_ns"])


def grid_of(began_ns: Ints) -> TimeGrid:
    """Return segments of 0.1, 0.2, 0.5, 1, ... s, long enough to contain operations."""
    if not len(began_ns):
        return TimeGrid(0, 0, NS_PER_S)
    first = int(began_ns.min())
    span_ns = max(1, int(began_ns.max()) - first + 1)
    max_segments = min(_SEGMENTS, max(1, len(began_ns) // _EACH))
    segment_ns = next((ns for ns in _SEGMENT_NS if span_ns <= ns * max_segments), _SEGMENT_NS[-1])
    return TimeGrid(first, -(-span_ns // segment_ns), segment_ns)


def over_time(
    kind: str, grid: TimeGrid, began_ns: Ints, durations_ns: Ints, overdue: int = 0
) -> OverTime:
    """Return the percentiles for each segment.

    Parameters
    ----------
    kind
        Kind of the operations.
    grid
        Result of ``grid_of``.
    began_ns
        Start or intended start of each operation, shape ``(operations,)``.
    durations_ns
        Duration of each operation, ``ABSENT`` if unknown; same shape.
    overdue
        Number of operations at the end that did not start; their durations are lower bounds.
    """
    late = np.bincount(grid.of(began_ns[len(began_ns) - overdue :]), minlength=grid.count)
    is_known = durations_ns != ABSENT
    # NumPy sorts integers of one or two bytes in a tenth of the time.
    segment = grid.of(began_ns[is_known]).astype(np.min_scalar_type(grid.count))
    values = durations_ns[is_known]
    values = values[np.argsort(segment, kind="stable")]
    counts = np.bincount(segment, minlength=grid.count)
    begins = np.cumsum(counts) - counts
    for begin, count in zip(begins.tolist(), counts.tolist(), strict=True):
        values[begin : begin + count].sort()
    p50, p99 = (_of_groups(values, begins, counts, percent) for percent in (50, 99))
    return OverTime(
        kind=kind, count=tuple(counts.tolist()), overdue=tuple(late.tolist()), p50_s=p50, p99_s=p99
    )


def _of_groups(
    values: Ints, begins: Ints, counts: Ints, percent: float
) -> tuple[float | None, ...]:
    """Return a percentile of each group of sorted values in seconds; None for empty groups."""
    return tuple(
        float(values[begin + rank_of(percent, count) - 1]) / NS_PER_S if count else None
        for begin, count in zip(begins.tolist(), counts.tolist(), strict=True)
    )
