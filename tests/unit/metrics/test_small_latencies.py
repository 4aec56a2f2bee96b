"""Latencies of runs so small that each figure can be computed in the head."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs

from serverless_bench.base.units import KIB, MIB
from serverless_bench.job.operations import OperationKind
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.workload import Load
from serverless_bench.metrics import latency
from serverless_bench.metrics.latency import MAX_BLOCKS, Latencies, Times, latencies, rate
from serverless_bench.metrics.latency_over_time import OverTime, grid_of, over_time
from serverless_bench.metrics.timeline import good_operations
from serverless_bench.rundir.record import Dropped, OperationRecord
from serverless_bench.rundir.tables import ABSENT
from tests.data.runs import S, attempt, job, operation, outcome, record, saved
from tests.tables import each_row

GET, PUT, RANGE = OperationKind.GET, OperationKind.PUT, OperationKind.GET_RANGE
MS = S // 1000


def op(
    number: int, begin_s: float, end_s: float, *, due_s: float | None = None, **more: object
) -> OperationRecord:
    made = operation(number, start_ns=round(begin_s * S), end_ns=round(end_s * S))
    due_ns = None if due_s is None else round(due_s * S)
    return replace(made, intended_ns=due_ns, **more)  # type: ignore[arg-type]


def of_rate(rate_per_s: float | None) -> JobSpec:
    return replace(job(number=1), load=Load(rate=rate_per_s))


def found(
    path: Path, ops: list[OperationRecord], *dropped: Dropped, rate_per_s: float | None = 1.0
) -> Latencies:
    attempts = [attempt(one.index, size=one.bytes) for one in ops]
    one = replace(record(0, ops, attempts=attempts), dropped=dropped)
    run = saved(path, [outcome(one)], of=of_rate(rate_per_s))
    return latencies(run, good_operations(run))


def kept(times: Times | None) -> list[float]:
    """Return least, middle and most."""
    assert times is not None
    assert times.histogram.min_ns is not None
    percentiles = times.percentiles_s
    return [times.histogram.min_ns / S, percentiles["p50"], percentiles["max"]]


def test_an_open_loop_in_three_operations(tmp_path: Path) -> None:
    """One operation per second from 0 s on; each takes 2 s, and the last of four did not start."""
    ops = [op(0, 0, 2, due_s=0), op(1, 2, 4, due_s=1), op(2, 4, 6, due_s=2, error="timeout")]
    dropped = Dropped(first_ns=3 * S, last_ns=3 * S, count=1, until_ns=6 * S)
    latency = found(tmp_path, ops, dropped)
    assert (latency.open_loop, latency.target_per_s) == (True, 1)
    assert (latency.due, latency.begun, latency.dropped) == (4, 3, 1)
    assert latency.offered_per_s == 1
    # Two succeeded in four seconds, because the last one due has its second, too.
    assert latency.achieved_per_s == 2 / 4
    assert latency.elapsed_s == 6
    whole, sized = latency.by_kind
    assert (whole.kind, whole.size_class, sized.size_class) == ("put", None, "1 B-8 KiB")
    assert structs.replace(whole, size_class="1 B-8 KiB") == sized
    assert (whole.ok, whole.failed, whole.dropped, whole.keys) == (2, 1, 1, 2)
    assert (whole.bytes, whole.operations_per_s, whole.bytes_per_s) == (2000, 2 / 6, 2000 / 6)
    assert whole.without_backoff is None
    # Begun and done well: 2 s and 2 s; from when they were due 2 s and 3 s, and 3 s of waiting.
    assert kept(whole.latency) == [2, 2, 2]
    assert kept(whole.response) == [2, 3, 3]
    assert kept(whole.queueing) == [0, 1, 3]
    assert whole.response is not None
    assert whole.response.mean_s == pytest.approx(8 / 3)


def test_a_late_end_lowers_the_achieved_rate(tmp_path: Path) -> None:
    ops = [op(0, 0, 1, due_s=0), op(1, 1, 9, due_s=1)]
    latency = found(tmp_path, ops)
    assert (latency.offered_per_s, latency.achieved_per_s) == (1, 2 / 9)
    assert (latency.due, latency.begun, latency.dropped) == (2, 2, 0)


def test_one_instant_has_no_rate(tmp_path: Path) -> None:
    latency = found(tmp_path, [op(0, 0, 1, due_s=0)])
    assert (latency.due, latency.offered_per_s, latency.achieved_per_s) == (1, None, None)


def test_unscheduled_operations_have_no_response_time(tmp_path: Path) -> None:
    latency = found(tmp_path, [op(0, 1, 2, due_s=0), op(1, 2, 5)])
    row = latency.by_kind[0]
    assert (latency.due, row.ok) == (1, 2)
    assert (kept(row.latency), kept(row.response), kept(row.queueing)) == (
        [1, 1, 3],
        [2, 2, 2],
        [1, 1, 1],
    )


def test_a_closed_loop_has_neither(tmp_path: Path) -> None:
    latency = found(tmp_path, [op(0, 0, 2)], rate_per_s=None)
    assert (latency.open_loop, latency.target_per_s, latency.due) == (False, None, None)
    row = latency.by_kind[0]
    assert row.response is row.queueing is None
    assert row.dropped == 0


def test_a_run_without_operations_has_no_rows(tmp_path: Path) -> None:
    warm = [op(0, 0, 1, warmup=True)]
    assert found(tmp_path, [], rate_per_s=None) == Latencies()
    assert found(tmp_path / "warm", warm, rate_per_s=None) == Latencies()


def test_warm_up_and_duplicates_take_no_time(tmp_path: Path) -> None:
    first = record(0, [op(0, 0, 5, warmup=True), op(1, 5, 6)])
    run = saved(tmp_path, [outcome(first), outcome(record(0, [op(0, 0, 9)]))], of=of_rate(None))
    latency = latencies(run, good_operations(run))
    assert latency.elapsed_s == 1
    assert kept(latency.by_kind[0].latency) == [1, 1, 1]
    assert latency.over_time[0].count == (1,)


@each_row(
    ("one", "size_class"),
    [
        (op(0, 0, 1, size=0, bytes=0), "0 B"),
        (op(0, 0, 1, kind=RANGE, size=64 * MIB, bytes=9 * KIB), "8-64 KiB"),
        # A failed operation has the size class of its object; the length of a range is unknown.
        (op(0, 0, 1, size=5 * MIB, bytes=0, error="timeout"), "4-32 MiB"),
        (op(0, 0, 1, kind=RANGE, size=5 * MIB, bytes=0, error="timeout"), None),
        (op(0, 0, 1, kind=GET, size=None, bytes=0, error="timeout"), None),
        (op(0, 0, 1, kind=GET, size=None, bytes=9 * KIB), "8-64 KiB"),
        # The driver transfers no bytes of a copy.
        (op(0, 0, 1, kind=OperationKind.COPY, size=5 * MIB, bytes=0), "4-32 MiB"),
        (op(0, 0, 1, kind=OperationKind.HEAD, size=5 * MIB, bytes=0), None),
        (op(0, 0, 1, kind=OperationKind.DELETE, size=5 * MIB, bytes=0), None),
        (op(0, 0, 1, kind=OperationKind.DELETE_MANY, size=5 * MIB, bytes=0), None),
        (op(0, 0, 1, kind=OperationKind.LIST, size=None, bytes=0), None),
    ],
)
def test_the_size_class_is_of_moved_or_expected_bytes(
    tmp_path: Path, one: OperationRecord, size_class: str | None
) -> None:
    rows = found(tmp_path, [one], rate_per_s=None).by_kind
    assert [row.size_class for row in rows] == [None, *([size_class] if size_class else [])]
    assert {row.kind for row in rows} == {one.kind.value}


@pytest.mark.parametrize("blocks", [2, MAX_BLOCKS, MAX_BLOCKS + 1])
def test_blocks_of_a_function_have_rows_unless_there_are_too_many(
    tmp_path: Path, blocks: int
) -> None:
    calls = [
        op(n, n, n + 1, kind=OperationKind.CALL, key=f"block {n % blocks:03}")
        for n in range(2 * blocks)
    ]
    names = [row.size_class for row in found(tmp_path, calls, rate_per_s=None).by_kind]
    each = [f"block {n:03}" for n in range(blocks)] if blocks <= MAX_BLOCKS else []
    assert names == [None, *each]


def test_kinds_stand_in_their_order(tmp_path: Path) -> None:
    kinds = [OperationKind.HEAD, PUT, GET, OperationKind.DELETE]
    rows = found(tmp_path, [op(n, n, n + 1, kind=kind) for n, kind in enumerate(kinds)]).by_kind
    order = [kind.value for kind in OperationKind if kind in kinds]
    assert [row.kind for row in rows if row.size_class is None] == order


# Times


def test_times_of_durations() -> None:
    times = Times.from_durations(np.array([4, 1, 2, 3, -9]) * S)
    assert times is not None
    assert times.exact
    # Negative durations count as zero.
    assert (times.percentiles_s["p50"], times.percentiles_s["max"]) == (2, 4)
    assert times.percentiles_s["p90"] == 4
    assert (times.mean_s, times.histogram.count) == (2, 5)
    assert list(times.percentiles_s) == ["p50", "p90", "p95", "p99", "p99.9", "max"]
    assert Times.from_durations(np.array([], dtype=np.int64)) is None


@pytest.mark.parametrize(("limit", "exact"), [(4, True), (3, False)])
def test_above_a_limit_percentiles_come_from_the_histogram(
    limit: int,
    exact: bool,  # noqa: FBT001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(latency, "RAW_LIMIT", limit)
    times = Times.from_durations(np.array([1, 2, 3, 4]) * S)
    assert times is not None
    assert (times.exact, times.mean_s) == (exact, 2.5)
    assert times.percentiles_s["p50"] == pytest.approx(2, rel=0.01)
    assert times.intervals_s["p50"] == (None, None)
    assert times.percentiles_s["max"] == 4


@pytest.mark.parametrize(
    ("amount", "elapsed_s", "per_s"), [(6, 2.0, 3), (0, 2.0, None), (6, 0.0, None), (1, 0.5, 2)]
)
def test_a_rate_needs_something_and_some_time(
    amount: int, elapsed_s: float, per_s: float | None
) -> None:
    assert rate(amount, elapsed_s) == per_s


# Over time


@each_row(
    ("count", "span_ns", "segment_ns", "segments"),
    [
        (39, 10 * S, 10 * S, 1),  # too few for two segments
        (40, 10 * S, 5 * S, 2),
        (40, 10 * S + 1, 10 * S, 2),
        (2400, 12 * S, 100 * MS, 120),
        (2400, 12 * S + 1, 200 * MS, 61),
        (9999, 12 * S + 1, 200 * MS, 61),
        (2400, S // 10, 100 * MS, 1),
        (2400, 24 * S, 200 * MS, 120),
        (2400, 60 * S, 500 * MS, 120),
        (2400, 120 * S, S, 120),
        (2400, 100 * 86_400 * S, 5 * 10**13, 173),  # of months they are many
        (1, 1, 100 * MS, 1),
    ],
)
def test_segments_are_few_enough_to_have_operations_in_them(
    count: int, span_ns: int, segment_ns: int, segments: int
) -> None:
    began = np.full(count, 7 * S)
    began[-1] += span_ns - 1
    grid = grid_of(began)
    assert (grid.first_ns, grid.segment_ns, grid.count) == (7 * S, segment_ns, segments)
    assert grid.segment_of(began).tolist()[-1] == segments - 1


def test_a_run_without_operations_has_no_segments() -> None:
    assert grid_of(np.array([], dtype=np.int64)).count == 0


def test_each_segment_has_its_percentiles() -> None:
    began = np.array([0, 0, 99, 100, 250, 250, 299]) * MS
    took = np.array([4, 2, 3, 7, 10, 20, ABSENT]) * S
    took[-1] = ABSENT
    grid = structs.replace(grid_of(began), count=3, segment_ns=100 * MS)
    assert over_time("get", grid, began, took) == OverTime(
        kind="get",
        count=(3, 1, 2),
        dropped=(0, 0, 0),
        p50_s=(3, 7, 10),
        p99_s=(4, 7, 20),
    )
    empty = over_time("get", grid, began[:0], took[:0])
    assert (empty.count, empty.p50_s, empty.p99_s) == ((0,) * 3, (None,) * 3, (None,) * 3)
