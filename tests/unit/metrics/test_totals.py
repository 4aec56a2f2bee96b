import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serverless_bench.base.units import GIB
from serverless_bench.cli.output.terminal import ExitCode
from serverless_bench.job.operations import OperationKind
from serverless_bench.metrics.summary import summarize
from serverless_bench.rundir.record import BadRange, FoundBytes, Outcome, Step
from serverless_bench.rundir.tables import at_percentiles, percentiles
from tests.data.runs import S, attempt, job, lost, operation, outcome, record, saved


def even(index: int, start_s: float, end_s: float, size: int) -> Outcome:
    op = operation(start_ns=round(start_s * S), end_ns=round(end_s * S), size=size)
    return outcome(record(index, [op]))


def test_the_three_throughputs_are_distinguished(tmp_path: Path) -> None:
    # Two functions for 10 s at 100 B/s each, a straggler for 20 s at 10 B/s.
    outcomes = [even(0, 0, 10, 1000), even(1, 0, 10, 1000), even(2, 0, 20, 200)]
    summary = summarize(saved(tmp_path / "run", outcomes, of=job(number=3, concurrency=2)))
    assert summary.throughput_bytes_per_s == pytest.approx(2200 / 20)
    assert summary.peak_1s_bytes_per_s == pytest.approx(210, rel=0.01)
    assert summary.peak_5s_bytes_per_s == pytest.approx(210, rel=0.01)
    # Steady is the stretch with at least 1.8 functions at work, averaged over a second:
    # the first 10 s, and as far beyond as the mean allows.
    assert summary.steady_window_s == pytest.approx(10.6, abs=0.11)
    assert summary.steady_bytes_per_s == pytest.approx(2106 / 10.6, rel=0.02)


def test_a_short_run_has_no_peak_and_no_steady_window(tmp_path: Path) -> None:
    summary = summarize(saved(tmp_path / "run", [even(0, 0, 0.5, 1000)]))
    assert summary.peak_1s_bytes_per_s is None
    assert summary.steady_bytes_per_s is None
    assert summary.throughput_bytes_per_s == pytest.approx(2000)


def test_too_few_functions_at_once_are_not_steady(tmp_path: Path) -> None:
    of = job(number=1, concurrency=10)
    of_two = job(number=20, concurrency=10)
    outcomes = [even(0, 0, 30, 1000), *(outcome(lost(i)) for i in range(1, 20))]
    assert summarize(saved(tmp_path / "a", outcomes[:1], of=of)).steady_bytes_per_s
    assert summarize(saved(tmp_path / "b", outcomes, of=of_two)).steady_bytes_per_s is None


def test_the_gap_between_two_functions_of_a_worker_does_not_end_a_steady_window(
    tmp_path: Path,
) -> None:
    outcomes = [even(i, i, i + 0.95, 100) for i in range(10)]
    summary = summarize(saved(tmp_path / "run", outcomes, of=job(number=10, concurrency=1)))
    assert summary.steady_window_s == pytest.approx(9.9, abs=0.11)


def test_counts_add_up_with_losses_failures_and_duplicates(tmp_path: Path) -> None:
    failed = record(1, [operation(error="throttled")])
    outcomes = [
        outcome(record(0, [operation()])),
        outcome(record(0, [operation()])),
        outcome(failed),
        outcome(lost(2)),
        outcome(lost(3)),
        outcome(record(3, [operation()])),
    ]
    summary = summarize(saved(tmp_path / "run", outcomes, of=job(number=5)))
    assert (summary.requested, summary.ok, summary.failed, summary.lost) == (5, 2, 1, 2)
    assert summary.duplicate == 1
    assert summary.bytes == 2000
    assert summary.errors == {
        "throttled": 1,
        "gone": 1,
        "no record: the driver ended before it arrived": 1,
    }


def test_done_times_count_requested_functions(tmp_path: Path) -> None:
    outcomes = [even(i, 0, i + 1, 10) for i in range(9)]
    summary = summarize(saved(tmp_path / "run", outcomes, of=job(number=10)))
    assert summary.completion_s == {"p50": 5.0, "p90": 9.0, "p99": None, "max": None}


def test_percentiles_come_from_raw_values() -> None:
    found = percentiles(np.arange(1.0, 101.0))
    assert found == {"p1": 1, "p5": 5, "p50": 50, "p95": 95, "p99": 99, "n": 100}
    assert percentiles(np.array([])) is None


NUMBERS = st.one_of(
    st.lists(st.integers(0, 2**62), min_size=1),
    st.lists(st.floats(0, 1e300), min_size=1),
)


@given(NUMBERS, st.lists(st.integers(0, 100), min_size=1, max_size=9))
def test_percentiles_are_numpys_by_nearest_rank(values: list[float], wanted: list[int]) -> None:
    found = np.array(values)
    # The percentage has hundredths, which NumPy does not round: 0.07 of 100 values would be the
    # eighth.
    exact = [sorted(values)[max(0, -(-percent * len(values) // 100) - 1)] for percent in wanted]
    assert at_percentiles(found, wanted).tolist() == [float(value) for value in exact]
    named = np.percentile(found, (1, 5, 50, 95, 99), method="inverted_cdf").astype(float)
    assert at_percentiles(found, (1, 5, 50, 95, 99)).tolist() == named.tolist()


def test_reads_have_first_bytes_and_writes_have_acks(tmp_path: Path) -> None:
    written = summarize(saved(tmp_path / "w", [outcome(record(0, [operation()]))]))
    get = operation(kind=OperationKind.GET)
    of = job(number=1, workload="read", size=None)
    read = summarize(saved(tmp_path / "r", [outcome(record(0, [get]))], of=of))
    assert written.ack_s is not None
    assert written.ack_s["p50"] == pytest.approx(0.1)
    assert written.ttfb_s is None
    assert read.ttfb_s is not None
    assert read.ttfb_s["p50"] == pytest.approx(0.1)
    assert read.ack_s is None
    assert read.verified_bytes == read.bytes == 1000


def test_bytes_of_failed_tries_are_counted_apart(tmp_path: Path) -> None:
    attempts = [attempt(size=300, error="connection_error"), attempt(size=1000)]
    one = record(0, [operation()], attempts=attempts)
    summary = summarize(saved(tmp_path / "run", [outcome(one)]))
    assert (summary.bytes, summary.attempt_stats.retried_bytes, summary.attempt_stats.attempts) == (
        1000,
        300,
        2,
    )


def test_a_corrupt_object_is_reported_with_its_bytes_class(tmp_path: Path) -> None:
    bad = BadRange(operation=0, key="k", offset=7, length=3, bad_bytes=2, found=FoundBytes.ZEROS)
    get = operation(kind=OperationKind.GET, error="corrupt", bad_bytes=2)
    run = saved(
        tmp_path / "run",
        [outcome(record(0, [get], bad_ranges=[bad]))],
        of=job(number=1, workload="read", size=None),
    )
    summary = summarize(run)
    assert (summary.corrupt_objects, summary.bad_bytes, summary.failed) == (1, 2, 1)
    assert summary.bad_ranges[0]["key"] == "k"
    assert summary.bad_ranges[0]["found"] == "zeros"
    assert summary.bad_ranges[0]["found_offset"] is None


def test_an_empty_run_has_a_summary(tmp_path: Path) -> None:
    summary = summarize(saved(tmp_path / "run", [], of=job(number=3)))
    assert (summary.ok, summary.lost, summary.bytes) == (0, 3, 0)
    assert summary.throughput_bytes_per_s is None
    json.dumps(summary.to_json(), allow_nan=False)


def test_cpu_and_memory_are_the_workers(tmp_path: Path) -> None:
    summary = summarize(saved(tmp_path / "run", [even(0, 0, 1, 1 << 30)]))
    assert summary.cpu_s_per_gib == pytest.approx(0.5)
    assert summary.peak_rss_bytes == 50 << 20


def test_a_curve_may_stop_before_the_answer(tmp_path: Path) -> None:
    op = operation(start_ns=0, end_ns=4 * S)
    one = record(0, [op], steps=[Step(operation=0, step_ns=S, step_bytes=1000)])
    summary = summarize(saved(tmp_path / "run", [outcome(one)]))
    assert summary.peak_1s_bytes_per_s == pytest.approx(1000)
    assert summary.throughput_bytes_per_s == pytest.approx(250)


def test_large_functions_do_not_overflow(tmp_path: Path) -> None:
    size = 2 * 10**12
    op = operation(end_ns=100 * S, size=size)
    found = summarize(saved(tmp_path / "run", [outcome(record(0, [op]))]))
    assert found.per_function_bytes_per_s is not None
    assert found.per_function_bytes_per_s["p50"] == pytest.approx(size / 100)
    assert found.withheld == ()


def test_unmeasured_values_are_not_zero(tmp_path: Path) -> None:
    silent = replace(record(0, [operation()]), max_rss_bytes=0, cpu_user_s=0.0, cpu_sys_s=0.0)
    found = summarize(saved(tmp_path / "run", [outcome(silent)]))
    assert found.cpu_s_per_gib is None
    assert found.peak_rss_bytes is None


def warm(*, told_ns: int | None, until_s: float = 1, **more: Any) -> Outcome:
    ops = [
        replace(operation(0, end_ns=round(until_s * S), size=GIB), warmup=True),
        operation(1, start_ns=S, end_ns=2 * S, size=GIB),
    ]
    return outcome(replace(record(0, ops), measured_cpu_ns=told_ns, **more))


def test_cpu_time_covers_measured_operations(tmp_path: Path) -> None:
    found = summarize(saved(tmp_path / "run", [warm(told_ns=S // 8)]))
    assert found.cpu_s_per_gib == pytest.approx(0.125)
    both = summarize(saved(tmp_path / "both", [warm(told_ns=S // 8)]), with_warmup=True)
    assert both.cpu_s_per_gib == pytest.approx(0.25)


@pytest.mark.parametrize(
    "one",
    [
        warm(told_ns=None),
        warm(told_ns=S // 8, until_s=1.5),
        outcome(replace(record(0, [operation()]), barrier_wait_ns=S)),
    ],
    ids=["not told", "another thread still warmed up", "not told, with a barrier"],
)
def test_unreported_cpu_time_is_null(tmp_path: Path, one: Outcome) -> None:
    assert summarize(saved(tmp_path / "run", [one])).cpu_s_per_gib is None


def test_a_function_that_did_not_tell_makes_the_whole_unknown(tmp_path: Path) -> None:
    silent = outcome(replace(record(1, [operation()]), max_rss_bytes=0, cpu_user_s=0.0))
    found = summarize(saved(tmp_path / "run", [even(0, 0, 1, GIB), silent]))
    assert found.cpu_s_per_gib is None


def test_bounds_do_not_count_warm_up_and_duplicates(tmp_path: Path) -> None:
    ops = [replace(operation(0, size=5000), warmup=True), operation(1, size=1000)]
    outcomes = [outcome(record(0, ops)), outcome(record(0, ops)), outcome(lost(1))]
    found = summarize(saved(tmp_path / "run", outcomes, of=job(number=2)))
    assert found.missing_functions is not None
    assert found.missing_functions.throughput_bytes_per_s == pytest.approx((1000, 2000))


def test_bytes_of_failed_functions_are_not_counted_twice(tmp_path: Path) -> None:
    later = operation(1, start_ns=S, end_ns=2 * S)
    half = record(1, [operation(0), replace(later, error="deadline", bytes=0)])
    whole = record(0, [operation(0), later])
    found = summarize(saved(tmp_path / "run", [outcome(whole), outcome(half)]))
    assert found.missing_functions is not None
    assert found.missing_functions.throughput_bytes_per_s == pytest.approx((1500, 2000))


def test_wrong_bytes_are_counted_in_the_warm_up_too(tmp_path: Path) -> None:
    bad = BadRange(operation=0, key="k", offset=7, length=3, bad_bytes=2, found=FoundBytes.ZEROS)
    get = operation(kind=OperationKind.GET, error="corrupt", bad_bytes=2)
    one = record(0, [replace(get, warmup=True)], bad_ranges=[bad])
    found = summarize(saved(tmp_path / "run", [outcome(one)]))
    assert (found.corrupt_objects, found.bad_bytes, len(found.bad_ranges)) == (1, 2, 1)
    assert (found.operations, found.warmup_operations) == (0, 1)
    assert found.exit_code() == ExitCode.CORRUPT


@pytest.mark.parametrize("hours", [2, 8, 20, 40])
def test_a_peak_second_is_a_second_however_long_the_run(tmp_path: Path, hours: int) -> None:
    # A burst of one second within hours of little traffic.
    op = operation(end_ns=hours * 3600 * S, size=1_001_000)
    steps = [
        Step(operation=0, step_ns=3600 * S - S, step_bytes=0),
        Step(operation=0, step_ns=S, step_bytes=1_000_000),
        Step(operation=0, step_ns=(hours - 1) * 3600 * S, step_bytes=1000),
    ]
    found = summarize(saved(tmp_path / "run", [outcome(record(0, [op], steps=steps))]))
    assert found.peak_1s_bytes_per_s == pytest.approx(1_000_000)
    assert found.peak_5s_bytes_per_s == pytest.approx(200_000, rel=1e-3)


def test_a_run_of_weeks_has_no_peak_rather_than_another(tmp_path: Path) -> None:
    found = summarize(saved(tmp_path / "run", [even(0, 0, 30 * 86_400, 10**9)]))
    assert found.peak_1s_bytes_per_s is found.peak_5s_bytes_per_s is None
    assert found.throughput_bytes_per_s
