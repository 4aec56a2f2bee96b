"""What bounded a run is told correctly in cases that are known."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serverless_bench.archive import Run
from serverless_bench.bound import bound, fit_bucket
from serverless_bench.record import Outcome, Step
from serverless_bench.series import good_operations
from tests.runs import S, job, operation, record, saved

MIB = 1 << 20


def bucket_curve(
    *, burst: float, rate: float, line: float, total: float, step_s: float = 0.2
) -> tuple[np.ndarray, np.ndarray]:
    """Return seconds and bytes of a transfer through a token bucket."""
    knee = burst / (line - rate)
    end = knee + max(0.0, total - line * knee) / rate
    at = np.append(np.arange(0, end, step_s), end)
    moved = np.minimum(line * at, np.where(at > knee, line * knee + rate * (at - knee), np.inf))
    return at, np.minimum(moved, total)


def functions(
    path: Path,
    curves: list[tuple[np.ndarray, np.ndarray]],
    *,
    cpu_share: float = 0.2,
    launch_s: float = 0.1,
) -> Run:
    """Return a run of functions that moved bytes along curves."""
    outcomes = []
    for index, (at, moved) in enumerate(curves):
        took = round(at[-1] * S)
        edges = np.round(at * S).astype(int)
        sizes = np.diff(np.round(moved)).astype(int)
        steps = [
            Step(operation=0, step_ns=int(b - a), step_bytes=int(size))
            for a, b, size in zip(edges[:-1], edges[1:], sizes, strict=True)
        ]
        op = operation(
            start_ns=round(launch_s * S), end_ns=round(launch_s * S) + took, size=int(sizes.sum())
        )
        of = replace(
            record(index, [op], steps=steps),
            cpu_user_s=cpu_share * took / S,
            cpu_sys_s=0.0,
            cpus=2,
            run_wait_ns=0,
            generator_bytes_per_s=9 * 10**9,
        )
        outcomes.append(Outcome(submitted_ns=0, collected_ns=op.end_ns + S, result=of))
    of_job = job(invocations=len(outcomes), concurrency=len(outcomes))
    return saved(path, outcomes, of=of_job)


def told(run: Run) -> dict[str, int]:
    return dict(bound(run, good_operations(run)).functions)


@settings(max_examples=60, deadline=None)
@given(
    burst=st.floats(20, 400),
    rate=st.floats(20, 100),
    line=st.floats(400, 2000),
    sustained_s=st.floats(4, 30),
)
def test_burst_and_sustained_rate_are_recovered(
    burst: float, rate: float, line: float, sustained_s: float
) -> None:
    total = burst + rate * sustained_s
    at, moved = bucket_curve(burst=burst * MIB, rate=rate * MIB, line=line * MIB, total=total * MIB)
    found = fit_bucket(at, moved)
    assert found is not None
    assert found.sustained_bytes_per_s == pytest.approx(rate * MIB, rel=0.05)
    assert found.burst_bytes == pytest.approx(burst * MIB, rel=0.05, abs=0.02 * total * MIB)


def test_lambdas_bucket() -> None:
    at, moved = bucket_curve(burst=300 * MIB, rate=77.6 * MIB, line=1229 * MIB, total=2000 * MIB)
    found = fit_bucket(at, moved)
    assert found is not None
    assert found.sustained_bytes_per_s == pytest.approx(77.6 * MIB, rel=0.01)
    assert found.burst_bytes == pytest.approx(300 * MIB, rel=0.03)


def test_a_limit_that_each_has_for_itself(tmp_path: Path) -> None:
    draw = np.random.default_rng(1)
    curves = [
        bucket_curve(
            burst=300 * MIB, rate=draw.normal(77.6, 0.5) * MIB, line=1200 * MIB, total=2000 * MIB
        )
        for _ in range(12)
    ]
    run = functions(tmp_path / "run", curves)
    assert told(run) == {"function_network": 12}
    found = bound(run, good_operations(run))
    assert found.sustained_bytes_per_s == pytest.approx(77.6 * MIB, rel=0.05)
    assert found.burst_bytes == pytest.approx(300 * MIB, rel=0.05)
    assert found.generator_bytes_per_s == 9e9


def test_equal_rates_without_a_burst_are_a_shaper(tmp_path: Path) -> None:
    curve = (np.linspace(0, 5, 26), np.linspace(0, 500e6, 26))
    assert told(functions(tmp_path / "run", [curve] * 8)) == {"function_network": 8}


def test_unequal_rates_are_the_store(tmp_path: Path) -> None:
    curves = [(np.linspace(0, 5, 26), np.linspace(0, (300 + 60 * i) * 1e6, 26)) for i in range(8)]
    assert told(functions(tmp_path / "run", curves)) == {"store": 8}


def test_a_busy_processor_is_the_client(tmp_path: Path) -> None:
    curve = (np.linspace(0, 5, 26), np.linspace(0, 500e6, 26))
    run = functions(tmp_path / "run", [curve] * 8, cpu_share=0.97)
    assert told(run) == {"client": 8}


def test_waiting_for_a_processor_is_the_client_too(tmp_path: Path) -> None:
    curve = (np.linspace(0, 5, 26), np.linspace(0, 500e6, 26))
    run = functions(tmp_path / "run", [curve] * 8, cpu_share=0.3)
    waits = np.full(8, round(4.5 * S))
    run = replace(run, functions={**run.functions, "run_wait_ns": waits})
    assert told(run) == {"client": 8}


def test_slow_starts_are_the_launch(tmp_path: Path) -> None:
    curve = (np.linspace(0, 2, 11), np.linspace(0, 200e6, 11))
    assert told(functions(tmp_path / "run", [curve] * 4, launch_s=10)) == {"launch": 4}


def test_an_unknown_submission_is_no_launch(tmp_path: Path) -> None:
    curves = [(np.linspace(0, 5, 26), np.linspace(0, (300 + 60 * i) * 1e6, 26)) for i in range(8)]
    run = functions(tmp_path / "run", curves)
    unsaid = np.full(8, -1)
    run = replace(run, functions={**run.functions, "submitted_ns": unsaid})
    assert told(run) == {"store": 8}


def test_silence_is_not_an_answer(tmp_path: Path) -> None:
    curves = [(np.linspace(0, 5, 26), np.linspace(0, (300 + 60 * i) * 1e6, 26)) for i in range(8)]
    run = functions(tmp_path / "run", curves)
    unsaid = np.full(8, -1)
    run = replace(run, functions={**run.functions, "cpus": unsaid})
    assert told(run) == {"unknown": 8}


@pytest.mark.parametrize(("late_s", "by"), [(0, "schedule"), (0.4, "schedule"), (2, "store")])
def test_who_does_what_was_asked_is_bounded_by_the_schedule(
    tmp_path: Path, late_s: float, by: str
) -> None:
    # Due every 0.1 s for 10 s, and more and more late.
    ops = []
    for number in range(100):
        due = number * S // 10
        start = due + round(late_s * S * number / 99)
        op = operation(number, start_ns=start, end_ns=start + S // 50)
        ops.append(replace(op, intended_ns=due))
    one = replace(record(0, ops), cpus=2, run_wait_ns=0)
    run = saved(tmp_path / "run", [Outcome(submitted_ns=0, collected_ns=99 * S, result=one)])
    assert told(run) == {by: 1}


def test_nothing_moved_nothing_bounded(tmp_path: Path) -> None:
    failed = operation(error="not_found", size=0)
    run = saved(
        tmp_path / "run", [Outcome(submitted_ns=0, collected_ns=S, result=record(0, [failed]))]
    )
    assert told(run) == {}
