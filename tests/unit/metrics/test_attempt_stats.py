"""Totals over attempts."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from serverless_bench.job.operations import OperationKind
from serverless_bench.metrics.attempt_stats import (
    attempt_stats,
    latency_without_backoff_s,
    throttles_per_s,
)
from serverless_bench.metrics.summary import summarize
from serverless_bench.metrics.timeline import good_operations
from tests.data.runs import S, attempt, operation, outcome, record, saved


def test_offered_load_goodput_and_throttles(tmp_path: Path) -> None:
    op = operation(end_ns=10 * S, size=1000)
    attempts = [
        replace(attempt(size=300, error="throttled"), start_ns=0, end_ns=S // 2),
        replace(attempt(size=200, error="connection_error"), wait_ns=2 * S, end_ns=3 * S),
        replace(attempt(size=0, error="throttled"), wait_ns=S, end_ns=5 * S + 1),
        replace(attempt(size=1000), wait_ns=3 * S, end_ns=10 * S, reused=True),
    ]
    run = saved(tmp_path / "run", [outcome(record(0, [op], attempts=attempts))])
    good = good_operations(run)
    found = attempt_stats(run, good)
    assert (found.attempts, found.failed_attempts, found.throttled) == (4, 3, 2)
    assert (found.offered_bytes, found.retried_bytes) == (1500, 500)
    assert found.errors_of_attempts == {"throttled": 2, "connection_error": 1}
    assert found.throttled_by_prefix == {"sbench/": 2}
    assert found.throttled_peak_per_s == 1
    assert {p: list(c) for p, c in throttles_per_s(run).items()} == {"sbench/": [1, 0, 0, 0, 0, 1]}
    assert found.new_connections == 3
    assert found.read_amplification is None
    assert latency_without_backoff_s(run, good) == pytest.approx([4.0])
    summary = summarize(run)
    assert summary.latency_s is not None
    assert summary.latency_without_backoff_s is not None
    assert (summary.latency_s["p50"], summary.latency_without_backoff_s["p50"]) == (10.0, 4.0)


def test_read_amplification(tmp_path: Path) -> None:
    op = operation(kind=OperationKind.GET, size=1000)
    attempts = [
        replace(attempt(size=500, error="connection_error"), request="get"),
        replace(attempt(size=1000), request="get"),
    ]
    run = saved(tmp_path / "run", [outcome(record(0, [op], attempts=attempts))])
    assert attempt_stats(run, good_operations(run)).read_amplification == 1.5


def test_no_tries(tmp_path: Path) -> None:
    run = saved(tmp_path / "run", [outcome(record(0, [], attempts=[]))])
    assert throttles_per_s(run) == {}
    assert not len(latency_without_backoff_s(run, np.zeros(0, dtype=bool)))


def test_the_warm_up_and_duplicates_are_no_traffic(tmp_path: Path) -> None:
    ops = [
        replace(operation(0, end_ns=S), warmup=True),
        operation(1, start_ns=10 * S, end_ns=11 * S),
    ]
    attempts = [
        replace(attempt(0, size=400, error="throttled"), end_ns=S),
        attempt(0),
        replace(attempt(1, size=300, error="throttled"), start_ns=10 * S, end_ns=10 * S + 1),
        replace(attempt(1), start_ns=10 * S, end_ns=11 * S),
    ]
    one = outcome(record(0, ops, attempts=attempts))
    run = saved(tmp_path / "run", [one, one])
    found = summarize(run).attempt_stats
    assert (found.attempts, found.failed_attempts, found.new_connections) == (2, 1, 2)
    assert (found.offered_bytes, found.retried_bytes) == (1300, 300)
    assert (found.throttled, found.throttled_by_prefix) == (1, {"sbench/": 1})
    assert {p: list(c) for p, c in throttles_per_s(run).items()} == {"sbench/": [1]}
    assert summarize(run, with_warmup=True).attempt_stats.offered_bytes == 2700


def test_offered_bytes_equal_moved_ones_for_any_warm_up(tmp_path: Path) -> None:
    for rounds in (0, 1, 3):
        ops = [replace(operation(n), warmup=n < rounds) for n in range(rounds + 1)]
        found = summarize(saved(tmp_path / f"{rounds}", [outcome(record(0, ops))]))
        assert found.attempt_stats.offered_bytes == found.bytes == 1000
