"""Reports with impossible figures have no headline, and give the reason."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from serverless_bench.cli.output.terminal import ExitCode
from serverless_bench.job.operations import OperationKind
from serverless_bench.metrics.invariants import INVARIANTS
from serverless_bench.metrics.summary import summarize
from serverless_bench.report.base import problems
from serverless_bench.rundir.archive import Archive
from serverless_bench.rundir.record import Outcome
from serverless_bench.rundir.run import Run, load_run
from tests.data.runs import S, job, lost, operation, outcome, record, saved
from tests.house.members import uses


def some(path: Path, count: int = 8) -> Run:
    ops = [
        operation(start_ns=i * S // 10, end_ns=i * S // 10 + 4 * S, size=10**6)
        for i in range(count)
    ]
    return saved(path, [outcome(record(i, [op])) for i, op in enumerate(ops)])


def changed(run: Run, **columns: Callable[[np.ndarray], np.ndarray]) -> Run:
    operations = {**run.operations}
    for name, change in columns.items():
        operations[name] = change(operations[name].copy())
    return replace(run, operations=operations)


def test_a_true_report_has_its_headline(tmp_path: Path) -> None:
    found = summarize(some(tmp_path / "run"))
    assert found.withheld == ()
    assert found.throughput_bytes_per_s
    assert found.exit_code() == ExitCode.OK


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ({"bytes": lambda b: b - 1}, "the timeline adds up to"),
        ({"size": lambda s: s + 1}, "moved fewer or more bytes than their object"),
        ({"verified_bytes": lambda v: v + 10**7}, "more bytes were verified than moved"),
        ({"bytes": lambda b: b * 2, "size": lambda s: s * 2}, "the attempts carried"),
        ({"last_byte_sent_ns": lambda t: t + 10 * S}, "a timestamp before their start"),
        ({"start_ns": lambda t: t - 60 * S}, "begin before their function began"),
        ({"end_ns": lambda t: t + 30 * S}, "or end after it ended"),
    ],
)
def test_what_cannot_be_withholds_it(
    tmp_path: Path, columns: dict[str, Callable[[np.ndarray], np.ndarray]], why: str
) -> None:
    found = summarize(changed(some(tmp_path / "run"), **columns))
    assert found.throughput_bytes_per_s is None
    assert found.peak_1s_bytes_per_s is found.steady_bytes_per_s is None
    assert why in ", ".join(found.withheld)
    assert found.exit_code() == ExitCode.WITHHELD


def test_rates_above_the_link_are_contradictions(tmp_path: Path) -> None:
    run = some(tmp_path / "run")
    whole = summarize(run).throughput_bytes_per_s
    assert whole
    slow = replace(run, job=replace(run.job, network_rate=whole / 2))
    (why,) = summarize(slow).withheld
    assert "exceeds a network of" in why
    fast = replace(run, job=replace(run.job, network_rate=whole * 10))
    assert not summarize(fast).withheld


def test_a_link_carries_its_rate_in_each_direction(tmp_path: Path) -> None:
    kinds = (OperationKind.PUT, OperationKind.GET) * 4
    ops = [operation(end_ns=4 * S, size=10**6, kind=kind) for kind in kinds]
    run = saved(tmp_path / "run", [outcome(record(i, [op])) for i, op in enumerate(ops)])
    run = replace(run, provenance={})
    for link, is_true in ((1_000_000, True), (900_000, False)):
        declared = replace(run, job=replace(run.job, network_rate=link))
        assert (summarize(declared).withheld == ()) is is_true


def test_a_withheld_throughput_stands_nowhere_else(tmp_path: Path) -> None:
    run = changed(some(tmp_path / "run"), bytes=lambda b: b - 1)
    report = summarize(run).to_json()
    assert report["withheld"]
    assert report["per_function_bytes_per_s"] is None
    rows = report["latencies"]["by_kind"]
    assert rows
    assert all(row["bytes_per_s"] is row["operations_per_s"] is None for row in rows)
    assert report["latencies"]["achieved_per_s"] is None


def test_steps_do_not_outlast_their_operation(tmp_path: Path) -> None:
    run = some(tmp_path / "run")
    steps = {**run.steps, "step_ns": run.steps["step_ns"] + 1000 * S}
    withheld = summarize(replace(run, steps=steps)).withheld
    assert withheld == ("the steps of 8 operations take longer than the operations",)


def test_the_time_of_a_lost_function_bounds_the_whole_from_below(tmp_path: Path) -> None:
    hung = replace(outcome(lost(1)), collected_ns=10 * S)
    run = saved(tmp_path / "run", [outcome(record(0, [operation(end_ns=S, size=10**6)])), hung])
    missing = summarize(run).missing_functions
    assert missing is not None
    assert missing.throughput_bytes_per_s == pytest.approx((10**5, 2 * 10**6))


def test_launches_that_left_no_record_are_told(tmp_path: Path) -> None:
    """A driver dies with two launches, another driver loses one of its own, and none of them
    starts."""
    of = job(number=6)
    saved(tmp_path / "run", [outcome(record(0, [operation()]))], of=of)
    records = tmp_path / "run" / "records.jsonl"
    lines = records.read_text().splitlines()[:1]
    lines.append(json.dumps({"alive": {"alive_ns": 3 * S, "started": 3}}))
    records.write_text("".join(f"{line}\n" for line in lines))
    assert summarize(load_run(tmp_path / "run")).unrecorded_launches == 2
    with Archive(tmp_path / "run") as archive:
        archive.resumed(9 * S)
        archive.begin_wave(1, 9 * S, (), 5)
        for index in (1, 2, 3):
            again = replace(record(index, [operation()]), launch=1)
            archive.append(outcome(again))
        archive.append(outcome(replace(lost(4), launch=1)))
        archive.append(outcome(replace(lost(5), launch=1, not_started=True)))
    found = summarize(load_run(tmp_path / "run"))
    assert found.unrecorded_launches == 3
    reported = "3 launches left no record: the requests and bytes they sent are not counted"
    assert reported in problems(found)


@uses("feature why")
def test_littles_law(tmp_path: Path) -> None:
    from serverless_bench.features.why.interventions import Interventions

    run = some(tmp_path / "run")
    few = replace(run, job=replace(run.job, concurrency=4))
    (why,) = summarize(few).withheld
    assert "Little's law" in why
    for changes, allowed in ((("thread", "lock"), True), (("lock",), False)):
        plan = Interventions(changes=changes, block_s=1.0)
        blocks = replace(few, job=few.job.with_options(interventions=plan))
        assert (summarize(blocks).withheld == ()) == allowed


def test_an_object_is_not_faster_than_memory(tmp_path: Path) -> None:
    op = operation(start_ns=0, end_ns=1, size=10**6)
    found = summarize(saved(tmp_path / "run", [outcome(record(0, [op]))]))
    assert any("faster than memory" in why for why in found.withheld)


def test_there_is_a_test_for_each_check() -> None:
    assert len(INVARIANTS) == 11


def test_missing_functions_stand_in_the_first_line_with_bounds(tmp_path: Path) -> None:
    outcomes = [
        outcome(record(i, [operation(end_ns=10 * S, size=10**9, kind=OperationKind.GET)]))
        for i in range(992)
    ]
    outcomes += [outcome(lost(i)) for i in range(992, 1000)]
    found = summarize(saved(tmp_path / "run", outcomes, of=job(number=1000, concurrency=1000)))
    assert found.missing_functions is not None
    assert found.missing_functions.count == 8
    low, high = found.missing_functions.throughput_bytes_per_s
    assert low == pytest.approx(99.2e9)
    assert high == pytest.approx(100e9)
    assert found.missing_functions.per_function_p50_bytes_per_s == pytest.approx((1e8, 1e8))


def test_more_missing_than_there_leaves_the_middle_open(tmp_path: Path) -> None:
    outcomes: list[Outcome] = [outcome(record(0, [operation()]))]
    outcomes += [outcome(lost(i)) for i in range(1, 4)]
    found = summarize(saved(tmp_path / "run", outcomes))
    assert found.missing_functions is not None
    assert found.missing_functions.per_function_p50_bytes_per_s is None


def test_warmup_only_counts_on_request(tmp_path: Path) -> None:
    warm = replace(operation(0, end_ns=S, size=500), warmup=True)
    hot = operation(1, start_ns=S, end_ns=2 * S, size=1000)
    run = saved(tmp_path / "run", [outcome(record(0, [warm, hot]))])
    found = summarize(run)
    assert (found.bytes, found.warmup_operations, found.warmup_bytes) == (1000, 1, 500)
    assert found.operations == 1
    everything = summarize(run, with_warmup=True)
    assert (everything.bytes, everything.warmup_operations) == (1500, 0)
