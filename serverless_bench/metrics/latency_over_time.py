"""Operations over time: percentiles in each segment, and those that never started. Pure functions.

Dropped operations of an open loop were due but did not start. Their kinds and object sizes were
never drawn. They are assigned in proportion: to kinds by the weights of the mix, and to sizes like
the operations that started. Each share is spread evenly over time, and the assignment is
deterministic.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np
from msgspec import Struct

from serverless_bench.base.units import NS_PER_S
from serverless_bench.job.operations import OperationKind
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import ABSENT, Ints, Mask, Table, is_among, is_text, rank_of

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
    dropped: tuple[int, ...]
    p50_s: tuple[float | None, ...]
    p99_s: tuple[float | None, ...]


class TimeGrid(Struct, frozen=True):
    """Segments of equal length."""

    first_ns: int
    count: int
    segment_ns: int

    def segment_of(self, began_ns: Ints) -> Ints:
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
    kind: str, grid: TimeGrid, began_ns: Ints, durations_ns: Ints, dropped: int = 0
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
    dropped
        Number of operations at the end that did not start; their durations are lower bounds.
    """
    late = np.bincount(grid.segment_of(began_ns[len(began_ns) - dropped :]), minlength=grid.count)
    is_known = durations_ns != ABSENT
    # NumPy sorts integers of one or two bytes in a tenth of the time.
    segment = grid.segment_of(began_ns[is_known]).astype(np.min_scalar_type(grid.count))
    values = durations_ns[is_known]
    values = values[np.argsort(segment, kind="stable")]
    counts = np.bincount(segment, minlength=grid.count)
    begins = np.cumsum(counts) - counts
    for begin, count in zip(begins.tolist(), counts.tolist(), strict=True):
        values[begin : begin + count].sort()
    p50, p99 = (_of_groups(values, begins, counts, percent) for percent in (50, 99))
    return OverTime(
        kind=kind, count=tuple(counts.tolist()), dropped=tuple(late.tolist()), p50_s=p50, p99_s=p99
    )


def _of_groups(
    values: Ints, begins: Ints, counts: Ints, percent: float
) -> tuple[float | None, ...]:
    """Return a percentile of each group of sorted values in seconds; None for empty groups."""
    return tuple(
        float(values[begin + rank_of(percent, count) - 1]) / NS_PER_S if count else None
        for begin, count in zip(begins.tolist(), counts.tolist(), strict=True)
    )


_GOLDEN: Final = 0x9E3779B97F4A7C15
"""2**64 divided by the golden ratio: its multiples modulo 2**64 fill any interval evenly."""

Cell = tuple[str, int]
"""Operation kind and number of a size class."""


class OverdueOperations(Struct, frozen=True, kw_only=True, eq=False):
    """Dropped operations; arrays have a value for each of them."""

    due_ns: Ints
    waited_ns: Ints
    """Minimum wait: until the end of the measurement, or until a thread became free."""
    cell: Ints
    """Indices of ``cells``."""
    cells: tuple[Cell, ...] = ()

    def mask(self, kind: str, size_class: int | None = None) -> Mask:
        """Return a mask of the operations assigned to a kind, or to a size class of it."""
        cells = enumerate(self.cells)
        wanted = [n for n, cell in cells if cell[0] == kind and size_class in {None, cell[1]}]
        return is_among(self.cell, wanted)


def dropped_operations(run: Run, counted: Mask, begun: Mask, size_class: Ints) -> OverdueOperations:
    """Return the dropped operations.

    Parameters
    ----------
    run
        A saved run with worker timestamps on the driver's clock.
    counted
        Mask of functions that count, shape ``(functions,)``.
    begun
        Mask of scheduled operations that started, shape ``(operations,)``.
    size_class
        Number of the size class of each operation; same shape.
    """
    rows = run.dropped
    counts = counted[rows["function"]]
    first, last, number, until = (
        rows[name][counts] for name in ("first_ns", "last_ns", "count", "until_ns")
    )
    row = np.repeat(np.arange(len(number)), number)
    nth = np.arange(len(row)) - np.repeat(np.cumsum(number) - number, number)
    # Integer arithmetic: the quotient times nth, plus the accumulated remainder, rounded to 1 ns.
    gaps = np.maximum(number - 1, 1)
    gap, rest = np.divmod(last - first, gaps)
    due = first[row] + nth * gap[row] + (2 * nth * rest[row] + gaps[row]) // (2 * gaps[row])
    cells = _shares(run, begun, size_class) if len(due) else {}
    return OverdueOperations(
        due_ns=due,
        waited_ns=np.maximum(until[row] - due, 0),
        cell=_dealt(len(due), list(cells.values())),
        cells=tuple(cells),
    )


def _dealt(count: int, shares: list[float]) -> Ints:
    """Return the index of a share for each of ``count`` items, in proportion to the shares."""
    place = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(_GOLDEN)
    borders = np.cumsum(shares)[:-1] / np.sum(shares) * 2.0**64 if shares else []
    return np.searchsorted(borders, place.astype(np.float64), side="right").astype(np.int64)


def _shares(run: Run, begun: Mask, size_class: Ints) -> dict[Cell, float]:
    """Return the weight of each kind and size class among the dropped operations."""
    kinds: Mapping[str, float] = dict(run.job.load.mix)
    if not kinds:
        names, counts = np.unique(run.operations["kind"][begun].astype(str), return_counts=True)
        kinds = dict(zip(names.tolist(), counts.tolist(), strict=True))
    shares: dict[Cell, float] = {}
    for kind, weight in (kinds or _of_workload(run)).items():
        sizes_of_kind = size_class[begun & is_text(run.operations["kind"], kind)]
        numbers, counts = np.unique(sizes_of_kind, return_counts=True)
        if not len(numbers):
            shares[kind, -1] = weight
        for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
            shares[kind, number] = weight * count / len(sizes_of_kind)
    return shares


def _of_workload(run: Run) -> Mapping[str, float]:
    """Return the kinds of a job without started operations; defaults to a read."""
    load = run.job.load
    reads = OperationKind.GET if load.split is None else OperationKind.GET_RANGE
    kinds = run.job.declared.kinds(load) or {reads: 1.0}
    return {kind.value: weight for kind, weight in kinds.items()}
