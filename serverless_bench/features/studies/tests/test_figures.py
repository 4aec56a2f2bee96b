"""Figures of a run that only studies have: by attempts, and by kinds of operations."""

from pathlib import Path

import pytest

from serverless_bench.features.studies.observations import figures
from serverless_bench.job.operations import OperationKind
from tests.data import runs
from tests.data.runs import S


def test_attempts_that_fail_are_counted_apart_from_operations(tmp_path: Path) -> None:
    operations = [runs.operation(n, start_ns=n * S, end_ns=(n + 1) * S) for n in range(4)]
    attempts = [runs.attempt(n) for n in range(4)]
    attempts += [runs.attempt(n, size=0, error="connection_error") for n in (1, 1, 2)]
    record = runs.record(0, operations, attempts=attempts)
    found = figures(runs.saved(tmp_path / "r", [runs.outcome(record)]))
    assert found["ops_per_s"] == 1
    assert found["attempts_per_s"] == pytest.approx(7 / 4)
    assert found["failed_attempts_share"] == pytest.approx(3 / 7)


def test_each_kind_has_rates_and_latencies_of_its_own(tmp_path: Path) -> None:
    operations = [
        runs.operation(0, start_ns=0, end_ns=2 * S),
        runs.operation(1, start_ns=2 * S, end_ns=3 * S, kind=OperationKind.GET),
        runs.operation(2, start_ns=3 * S, end_ns=8 * S, kind=OperationKind.GET),
    ]
    found = figures(runs.saved(tmp_path / "r", [runs.outcome(runs.record(0, operations))]))
    assert (found["put.ops_per_s"], found["get.ops_per_s"]) == (1 / 8, 2 / 8)
    assert (found["put.p50_s"], found["get.p50_s"]) == (2, 1)
    assert (found["get.min_s"], found["get.mean_s"], found["get.max_s"]) == (1, 3, 5)
    assert "head.ops_per_s" not in found
    assert "op.p50_s" not in found


def test_an_only_kind_has_a_name_of_its_own(tmp_path: Path) -> None:
    spans = ((0, 1), (1, 3), (3, 6))
    operations = [
        runs.operation(n, start_ns=begin * S, end_ns=end * S)
        for n, (begin, end) in enumerate(spans)
    ]
    found = figures(runs.saved(tmp_path / "r", [runs.outcome(runs.record(0, operations))]))
    assert (found["op.p50_s"], found["op.max_s"]) == (found["put.p50_s"], 3) == (2, 3)
