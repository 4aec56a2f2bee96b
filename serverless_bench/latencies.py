"""How long operations took: by kind, by size class and over time. Pure.

Four times are told apart::

    intended start          start                            end
    |------- queueing -------|------------ latency -----------|
    |------------------------ response -----------------------|

In a closed loop the next operation waits for the one before, so a store that stalls is
asked less while it stalls, and the latencies hide most of it ("coordinated omission", Gil
Tene). In an open loop (``--rate``) operations have an intended start, and the response time
counts from there. Service is latency without the waits between the tries of an operation.

Percentiles are of raw values, or of a histogram, never of other percentiles. The
histograms stand in the report, so reports can be merged (``merging``).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from serverless_bench.archive import Run
from serverless_bench.columns import ABSENT, Ints, Mask, Table, is_text
from serverless_bench.elapsed import span_ns
from serverless_bench.histogram import Histogram
from serverless_bench.over_time import OverTime, grid_of, over_time
from serverless_bench.series import counted
from serverless_bench.spec import OperationKind
from serverless_bench.traffic import service_s
from serverless_bench.units import GIB, KIB, MIB, NS_PER_S

PERCENTILES: Final = (50, 90, 95, 99, 99.9)
RAW_LIMIT: Final = 10_000_000
"""Operations of one row whose percentiles come from raw values: they are sorted for it."""

MAX_BLOCKS: Final = 32
"""Blocks of a function that have a row each; of more, names are not what tells them apart."""
_EDGES: Final = (0, 8 * KIB, 64 * KIB, 512 * KIB, 4 * MIB, 32 * MIB, 256 * MIB, 2 * GIB)
SIZE_CLASSES: Final = (
    *("0 B", "1 B-8 KiB", "8-64 KiB", "64-512 KiB", "512 KiB-4 MiB"),
    *("4-32 MiB", "32-256 MiB", "256 MiB-2 GiB", "above 2 GiB"),
)
"""Those of sai3-bench (docs/PERF_LOG_FORMAT.md); the upper bound belongs to the class."""
_NO_SIZE: Final = frozenset({"call", "delete", "delete_many", "head", "list"})
"""Kinds that take as long for an object of any size."""
_SERVER_SIDE: Final = frozenset({"copy"})
"""Kinds that move no bytes here, and take longer for larger objects."""
_PLAIN: Final = frozenset({"get", "put"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """How long some operations took."""

    percentiles_s: Mapping[str, float]
    """``p50``, ``p90``, ``p95``, ``p99``, ``p99.9`` and ``max``."""
    mean_s: float
    exact: bool
    """Whether the percentiles are of raw values, by linear interpolation between order
    statistics; else they are a histogram's, within 1 %."""
    histogram: Histogram

    @classmethod
    def of(cls, durations_ns: Ints, *, raw_limit: int = RAW_LIMIT) -> Self | None:
        """Return the times of durations; None if there are none.

        One below zero, which only damage to a record can bring about, counts as zero.
        """
        if not len(durations_ns):
            return None
        durations_ns = np.maximum(durations_ns, 0)
        histogram = Histogram.of(durations_ns)
        if len(durations_ns) > raw_limit:
            return cls.from_histogram(histogram)
        found = np.percentile(durations_ns, PERCENTILES) / NS_PER_S
        return cls(
            percentiles_s=_named(found.tolist(), histogram),
            mean_s=histogram.sum_ns / histogram.count / NS_PER_S,
            exact=True,
            histogram=histogram,
        )

    @classmethod
    def from_histogram(cls, histogram: Histogram) -> Self:
        """Return the times of a histogram that is not empty."""
        found = [histogram.percentile(p) / NS_PER_S for p in PERCENTILES]
        return cls(
            percentiles_s=_named(found, histogram),
            mean_s=histogram.sum_ns / histogram.count / NS_PER_S,
            exact=False,
            histogram=histogram,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """The operations of one kind, or those of them in one size class."""

    kind: str
    size_class: str | None
    """One of ``SIZE_CLASSES``; None for all together. It is the class of the bytes that
    moved, so a range has that of its length; of a failed operation that of its object, and
    a range that failed has none. A block of the user's own has its name here."""
    count: int
    """That succeeded; only these are in the times and bytes."""
    failed: int
    keys: int
    """That they concerned: more than ``count`` if they list, or delete many."""
    bytes: int
    operations_per_s: float | None
    bytes_per_s: float | None
    """Over the span of the whole run; None where nothing took place or moved."""
    latency: Times | None
    service: Times | None
    """None if no operation waited between its tries: the same as latency then."""
    response: Times | None
    queueing: Times | None
    """None in a closed loop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Latencies:
    """The section "operations" of a report."""

    open_loop: bool = False
    asked_per_s: float | None = None
    """Operations that were to begin per second, in an open loop."""
    span_s: float | None = None
    by_kind: tuple[Latency, ...] = ()
    """For each kind a row of all its operations and, below it, one per size class."""
    segment_s: float | None = None
    over_time: tuple[OverTime, ...] = ()

    @property
    def notable(self) -> bool:
        """Whether there is more to say than of objects of one size, put or got."""
        kinds = {row.kind for row in self.by_kind}
        sizes = {row.size_class for row in self.by_kind if row.count} - {None}
        return self.open_loop or len(kinds) > 1 or len(sizes) > 1 or not kinds <= _PLAIN


def latencies(run: Run, good: Mask, *, raw_limit: int = RAW_LIMIT) -> Latencies:
    """Return how long the operations of a run took.

    Parameters
    ----------
    run
        A saved run, its workers' instants on the driver's clock.
    good
        Which operations succeeded and count, shape ``(operations,)``.
    raw_limit
        Rows of more operations get their percentiles from their histogram.
    """
    operations = run.operations
    mine = counted(run)[operations["function"]] & (operations["warmup"] == 0)
    if not mine.any():
        return Latencies()
    durations = _durations(run, good)
    whole_ns = span_ns(run)
    sizes = _size_classes(operations, good)
    rows: list[Latency] = []
    segments: list[OverTime] = []
    grid = grid_of(operations, good)
    for kind in _kinds(operations, mine):
        of_kind = mine & is_text(operations["kind"], kind)
        blocks = _blocks(operations, of_kind) if kind == OperationKind.CALL else ()
        classes = ((name, sizes == number) for number, name in enumerate(SIZE_CLASSES))
        for name, of_class in ((None, of_kind), *(blocks or classes)):
            wanted = of_kind & of_class
            if wanted.any():
                picked = _Picked(kind, name, wanted & good, wanted & ~good)
                rows.append(_row(operations, durations, picked, whole_ns, raw_limit))
        if (of_kind & good).any():
            shown = durations.get("response", durations["latency"])
            segments.append(over_time(kind, grid, of_kind & good, shown))
    return Latencies(
        open_loop="response" in durations,
        asked_per_s=run.job.load.rate_per_s,
        span_s=whole_ns / NS_PER_S,
        by_kind=tuple(rows),
        segment_s=grid.segment_ns / NS_PER_S if segments else None,
        over_time=tuple(segments),
    )


@dataclass(frozen=True, slots=True)
class _Picked:
    """The operations of one row."""

    kind: str
    size_class: str | None
    good: Mask
    bad: Mask


def _row(
    operations: Table,
    durations: Mapping[str, Ints],
    picked: _Picked,
    whole_ns: int,
    raw_limit: int,
) -> Latency:
    good = picked.good
    count, moved = int(good.sum()), int(operations["bytes"][good].sum())

    def times(name: str) -> Times | None:
        if name not in durations:
            return None
        # An open loop may have operations that stand in no schedule.
        values = durations[name][good & (durations[name] != ABSENT)]
        return Times.of(values, raw_limit=raw_limit)

    waited = (durations["service"] != durations["latency"])[good].any()
    return Latency(
        kind=picked.kind,
        size_class=picked.size_class,
        count=count,
        failed=int(picked.bad.sum()),
        keys=int(operations["count"][good].sum()),
        bytes=moved,
        operations_per_s=rate(count, whole_ns / NS_PER_S),
        bytes_per_s=rate(moved, whole_ns / NS_PER_S),
        latency=times("latency"),
        service=times("service") if waited else None,
        response=times("response"),
        queueing=times("queueing"),
    )


def _durations(run: Run, good: Mask) -> dict[str, Ints]:
    """Return each time that there is, in ns, with a value per operation."""
    operations = run.operations
    start, end = operations["start_ns"], operations["end_ns"]
    service = np.zeros(len(start), dtype=np.int64)
    service[good] = np.rint(service_s(run, good) * NS_PER_S).astype(np.int64)
    found = {"latency": np.maximum(end - start, 0), "service": service}
    intended = operations["intended_ns"]
    there = intended != ABSENT
    if there.any():
        found["response"] = np.where(there, np.maximum(end - intended, 0), ABSENT)
        found["queueing"] = np.where(there, np.maximum(start - intended, 0), ABSENT)
    return found


def _kinds(operations: Table, mine: Mask) -> Iterator[str]:
    """Yield the kinds that there are, in the order of ``OperationKind``."""
    there = set(operations["kind"][mine].tolist())
    known = [kind.value for kind in OperationKind]
    yield from (kind for kind in known if kind in there)
    yield from sorted(kind for kind in there - set(known) if isinstance(kind, str))


def _blocks(operations: Table, wanted: Mask) -> list[tuple[str, Mask]]:
    """Return the user's own names of blocks, and which operations have them."""
    if "key" not in operations:
        return []
    names = sorted(set(operations["key"][wanted].tolist()))
    if len(names) > MAX_BLOCKS:
        return []
    return [(name, is_text(operations["key"], name)) for name in names]


def _size_classes(operations: Table, good: Mask) -> Ints:
    """Return the number in ``SIZE_CLASSES`` of each operation, ABSENT where it has none."""
    kinds, size = operations["kind"], operations["size"]
    of_object = ~good
    without = is_text(kinds, "get_range") & ~good
    for kind in _SERVER_SIDE:
        of_object |= is_text(kinds, kind)
    for kind in _NO_SIZE:
        without |= is_text(kinds, kind)
    wanted = np.where(of_object, size, operations["bytes"])
    number = np.searchsorted(_EDGES, wanted, side="left")
    return np.where(without | (wanted < 0), ABSENT, number)


def _named(values: Sequence[float], histogram: Histogram) -> dict[str, float]:
    named = {f"p{p:g}": value for p, value in zip(PERCENTILES, values, strict=True)}
    return {**named, "max": (histogram.max_ns or 0) / NS_PER_S}


def rate(amount: int, span_s: float) -> float | None:
    """Return an amount per second; None where there was nothing, or no time passed."""
    return amount / span_s if amount and span_s > 0 else None
