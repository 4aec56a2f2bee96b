"""The elapsed time of a run includes failed operations, but not the pause before a resumption."""

from dataclasses import replace
from pathlib import Path

import pytest

from serverless_bench.job.spec import JobSpec
from serverless_bench.metrics.summary import summarize
from serverless_bench.metrics.timeline import timeline
from serverless_bench.rundir.archive import Archive
from serverless_bench.rundir.run import Run, load_run
from tests.data.runs import S, header, job, lost, operation, outcome, record, saved


def interrupted(path: Path, of: JobSpec, *, ended_s: int | None) -> Run:
    """Save a run of which a half came at 10 s, and the other after it was resumed at 52 s."""

    def one(index: int, start_s: int) -> None:
        op = operation(start_ns=start_s * S, end_ns=(start_s + 10) * S, size=1000)
        done = replace(record(index, [op]), launch=int(start_s > 20))
        came = replace(outcome(done), submitted_ns=start_s * S, collected_ns=(start_s + 10) * S)
        archive.append(came)

    with Archive(path, header={**header(of), "created_ns": 0}) as archive:
        one(0, 0)
        one(1, 0)
        if ended_s is not None:
            archive.closing["ended_ns"] = ended_s * S
    if ended_s is None:
        # A killed run has no end record.
        records = path / "records.jsonl"
        records.write_text("".join(records.read_text().splitlines(keepends=True)[:-1]))
    with Archive(path) as archive:
        archive.resumed(52 * S)
        archive.begin_wave(1, 52 * S, (), 2)
        one(2, 53)
        one(3, 53)
    return load_run(path)


@pytest.mark.parametrize(
    ("ended_s", "paused_s"), [(12, 40), (None, 42)], ids=["interrupted", "killed"]
)
def test_a_pause_before_a_resumption_is_in_no_figure(
    tmp_path: Path, ended_s: int | None, paused_s: int
) -> None:
    of = job(number=4, concurrency=2)
    run = interrupted(tmp_path / "run", of, ended_s=ended_s)
    found = summarize(run)
    assert found.paused_s == paused_s
    assert found.elapsed_s == found.makespan_s == 63 - paused_s
    assert found.throughput_bytes_per_s == pytest.approx(4000 / (63 - paused_s))
    assert found.completion_s == {"p50": 10, **dict.fromkeys(("p90", "p99", "max"), 63 - paused_s)}
    assert found.latencies.elapsed_s == found.elapsed_s
    # Windows are of real time: the best second does not join the time before and after a pause.
    assert len(timeline(run).segment_bytes) == 63
    assert found.peak_1s_bytes_per_s == pytest.approx(200)
    assert found.withheld == ()


def test_functions_that_went_on_without_a_driver_were_at_work(tmp_path: Path) -> None:
    of = job(number=2)
    path = tmp_path / "run"
    with Archive(path, header=header(of)) as archive:
        first = outcome(record(0, [operation(end_ns=10 * S)]))
        archive.append(replace(first, collected_ns=10 * S))
        archive.closing["ended_ns"] = 10 * S
    with Archive(path) as archive:
        archive.resumed(100 * S)
        late = outcome(record(1, [operation(start_ns=5 * S, end_ns=30 * S)]))
        archive.append(replace(late, collected_ns=100 * S))
    found = summarize(load_run(path))
    assert found.elapsed_s == 30
    assert found.paused_s == 0
    # The driver waited again from 100 s on; no function was active after 30 s.
    assert found.makespan_s == 30


def test_a_wave_of_the_same_driver_is_no_pause(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with Archive(path, header=header(job(number=2))) as archive:
        archive.append(outcome(record(0, [operation()])))
        archive.append(replace(outcome(replace(lost(1), not_started=True)), collected_ns=20 * S))
        archive.begin_wave(1, 30 * S, (), 1)
        archive.append(outcome(record(1, [operation(start_ns=40 * S, end_ns=41 * S)])))
    found = summarize(load_run(path))
    assert (found.elapsed_s, found.paused_s) == (41, 0)


def slept(path: Path) -> Run:
    """Save a run whose driver slept from 12 s to 112 s."""
    with Archive(path, header={**header(job(number=2)), "created_ns": 0}) as archive:
        archive.append(outcome(record(0, [operation(end_ns=10 * S)])))
        archive.suspended(12 * S, 112 * S)
        second = outcome(record(1, [operation(start_ns=120 * S, end_ns=130 * S)]))
        archive.append(replace(second, submitted_ns=119 * S))
    return load_run(path)


def test_a_sleep_of_the_driver_is_in_no_time(tmp_path: Path) -> None:
    found = summarize(slept(tmp_path / "run"))
    assert (found.suspended_s, found.paused_s, found.elapsed_s, found.makespan_s) == (
        100,
        100,
        30,
        31,
    )
    assert found.withheld == ()


def test_functions_that_slept_with_the_driver_have_no_rates(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with Archive(path, header=header(job(number=2))) as archive:
        archive.append(outcome(record(0, [operation(end_ns=3 * S)])))
        archive.suspended(5 * S, 100 * S)
        here = replace(record(1, [operation(end_ns=10 * S)]), wall_start_ns=1, wall_end_ns=105 * S)
        archive.append(replace(outcome(here), collected_ns=106 * S))
    found = summarize(load_run(path))
    assert found.suspended_s == 95
    assert found.throughput_bytes_per_s is None
    (why,) = found.withheld
    assert why.startswith("1 function suspended with the driver's machine")


def test_functions_that_work_while_the_driver_sleeps_were_at_work(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with Archive(path, header=header(job(number=1))) as archive:
        archive.suspended(5 * S, 100 * S)
        late = outcome(record(0, [operation(end_ns=30 * S)]))
        archive.append(replace(late, collected_ns=101 * S))
    found = summarize(load_run(path))
    assert (found.suspended_s, found.paused_s, found.elapsed_s) == (95, 0, 30)
    # From 30 s until the driver woke up, no function was active.
    assert found.makespan_s == 31


def test_waiting_for_a_failure_counts(tmp_path: Path) -> None:
    outcomes = [
        outcome(record(i, [operation(end_ns=10 * S, size=10**9)], attempts=[])) for i in range(9)
    ]
    failed = operation(end_ns=300 * S, size=0, error="timeout")
    outcomes.append(outcome(record(9, [replace(failed, size=10**9)], attempts=[])))
    run = saved(tmp_path / "run", outcomes)
    run = replace(run, provenance={"client": {"shows": ["acknowledged"]}})
    found = summarize(run)
    assert found.withheld == ()
    assert found.elapsed_s == found.latencies.elapsed_s == 300
    assert found.throughput_bytes_per_s == pytest.approx(9e9 / 300)
    assert found.missing_functions is not None
    assert found.missing_functions.throughput_bytes_per_s == pytest.approx((9e9 / 300, 10e9 / 300))
    assert found.peak_1s_bytes_per_s == pytest.approx(900e6)
    assert len(timeline(run).segment_bytes) == 300


def test_a_run_in_which_everything_failed_took_its_time(tmp_path: Path) -> None:
    found = summarize(
        saved(tmp_path / "run", [outcome(record(0, [operation(error="timeout", size=0)]))])
    )
    assert (found.elapsed_s, found.throughput_bytes_per_s, found.missing_functions) == (
        1,
        None,
        None,
    )
