"""Every field of a summary, of runs so small that each figure can be reckoned in the head."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from serverless_bench.job.operations import OperationKind
from serverless_bench.job.spec import JobSpec
from serverless_bench.metrics.clock_offsets import Clocks
from serverless_bench.metrics.summary import (
    MAX_REPORTED_RANGES,
    REPORT_SCHEMA,
    summarize,
)
from serverless_bench.metrics.throughput import (
    Elapsed,
    elapsed,
    missing_functions,
    span,
    span_ns,
    whole_and_peak,
)
from serverless_bench.metrics.timeline import function_spans, good_operations
from serverless_bench.rundir.record import (
    BadRange,
    FoundBytes,
    InvocationRecord,
    OperationRecord,
    Step,
)
from serverless_bench.rundir.run import Run
from tests.data.loads import array_load
from tests.data.runs import OTHER_EXECUTOR, S, job, lost, operation, outcome, record, saved
from tests.house.members import uses
from tests.tables import each_row

GET, PUT = OperationKind.GET, OperationKind.PUT


def op(number: int, begin_s: float, end_s: float, size: int, **more: object) -> OperationRecord:
    made = operation(number, start_ns=round(begin_s * S), end_ns=round(end_s * S), size=size)
    return replace(made, **more)  # type: ignore[arg-type]


def functions() -> list[InvocationRecord]:
    """Two successful functions and a failed one; the first one had a warm-up."""
    return [
        replace(
            record(0, [op(0, 0, 1, 500, warmup=True), op(1, 1, 3, 1000)]),
            max_rss_bytes=10,
            barrier_wait_ns=S,
        ),
        replace(
            record(1, [op(0, 1, 2, 2000), op(1, 2, 5, 3000)]),
            cold_start=False,
            worker_id="w0",
            max_rss_bytes=30,
            barrier_wait_ns=3 * S,
        ),
        replace(
            record(2, [op(0, 1, 2, 1000), op(1, 2, 6, 4000, bytes=0, error="timeout")]),
            max_rss_bytes=20,
            barrier_late=True,
        ),
    ]


def run_of(path: Path, *more: InvocationRecord, of: JobSpec | None = None) -> Run:
    of = of or job(number=4, concurrency=3)
    return saved(path, [outcome(one) for one in (*functions(), *more)], of=of)


DUPLICATE = replace(
    record(0, [op(0, 0, 9, 9000), op(1, 0, 9, 9000, error="throttled")]),
    max_rss_bytes=99,
    worker_id="w9",
)
"""Duplicates only appear in the count of duplicates."""


@pytest.mark.parametrize("more", [(), (DUPLICATE,)], ids=["alone", "with a duplicate"])
def test_each_figure_of_a_small_run(tmp_path: Path, more: tuple[InvocationRecord, ...]) -> None:
    found = summarize(run_of(tmp_path, *more))
    assert (found.requested, found.ok, found.failed, found.lost) == (4, 2, 1, 1)
    assert found.duplicate == len(more)
    assert (found.ended, found.skipped_lines) == (True, 0)
    assert found.withheld == ()
    # 1,000 + 2,000 + 3,000 + 1,000 bytes, from the first second to the sixth.
    assert (found.bytes, found.verified_bytes) == (7000, 0)
    assert (found.elapsed_s, found.paused_s) == (5, 0)
    assert found.throughput_bytes_per_s == 1400
    assert (found.operations, found.failed_operations) == (5, 1)
    assert (found.warmup_operations, found.warmup_bytes) == (1, 500)
    # The last record came a second after its function's end.
    assert found.makespan_s == (10 if more else 7)
    # Half of four are two, and the second was done at 5 s; four are never reached.
    assert found.completion_s == {"p50": 4, "p90": None, "p99": None, "max": None}
    # 1,000 bytes in 2 s, and 5,000 in 4 s.
    assert found.per_function_bytes_per_s is not None
    assert found.per_function_bytes_per_s["p50"] == 500
    assert found.latency_s is not None
    assert found.latency_without_backoff_s is not None
    assert found.ack_s is not None
    assert found.latency_s["p50"] == found.latency_without_backoff_s["p50"] == 1
    assert found.ack_s["p50"] == 0.1
    assert found.ttfb_s is None
    assert found.errors == {"timeout": 1, "no record: the driver ended before it arrived": 1}
    assert (found.cold_starts, found.workers, found.peak_rss_bytes) == (2, 2, 30)
    assert (found.planned_concurrency, found.object_bytes, found.threads) == (3, 1000, 1)
    assert (found.corrupt_objects, found.bad_bytes, found.unknown_objects) == (0, 0, 0)
    # As if the lost and the failed function had moved as much as the best one.
    assert found.missing_functions is not None
    assert found.missing_functions.count == 2
    assert found.missing_functions.throughput_bytes_per_s == pytest.approx(
        (1400, (6000 + 2 * 5000) / 5)
    )


def test_json_has_the_fields_of_the_parts_in_its_own(tmp_path: Path) -> None:
    found = summarize(run_of(tmp_path)).to_json()
    assert found["report_schema"] == REPORT_SCHEMA
    assert (found["completion_s"]["p50"], found["attempts"]) == (4, 5)
    assert not {"attempt_stats", "bill", "deliveries"} & set(found)


def test_bytes_of_the_last_moment_are_bytes(tmp_path: Path) -> None:
    steps = [
        Step(operation=0, step_ns=S - 1, step_bytes=0),
        Step(operation=0, step_ns=1, step_bytes=1000),
    ]
    found = summarize(saved(tmp_path, [outcome(record(0, [operation()], steps=steps))]))
    assert found.peak_1s_bytes_per_s == found.throughput_bytes_per_s == 1000


def test_the_warm_up_counts_on_request(tmp_path: Path) -> None:
    found = summarize(run_of(tmp_path), with_warmup=True)
    assert (found.bytes, found.elapsed_s, found.throughput_bytes_per_s) == (7500, 6, 1250)
    assert (found.operations, found.warmup_operations, found.warmup_bytes) == (6, 0, 0)
    assert found.completion_s["p50"] == 5


def test_clocks_are_as_well_known_as_calls_are_short(tmp_path: Path) -> None:
    found = summarize(run_of(tmp_path)).clocks
    # From the submission at 0 to a second after the end; functions started at 0 s, 1 s and 1 s, and
    # the first two share a worker, whose clock is known as precisely as in its best function.
    assert found == Clocks(width_p50_s=1, width_max_s=2, corrected=0, suspect=0)
    nothing = summarize(saved(tmp_path / "nothing", [], of=job(number=1))).clocks
    assert nothing == Clocks(width_p50_s=None, width_max_s=None, corrected=0, suspect=0)


@pytest.mark.parametrize(
    ("change", "store", "client"),
    [
        (lambda of: of, "b at http://store", "wire"),
        (
            lambda of: replace(of, endpoints=("http://second",)),
            "b at http://store, http://second",
            "wire",
        ),
        (
            lambda of: replace(of, target=replace(of.target, store="embedded", client="boto3")),
            "b at http://store (embedded store)",
            "boto3",
        ),
    ],
)
def test_names_are_those_of_the_job(
    tmp_path: Path, change: Callable[[JobSpec], JobSpec], store: str, client: str
) -> None:
    of = replace(change(job(number=1)), name="mine", workload="write", executor=OTHER_EXECUTOR)
    found = summarize(saved(tmp_path, [outcome(record(0, [operation()]))], of=of))
    assert (found.run_id, found.name, found.workload) == ("run", "mine", "write")
    assert (found.store, found.client, found.executor) == (store, client, OTHER_EXECUTOR)
    assert found.planned_concurrency == 1


@uses("workload array")
@pytest.mark.parametrize(("path", "store"), [(None, "b at http://store"), ("/d", "files in /d")])
def test_arrays_are_moved_by_their_library(tmp_path: Path, path: str | None, store: str) -> None:
    load = array_load(library="zarr", shape=(4, 4), chunks=(2, 2), driver="zarr3", path=path)
    of = replace(job(number=1, workload="array", size=None), load=load)
    found = summarize(saved(tmp_path, [], of=of))
    assert (found.store, found.client) == (store, "zarr")


def test_readable_foreign_objects_are_counted(tmp_path: Path) -> None:
    foreign = [replace(op(n, n, n + 1, 1000, kind=GET), size=None) for n in range(4)]
    foreign[0] = replace(foreign[0], error="timeout")
    foreign[1] = replace(foreign[1], kind=OperationKind.GET_RANGE)
    foreign[2] = replace(foreign[2], kind=PUT)
    one = record(0, [*foreign, op(4, 4, 5, 1000, kind=GET)])
    assert summarize(saved(tmp_path, [outcome(one)])).unknown_objects == 2


def test_bad_ranges_are_listed_with_their_origin_up_to_a_number(tmp_path: Path) -> None:
    bad = [
        BadRange(
            operation=0,
            key="k",
            offset=100 * n,
            length=16,
            bad_bytes=15,
            found=FoundBytes.OTHER_GENERATION,
            found_key_hash="00ff",
            found_generation=3,
            found_offset=7,
        )
        for n in range(MAX_REPORTED_RANGES + 1)
    ]
    get = replace(operation(kind=GET, error="corrupt"), bad_bytes=765, bad_ranges=51)
    one = record(0, [get], bad_ranges=bad)
    found = summarize(saved(tmp_path, [outcome(one), outcome(one)], of=job(number=1)))
    assert (found.duplicate, found.corrupt_objects, found.bad_bytes) == (1, 1, 765)
    assert len(found.bad_ranges) == MAX_REPORTED_RANGES
    assert found.bad_ranges[1] == {
        "key": "k",
        "found": FoundBytes.OTHER_GENERATION.value,
        "found_key": None,
        "found_key_hash": "00ff",
        "offset": 100,
        "length": 16,
        "bad_bytes": 15,
        "found_generation": 3,
        "found_offset": 7,
    }


def test_a_function_without_bytes_is_done_at_its_end(tmp_path: Path) -> None:
    idle = replace(record(1, [op(0, 2, 3, 1000, warmup=True)]), end_ns=4 * S)
    early = replace(record(2, []), start_ns=0, end_ns=S // 2)
    moved = record(0, [op(0, 1, 3, 1000)])
    found = summarize(saved(tmp_path, [outcome(one) for one in (moved, idle, early)]))
    # The function that ended before the first start counts as done at that start.
    assert found.completion_s == {"p50": 2, "p90": 3, "p99": 3, "max": 3}
    few = summarize(saved(tmp_path / "few", [outcome(replace(early, index=1)), outcome(moved)]))
    assert few.completion_s["p50"] == 0


def test_a_window_is_as_long_as_from_its_beginning_to_its_end(tmp_path: Path) -> None:
    """Two functions with 100 kB/s; the second one starts at 2 s and both end at 10 s."""
    both = [record(0, [op(0, 0, 10, 10**6)]), record(1, [op(0, 2, 10, 800_000)])]
    run = saved(tmp_path / "run", [outcome(one) for one in both])
    found = summarize(run)
    # Nine tenths of both, averaged over a second, are at work from 1.8 s on.
    assert found.steady_window_s == pytest.approx(8.2)
    assert found.steady_bytes_per_s == pytest.approx((820e3 + 800e3) / 8.2)
    assert whole_and_peak(run, good_operations(run)) == pytest.approx((180e3, 200e3), rel=1e-4)
    second = run.operations["function"] == 1
    assert whole_and_peak(run, second) == pytest.approx((80e3, 100e3), rel=1e-4)


def test_a_late_run_is_no_longer_one(tmp_path: Path) -> None:
    run = saved(tmp_path, [outcome(record(0, [op(0, 10, 10.5, 1000)]))])
    assert whole_and_peak(run, good_operations(run)) == (2000, None)
    assert summarize(run).peak_1s_bytes_per_s is None


# Missing functions


@each_row(
    ("missing", "middle"),
    [(1, (2, 4)), (2, (2, 4)), (3, (1, 5)), (4, (1, 5)), (5, None), (6, None)],
)
def test_the_middle_if_those_that_are_missing_were_slower_and_faster(
    tmp_path: Path, missing: int, middle: tuple[float, float] | None
) -> None:
    """Five functions with rates 1 to 5."""
    outcomes = [outcome(record(i, [operation(size=(i + 1) * 1000)])) for i in range(5)]
    outcomes += [outcome(lost(5 + i)) for i in range(missing)]
    run = saved(tmp_path, outcomes, of=job(number=5 + missing))
    good, rates = good_operations(run), np.array([4.0, 2.0, 5.0, 1.0, 3.0])
    found = missing_functions(run, good, rates, whole=100.0)
    assert found is not None
    assert found.count == missing
    assert found.per_function_p50_bytes_per_s == middle
    assert found.throughput_bytes_per_s == pytest.approx((100, 15000 + missing * 5000))
    assert [
        missing_functions(run, good, rates[:0], whole=100.0),
        missing_functions(run, good, rates, whole=None),
    ] == [None, None]
    # The measured rate never exceeds the upper bound.
    most = missing_functions(run, good, rates, whole=1e9)
    assert most is not None
    assert most.throughput_bytes_per_s == pytest.approx((1e9, 1e9))


def test_a_complete_run_has_no_missing_functions(tmp_path: Path) -> None:
    run = saved(tmp_path, [outcome(record(0, [operation()]))])
    assert missing_functions(run, good_operations(run), np.ones(1), whole=1.0) is None


# Pauses


@each_row(
    ("stretch", "paused"),
    [((0, 100), 20), ((15, 55), 10), ((20, 50), 0), ((12, 18), 6), ((0, 11), 1), ((59, 99), 1)],
)
def test_pauses_are_taken_off_as_far_as_they_are_inside(
    stretch: tuple[int, int], paused: int
) -> None:
    clock = Elapsed(begins=np.array([10, 50]), ends=np.array([20, 60]))
    assert clock.between_ns(*stretch) == stretch[1] - stretch[0] - paused


@each_row(
    ("down", "pauses"),
    [
        ((0, 10), []),
        ((0, 30), [(10, 20)]),
        ((5, 25), [(10, 20)]),
        ((12, 15), [(12, 15)]),
        ((30, 40), [(30, 40)]),
        ((0, 60), [(10, 20), (30, 45), (55, 60)]),
        ((25, 50), [(30, 45)]),
        ((10, 20), [(10, 20)]),
        ((22, 28), []),
    ],
)
def test_a_pause_is_a_time_without_active_functions(
    tmp_path: Path, down: tuple[int, int], pauses: list[tuple[int, int]]
) -> None:
    """Functions worked from 0 to 10 s, from 20 to 30 s twice and in a part of it once, and from 45
    to 55 s."""
    worked = [(45, 55), (20, 30), (0, 10), (20, 30), (22, 26)]
    outcomes = [outcome(record(i, [op(0, *when, 1)])) for i, when in enumerate(worked)]
    run = saved(tmp_path, [*outcomes, outcome(lost(5))])
    there = replace(run, downtimes=((down[0] * S, down[1] * S),))
    found = elapsed(there)
    assert list(zip(found.begins.tolist(), found.ends.tolist(), strict=True)) == [
        (begin * S, end * S) for begin, end in pauses
    ]
    assert span(there) == (0, 55 * S)
    inside = sum(min(end, 55) - begin for begin, end in pauses)
    assert span_ns(there) == (55 - inside) * S
    assert summarize(there).paused_s == inside


def test_rates_are_of_the_functions_that_are_ok(tmp_path: Path) -> None:
    assert function_spans(run_of(tmp_path, DUPLICATE)).bytes_per_s.tolist() == [500, 1250]
