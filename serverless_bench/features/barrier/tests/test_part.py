"""What a report says of the start barrier."""

from dataclasses import replace
from pathlib import Path

from msgspec import structs

from serverless_bench.features.barrier.part import PART, BarrierSummary
from serverless_bench.metrics.summary import summarize
from serverless_bench.rundir.run import Run
from tests.data.runs import S, job, lost, operation, outcome, record, saved


def gated(path: Path, barrier: float | None) -> Run:
    """A run of which two functions waited, one was late, and one was lost."""
    records = [
        replace(record(0, [operation()]), barrier_wait_ns=S),
        replace(record(1, [operation()]), barrier_wait_ns=3 * S),
        replace(record(2, [operation()]), barrier_late=True),
    ]
    of = job(number=4)
    if barrier is not None:
        of = of.with_options(barrier=barrier)
    return saved(path, [*map(outcome, records), outcome(lost(3))], of=of)


def test_functions_before_the_barrier_are_counted(tmp_path: Path) -> None:
    run = gated(tmp_path, 1.0)
    found = PART.results_in(summarize(replace(run, barrier={"expected": 4, "announced": 3})))
    assert found is not None
    assert found.wait_s is not None
    assert found.wait_s["p50"] == 1
    assert structs.replace(found, wait_s=None) == BarrierSummary(
        expected=4, announced=3, late=1, wait_s=None
    )


def test_the_driver_may_die_before_it_opens_the_barrier(tmp_path: Path) -> None:
    found = PART.results_in(summarize(gated(tmp_path, 1.0)))
    assert found is not None
    assert (found.expected, found.announced) == (None, None)


def test_a_report_of_another_run_has_no_barrier(tmp_path: Path) -> None:
    assert summarize(gated(tmp_path, None)).to_json()["barrier"] is None
