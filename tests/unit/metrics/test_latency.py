"""Percentiles agree with the raw records, however they are combined."""

import io
import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from serverless_bench.base.units import GIB, KIB, MIB
from serverless_bench.job.operations import OperationKind
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.workload import Load
from serverless_bench.metrics import latency
from serverless_bench.metrics.histogram import interval_ranks
from serverless_bench.metrics.latency import (
    PERCENTILES,
    SIZE_CLASSES,
    Latencies,
    Latency,
    Times,
    latencies,
)
from serverless_bench.metrics.summary import Summary, summarize
from serverless_bench.metrics.timeline import good_operations, timeline
from serverless_bench.report import open_reporter
from serverless_bench.rundir.record import OperationRecord, Usage
from serverless_bench.rundir.run import Run
from tests.data.runs import S, attempt, job, lost, operation, outcome, record, saved
from tests.house.members import uses
from tests.tables import each_row

MS = S // 1000
HEADERS = {OperationKind.HEAD, OperationKind.DELETE, OperationKind.LIST, OperationKind.COPY}


def without_bytes(op: OperationRecord, kind: OperationKind, count: int = 1) -> OperationRecord:
    return replace(op, kind=kind, bytes=0, verified_bytes=0, count=count)


def mixed_job(functions: int, **load: object) -> JobSpec:
    of = job(number=functions, workload="mixed", size=None)
    return replace(of, load=Load(**load))  # type: ignore[arg-type]


def mixed(path: Path, *, seed: int = 1, functions: int = 3, each: int = 200) -> Run:
    """Save operations of every kind that transfers bytes, of many sizes, in sequence."""
    draw = np.random.default_rng(seed)
    kinds = list(OperationKind)[:8]
    outcomes = []
    for index in range(functions):
        took = draw.lognormal(np.log(20 * MS), 1.0, each).astype(int).tolist()
        sizes = np.exp(draw.uniform(0, np.log(64 * MIB), each)).astype(int).tolist()
        ends = accumulate(took)
        ops = []
        for number, (end, length, size) in enumerate(zip(ends, took, sizes, strict=True)):
            kind = kinds[int(draw.integers(len(kinds)))]
            op = operation(number, start_ns=end - length, end_ns=end, size=size, kind=kind)
            if kind in HEADERS or kind is OperationKind.DELETE_MANY:
                op = without_bytes(op, kind, 10 if kind is OperationKind.DELETE_MANY else 1)
            elif kind is OperationKind.GET_RANGE:
                op = replace(op, bytes=size // 2, verified_bytes=size // 2, offset=size // 4)
            ops.append(replace(op, error="throttled") if number % 40 == 7 else op)
        attempts = [attempt(op.index, size=op.bytes) for op in ops]
        outcomes.append(outcome(record(index, ops, attempts=attempts)))
    return saved(path, outcomes, of=mixed_job(functions))


def raw(run: Run, kind: str) -> np.ndarray:
    wanted = good_operations(run) & (run.operations["kind"] == kind)
    took: np.ndarray = (run.operations["end_ns"] - run.operations["start_ns"])[wanted]
    return took


def latency_of(found: Latencies, kind: str, size_class: str | None = None) -> Latency:
    (row,) = [r for r in found.by_kind if (r.kind, r.size_class) == (kind, size_class)]
    return row


def report(name: str, summary: Summary) -> str:
    out = io.StringIO()
    open_reporter(name)(summary, out)
    return out.getvalue()


def test_percentiles_are_those_of_the_raw_records(tmp_path: Path) -> None:
    run = mixed(tmp_path / "run")
    summary = summarize(run)
    assert summary.withheld == ()
    for kind in list(OperationKind)[:8]:
        row, took = latency_of(summary.latencies, kind), raw(run, kind)
        assert row.latency is not None
        assert row.latency.exact
        assert row.ok == len(took)
        assert list(row.latency.percentiles_s.values()) == [
            *(np.percentile(took, [*PERCENTILES.values()], method="inverted_cdf") / S),
            took.max() / S,
        ]
        assert row.latency.mean_s == pytest.approx(took.mean() / S)
        assert row.operations_per_s == pytest.approx(len(took) / summary.latencies.elapsed_s)  # type: ignore[operator]


def test_every_operation_is_in_one_row_of_its_kind_and_one_size_class(tmp_path: Path) -> None:
    run = mixed(tmp_path / "run")
    summary = summarize(run)
    rows = summary.latencies.by_kind
    whole = [row for row in rows if row.size_class is None]
    assert sum(row.ok + row.failed for row in whole) == summary.operations == 600
    assert sum(row.failed for row in whole) == summary.failed_operations == 15
    assert sum(row.bytes for row in whole) == summary.bytes
    for row in whole:
        parts = [one for one in rows if one.kind == row.kind and one.size_class]
        if row.kind in {"head", "list", "delete", "delete_many"}:
            assert parts == []
        else:
            assert sum(part.ok for part in parts) == row.ok
            assert sum(part.bytes for part in parts) == row.bytes
    assert (
        latency_of(summary.latencies, "delete_many").keys
        == 10 * latency_of(summary.latencies, "delete_many").ok
    )


@each_row(
    ("size", "name"),
    [
        (1, "1 B-8 KiB"),
        (8 * KIB, "1 B-8 KiB"),
        (8 * KIB + 1, "8-64 KiB"),
        (512 * KIB, "64-512 KiB"),
        (4 * MIB + 1, "4-32 MiB"),
        (2 * GIB, "256 MiB-2 GiB"),
        (2 * GIB + 1, "above 2 GiB"),
    ],
)
def test_size_classes(tmp_path: Path, size: int, name: str) -> None:
    summary = summarize(saved(tmp_path / "run", [outcome(record(0, [operation(size=size)]))]))
    assert [row.size_class for row in summary.latencies.by_kind] == [None, name]
    assert name in SIZE_CLASSES


def test_many_operations_have_the_percentiles_of_their_histogram(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(latency, "RAW_LIMIT", 10)
    run = mixed(tmp_path / "run")
    found = latencies(run, good_operations(run))
    row = latency_of(found, "get")
    assert row.latency is not None
    assert not row.latency.exact
    exact = np.percentile(raw(run, "get"), [*PERCENTILES.values()], method="inverted_cdf") / S
    assert list(row.latency.percentiles_s.values())[:-1] == pytest.approx(list(exact), rel=0.01)
    assert row.latency.percentiles_s["max"] == raw(run, "get").max() / S


def test_four_operations_have_no_p99(tmp_path: Path) -> None:
    heads = [replace(operation(n), kind=OperationKind.HEAD, end_ns=(n + 1) * S) for n in range(4)]
    summary = summarize(saved(tmp_path / "run", [outcome(record(0, heads))]))
    lines = map(str.split, report("full", summary).splitlines())
    (shown,) = (words[3:] for words in lines if words[:3] == ["head", "all", "latency"])
    assert shown == ["2", "s", "-", "-", "-", "-", "4", "s"]


def test_percentiles_have_intervals_where_there_are_values_enough() -> None:
    times = Times.from_durations(np.arange(1, 151) * S)
    assert times is not None
    # Expected values from ``scipy.stats.quantile_test``.
    assert times.intervals_s == {
        "p50": (63, 88),
        "p90": (127, 143),
        "p95": (137, 148),
        "p99": (146, None),
        "p99.9": (149, None),
    }
    few = Times.from_durations(np.arange(1, 5) * S)
    assert few is not None
    assert few.intervals_s["p50"] == (None, None)
    assert few.intervals_s["p99"] == (3, None)


@given(st.integers(1, 3000), st.sampled_from([0.1, 1, 5, 50, 90, 95, 99, 99.9]))
@settings(max_examples=40, deadline=None)
def test_ranks_of_intervals_are_those_of_the_binomial(count: int, percent: float) -> None:
    low, high = interval_ranks(percent, count)
    of = binom(count, percent / 100)
    # With one rank less on either side, more than 2.5 % would be outside.
    assert low == 0 or of.cdf(low - 1) <= 0.025
    assert of.cdf(low) > 0.025
    assert high == count + 1 or of.sf(high - 1) <= 0.025 + 1e-12
    assert of.sf(high - 2) > 0.025 - 1e-12


def stalled(path: Path, *, open_loop: bool) -> Run:
    """Save 10 s of gets at 100/s that take 1 ms, against a store that stalls for 2 s."""
    ops: list[OperationRecord] = []
    at = 0
    for number in range(1000):
        intended = number * 10 * MS
        start = max(at, intended) if open_loop else at
        # A closed loop with a pause of 9 ms has the same rate until the store stalls.
        at = start + (2 * S if start <= 4 * S < start + 10 * MS else MS)
        op = operation(number, start_ns=start, end_ns=at, kind=OperationKind.GET)
        ops.append(replace(op, intended_ns=intended) if open_loop else op)
        at = at if open_loop else at + 9 * MS
    return saved(
        path,
        [outcome(record(0, ops))],
        of=mixed_job(1, rate=100 if open_loop else None),
    )


def test_an_open_loop_shows_the_stall_that_a_closed_one_hides(tmp_path: Path) -> None:
    closed = latency_of(summarize(stalled(tmp_path / "closed", open_loop=False)).latencies, "get")
    assert closed.latency is not None
    assert closed.response is closed.queueing is None
    assert closed.latency.percentiles_s["p99.9"] < 0.01
    found = summarize(stalled(tmp_path / "open", open_loop=True)).latencies
    row = latency_of(found, "get")
    assert found.open_loop
    assert found.target_per_s == 100
    assert row.latency is not None
    assert row.response is not None
    assert row.queueing is not None
    assert row.latency.percentiles_s["p99"] == pytest.approx(0.001)
    assert row.latency.percentiles_s["max"] == pytest.approx(2)
    # A fifth of the operations were due during the stall, or during the backlog after it.
    assert row.response.percentiles_s["p99"] == pytest.approx(1.9, rel=0.05)
    assert row.queueing.percentiles_s["p99"] == pytest.approx(1.9, rel=0.05)
    assert row.response.percentiles_s["p50"] == pytest.approx(0.001)


def test_the_stall_shows_when_it_took_place(tmp_path: Path) -> None:
    found = summarize(stalled(tmp_path / "run", open_loop=True)).latencies
    (over_time,) = found.over_time
    assert found.segment_s == 0.2
    assert sum(over_time.count) == 1000
    during = over_time.p50_s[20]
    assert during is not None
    assert during > 1.5
    before = over_time.p99_s[5]
    assert before is not None
    assert before < 0.002


def test_percentiles_over_time_are_those_of_each_segment(tmp_path: Path) -> None:
    run = mixed(tmp_path / "run")
    found = summarize(run).latencies
    assert found.segment_s is not None
    first = run.operations["start_ns"][good_operations(run)].min()
    for one in found.over_time:
        wanted = good_operations(run) & (run.operations["kind"] == one.kind)
        begin = (run.operations["start_ns"][wanted] - first) // round(found.segment_s * S)
        for number, count in enumerate(one.count):
            took = raw(run, one.kind)[begin == number]
            assert len(took) == count
            nearest = np.percentile(took, [50, 99], method="inverted_cdf") if count else took
            expected = [None, None] if not count else list(nearest / S)
            assert [one.p50_s[number], one.p99_s[number]] == pytest.approx(expected)


def test_waits_between_tries_are_in_the_latency_and_not_in_the_service(tmp_path: Path) -> None:
    op = operation(end_ns=10 * S)
    attempts = [attempt(error="throttled"), replace(attempt(), wait_ns=4 * S)]
    run = saved(tmp_path / "run", [outcome(record(0, [op], attempts=attempts))])
    row = latency_of(summarize(run).latencies, "put")
    assert row.latency is not None
    assert row.without_backoff is not None
    assert (row.latency.percentiles_s["p50"], row.without_backoff.percentiles_s["p50"]) == (10, 6)


def heads(path: Path, kinds: Sequence[OperationKind] = (OperationKind.HEAD,)) -> Run:
    ops = [
        without_bytes(operation(n, start_ns=n * S, end_ns=(n + 1) * S), kinds[n % len(kinds)])
        for n in range(6)
    ]
    attempts = [replace(attempt(op.index, size=0), request="head") for op in ops]
    one = record(0, ops, steps=[], attempts=attempts)
    return saved(path, [outcome(one)], of=mixed_job(1))


@pytest.mark.parametrize("name", ["full", "json", "markdown"])
def test_a_run_without_a_byte_has_a_report(tmp_path: Path, name: str) -> None:
    summary = summarize(heads(tmp_path / "run", [OperationKind.HEAD, OperationKind.DELETE]))
    assert summary.withheld == ()
    assert summary.throughput_bytes_per_s is summary.peak_1s_bytes_per_s is None
    assert summary.elapsed_s == 6
    assert latency_of(summary.latencies, "head").operations_per_s == 0.5
    assert latency_of(summary.latencies, "head").bytes_per_s is None
    assert "head" in report(name, summary)


def test_an_open_loop_without_operations_is_reported_as_one(tmp_path: Path) -> None:
    of = replace(job(number=1), load=Load(rate=7.0))
    found = summarize(saved(tmp_path / "run", [outcome(lost(0))], of=of))
    pace = found.latencies
    assert (pace.open_loop, pace.target_per_s, pace.due, pace.begun) == (True, 7.0, 0, 0)
    text = io.StringIO()
    open_reporter("full")(found, text)
    assert ": 0 of 1 functions ok" in text.getvalue()
    # A table without rows is not printed.
    assert "durations" not in text.getvalue()


def test_a_run_of_failures_has_a_report(tmp_path: Path) -> None:
    ops = [operation(0, error="throttled"), operation(1, error="throttled")]
    summary = summarize(saved(tmp_path / "run", [outcome(record(0, ops))], of=mixed_job(1)))
    row = latency_of(summary.latencies, "put")
    assert (row.ok, row.failed, row.latency, row.operations_per_s) == (0, 2, None, None)
    json.dumps(summary.to_json(), allow_nan=False)
    assert report("full", summary)


def test_ranges_count_their_bytes_like_gets(tmp_path: Path) -> None:
    get = operation(0, kind=OperationKind.GET, size=1000, end_ns=2 * S)
    part = replace(
        operation(1, kind=OperationKind.GET_RANGE, size=1000, start_ns=2 * S, end_ns=4 * S),
        bytes=300,
        verified_bytes=300,
        offset=700,
    )
    attempts = [replace(attempt(op.index, size=op.bytes), request="get") for op in (get, part)]
    run = saved(
        tmp_path / "run", [outcome(record(0, [get, part], attempts=attempts))], of=mixed_job(1)
    )
    summary = summarize(run)
    assert summary.withheld == ()
    assert summary.bytes == summary.verified_bytes == 1300
    assert summary.throughput_bytes_per_s == 325
    assert summary.attempt_stats.read_amplification == 1
    too_far = {**run.operations, "offset": run.operations["offset"] + 1}
    (why,) = summarize(replace(run, operations=too_far)).withheld
    assert "1 ranges" in why


@uses("workload custom")
def test_threads_are_at_work_too(tmp_path: Path) -> None:
    ops = [operation(n, end_ns=10 * S) for n in range(4)]
    one = outcome(record(0, ops))
    alone = summarize(saved(tmp_path / "alone", [one], of=mixed_job(1)))
    assert any("Little's law" in why for why in alone.withheld)
    own = replace(mixed_job(1), workload="custom")
    assert summarize(saved(tmp_path / "own", [one], of=own)).withheld == ()
    four = summarize(saved(tmp_path / "four", [one], of=mixed_job(1, threads=4)))
    assert four.withheld == ()
    assert four.steady_window_s == pytest.approx(10, abs=0.2)
    some = summarize(saved(tmp_path / "some", [one], of=mixed_job(1, threads=5)))
    assert "never 90% of 5 threads active" in report("full", some)


def test_a_call_and_its_operations_are_in_flight_once(tmp_path: Path) -> None:
    get = operation(0, end_ns=4 * S, kind=OperationKind.GET)
    call = without_bytes(operation(1, end_ns=4 * S), OperationKind.CALL)
    run = saved(tmp_path / "run", [outcome(record(0, [get, call]))], of=mixed_job(1))
    assert summarize(run).withheld == ()
    assert timeline(run).in_flight.tolist() == [1] * 4
    alone = saved(tmp_path / "alone", [outcome(record(0, [replace(call, index=0)]))])
    assert timeline(alone).in_flight.tolist() == [1] * 4


@uses("feature array")
def test_resources_of_libraries_are_reported(tmp_path: Path) -> None:
    ops = [
        operation(n, kind=OperationKind.WRITE_ARRAY, size=GIB, start_ns=n * S, end_ns=(n + 1) * S)
        for n in range(3)
    ]
    usages = [
        Usage(
            operation=n,
            rss_before_bytes=100 * MIB,
            rss_peak_bytes=100 * MIB + (n + 1) * GIB,
            threads_peak=4 + n,
            cpu_user_s=2.0,
            cpu_sys_s=1.0,
        )
        for n in range(2)
    ]
    unseen = replace(
        usages[0], operation=2, rss_before_bytes=None, rss_peak_bytes=None, threads_peak=None
    )
    one = replace(record(0, ops), usages=(*usages, unseen))
    summary = summarize(saved(tmp_path / "run", [outcome(one)], of=mixed_job(1)))
    (use,) = summary.parts["libraries"]
    assert (use.kind, use.count, use.bytes) == ("write_array", 3, 3 * GIB)
    assert use.memory_ratio == {"min": 1.0, "p50": 1.0, "max": 2.0}
    assert (use.threads_peak, use.rss_peak_bytes) == (5, 100 * MIB + 2 * GIB)
    assert use.cpu_s_per_gib == pytest.approx(3.0)
    for name in ("full", "markdown"):
        assert "1.00 x" in report(name, summary)
    nobody = replace(one, usages=(unseen,))
    (silent,) = summarize(saved(tmp_path / "silent", [outcome(nobody)])).parts["libraries"]
    assert silent.memory_ratio is None
    assert silent.threads_peak is silent.rss_peak_bytes is None
    assert report("full", summarize(saved(tmp_path / "text", [outcome(nobody)])))


def test_a_plain_run_has_no_further_tables(tmp_path: Path) -> None:
    ops = [operation(n, start_ns=n * S, end_ns=(n + 1) * S) for n in range(3)]
    summary = summarize(saved(tmp_path / "run", [outcome(record(0, ops))]))
    assert not summary.latencies.notable
    assert "durations" not in report("full", summary)
    assert latency_of(summary.latencies, "put").ok == 3
    sizes = [*ops, operation(3, size=10**6)]
    assert summarize(saved(tmp_path / "two", [outcome(record(0, sizes))])).latencies.notable


def test_a_function_without_work_is_done_when_it_ends(tmp_path: Path) -> None:
    outcomes = [outcome(record(0, [operation()])), outcome(replace(record(1, []), end_ns=S // 2))]
    summary = summarize(saved(tmp_path / "run", outcomes))
    assert summary.completion_s == {"p50": 0.5, "p90": 1.0, "p99": 1.0, "max": 1.0}
