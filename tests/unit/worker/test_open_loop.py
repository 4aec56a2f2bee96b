"""Rounds and open loops in virtual time: no due operation is missing, whatever the store does."""

import io
import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serverless_bench.base.errors import UsageError
from serverless_bench.base.units import MIB, NS_PER_S
from serverless_bench.driver.plan import beyond_the_network
from serverless_bench.job.invocations import invocation_specs
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Transfer
from serverless_bench.job.workload import Load
from serverless_bench.metrics.latency import Latencies, Latency
from serverless_bench.metrics.summary import Summary, summarize
from serverless_bench.report import open_reporter
from serverless_bench.rundir.record import Dropped, InvocationRecord, Outcome
from serverless_bench.rundir.run import Run
from serverless_bench.worker import runner
from serverless_bench.worker.invocation import forget_clients, run_invocation
from tests.data.runs import TARGET, saved
from tests.house.members import uses
from tests.stores.virtual_time import BEGIN_NS, SlowClient, virtual_time
from tests.tables import each_row
from tests.unit.flaky import open_barrier

RATE = 100.0


def loop(
    objects: int = 1,
    *,
    workload: str = "write",
    duration: float | None = 3.0,
    warm_up: int = 0,
    **load: object,
) -> JobSpec:
    return JobSpec(
        workload=workload,
        target=TARGET,
        transfer=Transfer(retries=0),
        number=1,
        objects=objects,
        size=100,
        duration=duration,
        warm_up=warm_up,
        load=Load(**{"rate": RATE, **load}),  # type: ignore[arg-type]
    )


def run(
    job: JobSpec, *, service_s: float = 0.001, stall: tuple[float, float] = (0, 0)
) -> InvocationRecord:
    """Return the record of a function with such a store, in virtual time."""
    with virtual_time() as time, pytest.MonkeyPatch.context() as patch:
        forget_clients()
        client = SlowClient(time, service_s, stall)
        patch.setattr(runner, "open_client", lambda *_: client)
        (spec, *_) = invocation_specs(job, run_id="r", created_ns=1 << 62)
        open_barrier(client, TARGET.prefix)
        record = run_invocation(spec)
        forget_clients()
    return record


def kept(path: Path, job: JobSpec, records: Sequence[InvocationRecord]) -> Run:
    """Return records as a saved run."""
    outcomes = [
        Outcome(submitted_ns=BEGIN_NS, collected_ns=one.end_ns, result=one) for one in records
    ]
    return saved(path, outcomes, of=replace(job, number=len(records)))


def report(path: Path, job: JobSpec, **store: Any) -> tuple[Latencies, Latency]:
    """Return the operations of such a function, and their first row."""
    found = summarize(kept(path, job, [run(job, **store)])).latencies
    return found, found.by_kind[0]


def instants(rows: Sequence[Dropped]) -> list[int]:
    """Return each instant of rows."""
    found: list[int] = []
    for row in rows:
        length, gaps = row.last_ns - row.first_ns, max(1, row.count - 1)
        found += [row.first_ns + length * n // gaps for n in range(row.count)]
    return found


def test_the_warm_up_comes_first_and_is_marked() -> None:
    record = run(loop(2, duration=None, warm_up=2, rate=None))
    assert [op.index for op in record.operations] == [0, 1, 2, 3, 4, 5]
    assert [op.warmup for op in record.operations] == [True] * 4 + [False] * 2
    assert len({op.key for op in record.operations}) == 2
    assert {op.intended_ns for op in record.operations} == {None}


def test_a_duration_ends_the_rounds() -> None:
    record = run(loop(2, warm_up=1, rate=None), service_s=0.1)
    assert [op.warmup for op in record.operations] == [True] * 2 + [False] * 30


@uses("workload noop")
def test_empty_rounds_end() -> None:
    record = run(replace(loop(rate=None), workload="noop"))
    assert record.ok
    assert record.operations == ()


@uses("workload mixed")
def test_a_mix_continues_with_the_objects_of_its_warm_up() -> None:
    mix = (("get", 40.0), ("put", 30.0), ("delete", 30.0))
    job = loop(6, workload="mixed", warm_up=2, mix=mix, operations=50, rate=None)
    record = run(replace(job, duration=None))
    assert record.ok
    assert sum(op.warmup for op in record.operations) == 6 + 2 * 50
    # With a duration, a round is one operation for each object.
    record = run(replace(job, load=replace(job.load, operations=None)))
    assert record.ok
    assert sum(op.warmup for op in record.operations) == 6 + 2 * 6


@each_row("warmup", [0, 2])
@each_row(("threads", "objects"), [(1, 1), (4, 1), (4, 8)])
def test_a_stall_shows_whenever_it_begins(
    tmp_path: Path, warmup: int, threads: int, objects: int
) -> None:
    job = loop(objects, warm_up=warmup, threads=threads)
    found = []
    # The warm-up comes first, and each thread has its share of it.
    before_s = warmup * -(-objects // threads) * 0.001
    for number, at_s in enumerate((0.2, 1.0, 2.5)):
        stall = (before_s + at_s, 2.0)
        latencies, row = report(tmp_path / str(number), job, stall=stall)
        assert latencies.due == 300
        assert row.response is not None
        assert row.response.histogram.count == 300
        found.append(row.response.percentiles_s["p99"])
        # After the first stall there is time for the backlog, after the others there is not.
        assert (latencies.dropped == 0) == (number == 0)
    assert min(found) > 1.95
    assert max(found) < 1.1 * min(found)


def test_at_twice_the_possible_rate_no_operation_is_missing(tmp_path: Path) -> None:
    latencies, row = report(tmp_path, loop(), service_s=0.02)
    assert (latencies.due, latencies.begun, latencies.dropped) == (300, 150, 150)
    assert (row.ok, row.dropped) == (150, 150)
    assert latencies.target_per_s == RATE
    assert latencies.offered_per_s == pytest.approx(RATE)
    assert latencies.achieved_per_s == pytest.approx(50, rel=0.01)
    assert row.response is not None
    assert row.queueing is not None
    # The last is due at 3 s, when the free thread starts the operation due at 1.5 s.
    assert row.queueing.percentiles_s["max"] == pytest.approx(1.5, rel=0.01)
    assert row.queueing.percentiles_s["p50"] == pytest.approx(0.75, rel=0.01)
    (over_time,) = latencies.over_time
    assert sum(over_time.count) == 300


@given(
    duration_s=st.floats(0.2, 3),
    objects=st.integers(1, 9),
    warmup=st.integers(0, 2),
    load=st.fixed_dictionaries(
        {
            "rate": st.floats(0.5, 200),
            "threads": st.integers(1, 5),
            "arrivals": st.sampled_from(["uniform", "poisson"]),
        }
    ),
    service_s=st.floats(1e-6, 0.2),
    stall=st.tuples(st.floats(0, 3), st.floats(0, 3)),
)
def test_due_operations_are_started_or_dropped(
    duration_s: float,
    objects: int,
    warmup: int,
    load: dict[str, Any],
    service_s: float,
    stall: tuple[float, float],
) -> None:
    job = loop(objects, duration=duration_s, warm_up=warmup, **load)
    rate, threads = load["rate"], load["threads"]
    record = run(job, service_s=service_s, stall=stall)
    warmed = [op for op in record.operations if op.warmup]
    begun = [op for op in record.operations if not op.warmup]
    begin_ns = max((op.end_ns for op in warmed), default=BEGIN_NS)
    end_ns = begin_ns + round(duration_s * NS_PER_S)
    taken = sorted(op.intended_ns or 0 for op in begun)
    due = [*taken, *instants(record.dropped)]
    assert len(warmed) == warmup * objects
    assert due == sorted(due)
    assert all(begin_ns <= instant < end_ns for instant in due)
    assert all(op.start_ns >= (op.intended_ns or 0) for op in begun)
    if load["arrivals"] == "uniform":
        # Off by one if the duration is not a multiple of the interval.
        assert abs(len(due) - rate * duration_s) <= 1
        assert all(abs(b - a - NS_PER_S / rate) <= 2 for a, b in pairwise(due))
    if record.dropped:
        (until_ns,) = {row.until_ns for row in record.dropped}
        # No thread was idle while an operation was due.
        assert until_ns >= max(end_ns, record.dropped[-1].last_ns)
        first_ns = record.dropped[0].first_ns
        late = [op for op in begun if op.end_ns > first_ns]
        assert len(late) >= min(threads, objects) or all(op.end_ns >= end_ns for op in late)


@pytest.mark.parametrize("arrivals", ["uniform", "poisson"])
def test_dropped_operations_take_few_rows(arrivals: str) -> None:
    job = loop(duration=30, rate=100_000.0, arrivals=arrivals)
    record = run(job, service_s=1.0)
    due = len(record.operations) + sum(row.count for row in record.dropped)
    assert len(record.operations) == 30
    # A Poisson process with a mean of three million: five standard deviations.
    assert due == pytest.approx(3_000_000, abs=8_700)
    assert len(record.dropped) <= 130
    assert len(str(record.to_json()["dropped"])) < 13_000


def test_a_schedule_ends_with_the_operations() -> None:
    record = run(loop(20, duration=None, threads=3), service_s=0.5)
    assert record.ok
    assert len(record.operations) == 20
    assert record.dropped == ()


def test_at_the_deadline_only_due_operations_are_dropped() -> None:
    # One per second until the deadline at 4.5 s: all 20 were due by then.
    record = run(replace(loop(20, duration=None), deadline=4.5), service_s=1.0)
    assert record.error == "deadline: stopped before the last operation"
    assert len(record.operations) + sum(row.count for row in record.dropped) == 20
    # 9 of 20 were due by then.
    job = replace(loop(20, duration=None, rate=2.0), deadline=4.5)
    record = run(job, service_s=1.0)
    assert len(record.operations) + sum(row.count for row in record.dropped) == 9


def test_an_instant_behind_the_deadline_is_not_due() -> None:
    record = run(replace(loop(20, duration=None, rate=0.1), deadline=15.0))
    assert record.error == "deadline: stopped before the last operation"
    assert record.dropped == ()
    assert all(op.error is None for op in record.operations)
    assert len(record.operations) in {1, 2}


@uses("workload mixed")
def test_dropped_operations_of_a_mix_are_assigned_by_weights(tmp_path: Path) -> None:
    mix = (("get", 50.0), ("put", 25.0), ("head", 25.0))
    job = loop(4, workload="mixed", mix=mix, warm_up=1)
    latencies, _ = report(tmp_path, job, service_s=0.1)
    whole = {row.kind: row for row in latencies.by_kind if row.size_class is None}
    assert latencies.due == 300
    assert sum(row.dropped or 0 for row in whole.values()) == latencies.dropped == 270
    assert sum(row.ok for row in whole.values()) == latencies.begun == 30
    for kind, share in (("get", 0.5), ("put", 0.25), ("head", 0.25)):
        assert whole[kind].dropped == pytest.approx(270 * share, abs=2)
        times = whole[kind].response
        assert times is not None
        assert times.histogram.count == whole[kind].ok + (whole[kind].dropped or 0)
        # Evenly over time: each kind has as late ones.
        assert times.percentiles_s["max"] == pytest.approx(2.7, rel=0.05)
    sized = [row for row in latencies.by_kind if row.size_class and row.kind == "get"]
    assert sum(row.dropped or 0 for row in sized) == whole["get"].dropped


@uses("workload read")
def test_a_function_without_operations_leaves_its_share_undone(tmp_path: Path) -> None:
    job = replace(loop(duration=2), workload="read")
    found = summarize(kept(tmp_path, job, [run(job)])).latencies
    assert (found.due, found.begun, found.dropped) == (200, 0, 200)
    (row,) = found.by_kind
    assert (row.kind, row.ok, row.dropped) == ("get", 0, 200)


def test_functions_share_a_rate_with_those_that_run_at_once(tmp_path: Path) -> None:
    job = replace(loop(), number=4, concurrency=2)
    shares = [spec.load.rate for spec in invocation_specs(job, run_id="r", created_ns=0)]
    assert shares == [RATE / 2] * 4


def test_clock_corrections_move_dropped_operations_too(tmp_path: Path) -> None:
    job = loop()
    record = run(job, service_s=0.02)
    wrong = kept(tmp_path / "wrong", job, [record])
    functions = dict(wrong.functions)
    functions["submitted_ns"] = functions["submitted_ns"] + 3600 * NS_PER_S
    functions["collected_ns"] = functions["collected_ns"] + 3600 * NS_PER_S
    shifted = summarize(replace(wrong, functions=functions))
    assert shifted.clocks.corrected == 1
    right = summarize(kept(tmp_path / "right", job, [record])).latencies
    assert shifted.latencies.by_kind == right.by_kind


def test_the_barrier_is_between_the_warm_up_and_the_schedule() -> None:
    record = run(loop(3, warm_up=2).with_options(barrier=1.0))
    kinds = [op.warmup for op in record.operations]
    assert kinds[:6] == [True] * 6
    assert not any(kinds[6:])
    assert record.barrier_wait_ns is not None
    warmed_ns, begun_ns = record.operations[5].end_ns, record.operations[6].intended_ns
    assert begun_ns is not None
    # One announcement and one poll of 1 ms each.
    assert record.barrier_wait_ns == 2_000_000
    assert begun_ns >= warmed_ns + record.barrier_wait_ns


def written(style: str, summary: Summary) -> str:
    out = io.StringIO()
    open_reporter(style)(summary, out)
    return out.getvalue()


def test_reports_state_dropped_operations(tmp_path: Path) -> None:
    job = loop()
    saved_run = kept(tmp_path, job, [run(job, service_s=0.02)])
    summary = summarize(saved_run)
    for style in ("full", "markdown"):
        text = written(style, summary)
        first = "achieved 50/s of 100/s; 150 of 300 operations dropped; 1 of 1"
        assert f": {first} functions ok" in text.splitlines()[0].replace("**", "")
        assert "target 100/s, offered 100/s, achieved 50/s" in text
        assert "150 of 300 scheduled operations dropped: 1 thread per function" in text
        assert "target rate reached" not in text
        assert "wait until operations are due" not in text
    found = json.loads(written("json", summary))["latencies"]
    assert (found["due"], found["begun"], found["dropped"]) == (300, 150, 150)


@uses("feature check")
def test_dropped_operations_are_a_warning_of_check(tmp_path: Path) -> None:
    from serverless_bench.features.check.checked_run import variability

    job = loop()
    found = kept(tmp_path, job, [run(job, service_s=0.02)])
    warning = "150 of 300 operations dropped"
    assert warning in variability(found, summarize(found)).warnings


def test_reports_of_runs_on_schedule_have_no_dropped_operations(tmp_path: Path) -> None:
    job = loop()
    summary = summarize(kept(tmp_path, job, [run(job)]))
    text = " ".join(written("full", summary).split())
    assert "achieved 100/s of 100/s; 1 of 1 functions ok" in text
    assert "operations dropped" not in text
    assert "normal below saturation" in text
    assert summary.parts["bottleneck"].functions == {"schedule": 1}


@pytest.mark.parametrize(("threads", "by"), [(1, "schedule"), (2, "schedule")])
def test_one_operation_dropped_is_not_bounded_by_the_rate(
    tmp_path: Path, threads: int, by: str
) -> None:
    # It ends well within 5 % of the schedule, and still it left something undone.
    job = loop(threads=threads)
    record = run(job, service_s=0.001)
    run_of = kept(tmp_path / "all", job, [record])
    assert summarize(run_of).parts["bottleneck"].functions == {by: 1}
    last = max(op.intended_ns or 0 for op in record.operations)
    undone = Dropped(first_ns=last + 1, last_ns=last + 1, count=1, until_ns=last + 2)
    found = summarize(kept(tmp_path / "one", job, [replace(record, dropped=(undone,))]))
    assert by not in found.parts["bottleneck"].functions
    assert found.latencies.dropped == 1


@uses("workload custom", "workload noop")
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"duration": 3600, "rate": 1e5}, "360,000,000 operations, a run may have"),
        ({"workload": "noop"}, "`rate` does not apply to the workload noop"),
        ({"workload": "custom"}, "`rate` does not apply to the workload custom"),
    ],
)
def test_rates_that_cannot_be_are_refused(settings: dict[str, Any], message: str) -> None:
    of = {"workload": "write", **{n: v for n, v in settings.items() if n != "rate"}}
    rate = settings.get("rate", 1.0)
    with pytest.raises(UsageError, match=message):
        replace(loop(), load=Load(rate=rate), **of)


@uses("workload mixed", "workload read")
@each_row(
    ("load", "object_bytes", "keys", "warned"),
    [
        ({}, 64 * MIB, [], "100 operations per second of 64 MiB are"),
        ({}, MIB // 2, [], ""),
        ({"sizes": "uniform:1MiB:3MiB"}, None, [], "of 2 MiB are 209.7 MB/s"),
        ({"mix": (("get", 1), ("head", 3))}, 4 * MIB, [], ""),
        (
            {"mix": (("get_range", 1),), "range_size": 2 * MIB},
            4 * MIB,
            [],
            "of 2 MiB are 209.7 MB/s",
        ),
        ({"split": 4}, None, [f"sbench/{0:032x}.{8 * MIB}"], "of 2 MiB are 209.7 MB/s"),
    ],
)
def test_more_than_the_link_carries_is_warned_of(
    load: dict[str, Any], object_bytes: int | None, keys: list[str], warned: str
) -> None:
    # Objects to read have sizes of their own.
    workload = "read" if keys else "mixed" if "mix" in load else "write"
    job = replace(loop(workload=workload, **load), size=object_bytes, network_rate=120e6)
    notes = list(beyond_the_network(job, keys))
    assert [warned in note for note in notes] == ([True] if warned else []), notes
    assert list(beyond_the_network(replace(job, network_rate=None), keys)) == []
