"""Percentiles over time: how long operations took, segment after segment. Pure."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from serverless_bench.rundir.tables import ABSENT, Ints, Table, rank_of
from serverless_bench.units import NS_PER_S

_SEGMENTS: Final = 120
"""At most, as long as a run takes days and not months."""
_EACH: Final = 20
"""Operations that a segment has on average, at least: of fewer, percentiles say little."""
_SEGMENT_NS: Final = tuple(f * 10**n for n in range(8, 14) for f in (1, 2, 5))


@dataclass(frozen=True, slots=True, kw_only=True)
class OverTime:
    """The operations of one kind, segment after segment.

    An operation is in the segment in which it began, or in an open loop should have begun:
    a stall shows when it took place, not when it was over.
    """

    kind: str
    count: tuple[int, ...]
    overdue: tuple[int, ...]
    p50_s: tuple[float | None, ...]
    p99_s: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class TimeGrid:
    """Segments of equal length."""

    first_ns: int
    count: int
    segment_ns: int

    def of(self, began_ns: Ints) -> Ints:
        """Return the segment of each instant; it means nothing for what does not count."""
        return np.asarray((began_ns - self.first_ns) // self.segment_ns, dtype=np.int64)


def began(operations: Table) -> Ints:
    """Return when each operation began, or in an open loop should have begun."""
    intended = operations["intended_ns"]
    return np.where(intended != ABSENT, intended, operations["start_ns"])


def grid_of(began_ns: Ints) -> TimeGrid:
    """Return segments of 0.1, 0.2, 0.5, 1, ... s, few enough to have operations in them."""
    if not len(began_ns):
        return TimeGrid(0, 0, NS_PER_S)
    first = int(began_ns.min())
    span_ns = max(1, int(began_ns.max()) - first + 1)
    most = min(_SEGMENTS, max(1, len(began_ns) // _EACH))
    segment_ns = next((ns for ns in _SEGMENT_NS if span_ns <= ns * most), _SEGMENT_NS[-1])
    return TimeGrid(first, -(-span_ns // segment_ns), segment_ns)


def over_time(
    kind: str, grid: TimeGrid, began_ns: Ints, durations_ns: Ints, overdue: int = 0
) -> OverTime:
    """Return the percentiles of each segment.

    Parameters
    ----------
    kind
        Of the operations.
    grid
        From ``grid_of``.
    began_ns
        When each of them began, or should have begun, shape ``(operations,)``.
    durations_ns
        How long each took, ``ABSENT`` where nobody knows; shape as before.
    overdue
        How many of them, the last ones, never began: they took at least as long.
    """
    late = np.bincount(grid.of(began_ns[len(began_ns) - overdue :]), minlength=grid.count)
    known = durations_ns != ABSENT
    # In a byte or two: NumPy sorts these in a tenth of the time.
    segment = grid.of(began_ns[known]).astype(np.min_scalar_type(grid.count))
    values = durations_ns[known]
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
    """Return a percentile in seconds of each group of sorted values; None of empty ones."""
    return tuple(
        float(values[begin + rank_of(percent, count) - 1]) / NS_PER_S if count else None
        for begin, count in zip(begins.tolist(), counts.tolist(), strict=True)
    )
