"""Compute durations of operations by kind, by size class and over time. Pure functions.

There are four durations::

    intended start          start                            end
    |------- queueing -------|------------ latency -----------|
    |------------------------ response -----------------------|

In a closed loop, each operation waits for the previous operation. A store that stalls then receives
fewer requests during the stall, so the latencies hide most of it ("coordinated omission", Gil
Tene). In an open loop (``--rate``), operations have an intended start, and the response time
starts there. Service is latency without the backoff between the attempts of an operation.

A dropped operation, which never started, has waited at least until the end of the measurement.
It is included in response and queueing with this time, because otherwise the worst cases would be
excluded. Latency only covers operations that started.

Percentiles are computed from raw values or from a histogram, never from other percentiles.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Self

import numpy as np
from msgspec import Struct, structs

from serverless_bench.base.units import GIB, KIB, MIB, NS_PER_S
from serverless_bench.job.operations import OperationKind
from serverless_bench.metrics.attempt_stats import latency_without_backoff_s
from serverless_bench.metrics.histogram import Histogram, interval_ranks
from serverless_bench.metrics.latency_over_time import (
    OverdueOperations,
    OverTime,
    began,
    dropped_operations,
    grid_of,
    over_time,
)
from serverless_bench.metrics.throughput import elapsed, span_ns
from serverless_bench.metrics.timeline import counted, measured_operations
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import (
    ABSENT,
    Ints,
    Mask,
    Table,
    at_ranks,
    is_one_of,
    is_text,
    rank_of,
)

PERCENTILES: Final = {"p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0, "p99.9": 99.9}
RAW_LIMIT: Final = 10_000_000
"""Maximum number of operations in a row for percentiles of raw values, which requires sorting."""

MAX_BLOCKS: Final = 32
"""Maximum number of blocks of a user's function that are listed separately."""
_EDGES: Final = (0, 8 * KIB, 64 * KIB, 512 * KIB, 4 * MIB, 32 * MIB, 256 * MIB, 2 * GIB)
SIZE_CLASSES: Final = (
    *("0 B", "1 B-8 KiB", "8-64 KiB", "64-512 KiB", "512 KiB-4 MiB"),
    *("4-32 MiB", "32-256 MiB", "256 MiB-2 GiB", "above 2 GiB"),
)
"""Size classes of sai3-bench (docs/PERF_LOG_FORMAT.md), including the upper bound."""
_NO_SIZE: Final = frozenset({"call", "delete", "delete_many", "head", "list"})
"""Operation kinds with durations independent of the size of the object."""
_SERVER_SIDE: Final = frozenset({"copy"})
"""Operation kinds without local transfer, with durations that depend on the size of the object."""
_FROM_DUE: Final = frozenset({"response", "queueing"})
"""Durations that start when an operation is due."""


class Times(Struct, frozen=True, kw_only=True):
    """Durations of some operations; metrics/figures.toml defines each field."""

    percentiles_s: Mapping[str, float]
    intervals_s: Mapping[str, tuple[float | None, float | None]]
    mean_s: float
    exact: bool
    histogram: Histogram

    @classmethod
    def from_durations(cls, durations_ns: Ints) -> Self | None:
        """Return the statistics of durations; None if there are none.

        Negative durations, which only occur in damaged records, are treated as zero.
        """
        if not len(durations_ns):
            return None
        durations_ns = np.maximum(durations_ns, 0)
        exact, count = len(durations_ns) <= RAW_LIMIT, len(durations_ns)
        histogram = Histogram.from_durations(durations_ns)
        ranks = {
            name: (rank_of(p, count), *interval_ranks(p, count)) for name, p in PERCENTILES.items()
        }
        needed_ranks = sorted({rank for row in ranks.values() for rank in row} - {0, count + 1})
        at_ns = at_ranks(durations_ns, needed_ranks) if exact else histogram.at_ranks(needed_ranks)
        at_s = dict(zip(needed_ranks, (at_ns / NS_PER_S).tolist(), strict=True))
        named = {name: at_s[rank] for name, (rank, _, _) in ranks.items()}
        return cls(
            percentiles_s={**named, "max": (histogram.max_ns or 0) / NS_PER_S},
            intervals_s={n: (at_s.get(low), at_s.get(high)) for n, (_, low, high) in ranks.items()},
            mean_s=histogram.sum_ns / count / NS_PER_S,
            exact=exact,
            histogram=histogram,
        )


class Latency(Struct, frozen=True, kw_only=True):
    """Operations of a kind, or of a kind and size class.

    metrics/figures.toml defines each field, in its section ``by_kind``.
    """

    kind: str
    size_class: str | None
    ok: int
    failed: int
    dropped: int
    keys: int
    bytes: int
    operations_per_s: float | None
    bytes_per_s: float | None
    latency: Times | None
    without_backoff: Times | None
    response: Times | None
    queueing: Times | None


class Latencies(Struct, frozen=True, kw_only=True):
    """The section "operations" of a report; metrics/figures.toml defines each field."""

    open_loop: bool = False
    target_per_s: float | None = None
    offered_per_s: float | None = None
    achieved_per_s: float | None = None
    due: int | None = None
    begun: int | None = None
    dropped: int | None = None
    elapsed_s: float | None = None
    by_kind: tuple[Latency, ...] = ()
    segment_s: float | None = None
    over_time: tuple[OverTime, ...] = ()

    @property
    def of_kinds(self) -> tuple[Latency, ...]:
        """Rows of all sizes of a kind."""
        return tuple(row for row in self.by_kind if row.size_class is None)

    @property
    def operations_per_s(self) -> float | None:
        """Successful operations of all kinds per second of the span; None without a rate."""
        # Kinds of imported runs have their own time each.
        done = sum(row.ok for row in self.of_kinds if row.operations_per_s)
        return done / self.elapsed_s if done and self.elapsed_s else None

    @property
    def notable(self) -> bool:
        """Whether the run had more than puts and gets of objects of a single size."""
        kinds = {row.kind for row in self.by_kind}
        sizes = {row.size_class for row in self.by_kind if row.ok} - {None}
        is_varied = len(kinds) > 1 or len(sizes) > 1
        return bool(kinds) and (self.open_loop or is_varied or not kinds <= {"get", "put"})

    def without_rates(self) -> "Latencies":
        """Return a copy without rates, for a report with withheld throughput."""
        rows = (
            structs.replace(row, operations_per_s=None, bytes_per_s=None) for row in self.by_kind
        )
        return structs.replace(self, achieved_per_s=None, by_kind=tuple(rows))


def latencies(run: Run, good: Mask) -> Latencies:
    """Return the durations of the operations of a run.

    Parameters
    ----------
    run
        A saved run with worker timestamps on the driver's clock.
    good
        Mask of successful operations that count, shape ``(operations,)``.
    """
    operations, measured = run.operations, measured_operations(run)
    sizes = _size_classes(operations, good)
    scheduled = measured & (operations["intended_ns"] != ABSENT)
    late = dropped_operations(run, counted(run), scheduled, sizes)
    rate_per_s = run.job.load.rate
    pace = _pace(run, scheduled, good, late)
    if not measured.any() and not len(late.due_ns):
        return Latencies(open_loop=rate_per_s is not None, target_per_s=rate_per_s, **pace)
    durations = _durations(run, good, late)
    duration_ns = span_ns(run)
    rows: list[Latency] = []
    segments: list[OverTime] = []
    instants = began(operations)
    grid = grid_of(np.concatenate((instants[good], late.due_ns)))
    kinds = {*operations["kind"][measured].tolist(), *(kind for kind, _ in late.cells)} - {None}
    for kind in in_order(kinds):
        of_kind = measured & is_text(operations["kind"], kind)
        own_s = _own_s(operations, of_kind) if run.job.executor == "imported" else 0.0
        for name, of_class, dropped in _parts(operations, of_kind, sizes, kind, late):
            wanted = of_kind & of_class
            if wanted.any() or dropped.any():
                rows.append(
                    Latency(
                        kind=kind,
                        size_class=name,
                        failed=int((wanted & ~good).sum()),
                        dropped=int(dropped.sum()),
                        **_moved(operations, wanted & good, own_s or duration_ns / NS_PER_S),
                        **_times(durations, wanted & good, late.waited_ns[dropped]),
                    )
                )
        displayed, dropped = durations.get("response", durations["latency"]), late.mask(kind)
        done = of_kind & good
        if done.any() or dropped.any():
            at_ns = np.concatenate((instants[done], late.due_ns[dropped]))
            took_ns = np.concatenate((displayed[done], late.waited_ns[dropped]))
            segments.append(over_time(kind, grid, at_ns, took_ns, int(dropped.sum())))
    return Latencies(
        open_loop=rate_per_s is not None or "response" in durations,
        target_per_s=rate_per_s,
        **pace,
        elapsed_s=duration_ns / NS_PER_S if measured.any() else None,
        by_kind=tuple(rows),
        segment_s=grid.segment_ns / NS_PER_S if segments else None,
        over_time=tuple(segments),
    )


def _pace(run: Run, scheduled: Mask, good: Mask, late: OverdueOperations) -> dict[str, Any]:
    """Return the pace of an open loop: due, started and completed operations."""
    operations, time = run.operations, elapsed(run)
    begun, dropped, done = int(scheduled.sum()), len(late.due_ns), scheduled & good
    due_ns = np.concatenate((operations["intended_ns"][scheduled], late.due_ns))
    if not len(due_ns) and run.job.load.rate is None:
        return {}
    pace: dict[str, Any] = {"due": begun + dropped, "begun": begun, "dropped": dropped}
    if not len(due_ns):
        return pace
    first = int(due_ns.min())
    span = time.between_ns(first, int(due_ns.max()))
    if span > 0:
        offered = (len(due_ns) - 1) * NS_PER_S / span
        ends = int(operations["end_ns"][done].max(initial=first))
        # The last operation also has a full interval after it.
        took_s = max(len(due_ns) / offered, time.between_ns(first, ends) / NS_PER_S)
        pace |= {"offered_per_s": offered, "achieved_per_s": int(done.sum()) / took_s}
    return pace


def _own_s(operations: Table, of_kind: Mask) -> float:
    """Return the time from the first start to the last end of a kind.

    Other tools may run one kind after the other.
    """
    start, end = operations["start_ns"][of_kind], operations["end_ns"][of_kind]
    return int(end.max() - start.min()) / NS_PER_S if len(start) else 0.0


def _moved(operations: Table, good: Mask, elapsed_s: float) -> dict[str, Any]:
    """Return the number of successful operations in a row, and their bytes."""
    ok, moved = int(good.sum()), int(operations["bytes"][good].sum())
    return {
        "ok": ok,
        "keys": int(operations["count"][good].sum()),
        "bytes": moved,
        "operations_per_s": rate(ok, elapsed_s),
        "bytes_per_s": rate(moved, elapsed_s),
    }


def _times(durations: Mapping[str, Ints], good: Mask, waited_ns: Ints) -> dict[str, Any]:
    """Return the durations of a row's successful operations, and of its dropped operations."""
    times_by_name: dict[str, Times | None] = dict.fromkeys(
        ("latency", "without_backoff", "response", "queueing")
    )
    had_waits = (durations["without_backoff"] != durations["latency"])[good].any()
    for name in (name for name in durations if name != "without_backoff" or had_waits):
        # An open loop may have operations without an intended start.
        taken = durations[name][good & (durations[name] != ABSENT)]
        waited = waited_ns if name in _FROM_DUE else waited_ns[:0]
        times_by_name[name] = Times.from_durations(np.concatenate((taken, waited)))
    return times_by_name


def _durations(run: Run, good: Mask, late: OverdueOperations) -> dict[str, Ints]:
    """Return the available durations in ns, with a value per operation."""
    operations = run.operations
    start, end = operations["start_ns"], operations["end_ns"]
    service = np.zeros(len(start), dtype=np.int64)
    service[good] = np.rint(latency_without_backoff_s(run, good) * NS_PER_S).astype(np.int64)
    durations = {"latency": np.maximum(end - start, 0), "without_backoff": service}
    intended = operations["intended_ns"]
    is_scheduled = intended != ABSENT
    if is_scheduled.any() or len(late.due_ns):
        durations["response"] = np.where(is_scheduled, np.maximum(end - intended, 0), ABSENT)
        durations["queueing"] = np.where(is_scheduled, np.maximum(start - intended, 0), ABSENT)
    return durations


def in_order(kinds: Iterable[str]) -> list[str]:
    """Return kinds of operations in the order of ``OperationKind``, followed by other kinds."""
    places: dict[str, int] = {kind: place for place, kind in enumerate(OperationKind)}
    return sorted(kinds, key=lambda kind: (places.get(kind, len(places)), kind))


def is_largest(percentile: str, count: float) -> bool:
    """Return whether a percentile above the median equals the maximum of a small sample."""
    return percentile != "p50" and rank_of(PERCENTILES[percentile], int(count)) == count


def _parts(
    operations: Table, of_kind: Mask, sizes: Ints, kind: str, late: OverdueOperations
) -> Iterator[tuple[str | None, Mask, Mask]]:
    """Yield the rows of a kind: name, mask of operations, and mask of dropped operations."""
    yield None, of_kind, late.mask(kind)
    blocks = _blocks(operations, of_kind) if kind == OperationKind.CALL else []
    for name, mask in blocks:
        # A user's function has no schedule.
        yield name, mask, np.zeros_like(late.due_ns, dtype=np.bool_)
    if not blocks:
        for number, name in enumerate(SIZE_CLASSES):
            yield name, sizes == number, late.mask(kind, number)


def _blocks(operations: Table, wanted: Mask) -> list[tuple[str, Mask]]:
    """Return the names of blocks of a user's function, and masks of their operations."""
    names = sorted(set(operations["key"][wanted].tolist())) if "key" in operations else []
    if len(names) > MAX_BLOCKS:
        return []
    return [(name, is_text(operations["key"], name)) for name in names]


def _size_classes(operations: Table, good: Mask) -> Ints:
    """Return the index in ``SIZE_CLASSES`` for each operation, or ABSENT."""
    kinds, size = operations["kind"], operations["size"]
    of_object = ~good | is_one_of(kinds, _SERVER_SIDE)
    without = is_text(kinds, "get_range") & ~good | is_one_of(kinds, _NO_SIZE)
    wanted = np.where(of_object, size, operations["bytes"])
    return np.where(without | (wanted < 0), ABSENT, np.searchsorted(_EDGES, wanted, side="left"))


def rate(amount: int, elapsed_s: float) -> float | None:
    """Return an amount per second; None if either the amount or the time is zero."""
    return amount / elapsed_s if amount and elapsed_s > 0 else None
