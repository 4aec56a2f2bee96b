"""Answers from recorded blocks: changes that failed, own code, shares, and the control."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import log
from pathlib import Path

import numpy as np
import pytest

from serverless_bench.features.why.cause import BoundBy, Cause, decide
from serverless_bench.features.why.elasticity import Elasticity
from serverless_bench.features.why.interventions import (
    BASE,
    Interventions,
    changes_for,
    with_extra_threads,
)
from serverless_bench.features.why.result import Why, lines
from serverless_bench.features.why.tests.test_why_statistics import row, rows
from serverless_bench.job.invocations import invocation_specs
from serverless_bench.job.operations import OperationKind
from serverless_bench.job.policy import variants
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.workload import Load
from serverless_bench.rundir.record import OperationRecord
from tests.data.runs import TARGET, S, job, operation, outcome, record, saved
from tests.house.members import uses

PLAN = Interventions(changes=("bytes", "pause", "nothing"), block_s=1.0)
MS = S // 1000


@pytest.mark.parametrize("value", [True, 1, "pause", ["pause"], {"changes": ["pause"]}])
def test_a_saved_job_whose_interventions_are_none_is_refused(value: object) -> None:
    table = {**job(number=1).to_json(), "interventions": value}
    with pytest.raises((TypeError, ValueError), match=r"`job\.options\.interventions"):
        JobSpec.from_json(table)


def answer(path: Path, of: JobSpec, made: Callable[[int, str], list[OperationRecord]]) -> Why:
    """Return the answer of a run of two functions, with these operations in each 0.1 s."""
    records = []
    for index in range(2):
        ops = [
            done
            for number in range(30, 1230)
            for done in made(number * 100 * MS, PLAN.change(number // 10))
        ]
        ops = [replace(one, index=n, key=f"k{n}") for n, one in enumerate(ops)]
        records.append(outcome(record(index, ops)))
    return Why(run=saved(path, records, of=of.with_options(interventions=PLAN)), plan=PLAN)


def put(start_ns: int, took_ns: int, size: int = 1000, error: str | None = None) -> OperationRecord:
    return operation(start_ns=start_ns, end_ns=start_ns + took_ns, size=size, error=error)


def test_a_change_whose_operations_failed_has_no_row_and_names_no_cause(tmp_path: Path) -> None:
    """Objects of half the size are missing, as those of a scan were."""

    def made(start_ns: int, change: str) -> list[OperationRecord]:
        error = "not_found" if change == "bytes" else None
        return [put(start_ns, 90 * MS, 500 if change == "bytes" else 1000, error)]

    why = answer(tmp_path / "run", job(number=2), made)
    assert "bytes" in why.failed()
    assert "bytes" not in why.rows
    assert "bytes" not in why.to_json()["changes"]
    assert not any(PLAN.changes[0] in line for line in list(lines(why, "text"))[:-1])


@uses("workload custom")
@pytest.mark.parametrize("threads", [1, 8])
def test_own_code_that_makes_requests_at_once_has_an_unknown_share(
    tmp_path: Path, threads: int
) -> None:
    def made(start_ns: int, change: str) -> list[OperationRecord]:
        return [put(start_ns + n * MS, 20 * MS) for n in range(threads)]

    why = answer(tmp_path / "run", job(number=2, workload="custom"), made)
    if threads == 1:
        assert why.own_share == pytest.approx(0.8, abs=0.02)
    else:
        assert why.own_share is None
        assert why.to_json()["own_share"] is None


STORE = frozenset(BoundBy) - {BoundBy.OWN_CODE, BoundBy.OWN_WAIT}
NO_THREAD = ("pause", "cpu", "lock", "others", "nothing")


@pytest.mark.parametrize("others", [0, 1])
@pytest.mark.parametrize("share", [0.6, 0.976])
def test_own_code_that_paces_itself_is_not_the_stores(others: int, share: float) -> None:
    """No change moves it: it waits for its own clock, or for others beside the store."""
    few = {name: row(others if name == "others" else 0) for name in NO_THREAD}
    assert decide(few, own_share=share).names == (BoundBy.OWN_WAIT,)
    assert decide(few | {"bytes": row(1)}, own_share=share).names == (BoundBy.OWN_WAIT,)


def test_where_the_own_share_is_unknown_no_cause_is_a_remainder() -> None:
    few = {name: row(0) for name in NO_THREAD}
    assert decide(few, own_share=None).names == (BoundBy.OWN_WAIT,)
    shared = decide(few | {"others": row(1)}, own_share=None).names
    assert shared == (BoundBy.OWN_WAIT, BoundBy.QUEUE, BoundBy.PIPE)
    waits = decide(few | {"pause": row(1)}, own_share=None).names
    assert waits == (BoundBy.OWN_CODE, BoundBy.LATENCY, BoundBy.CONNECTION)
    # A change that was not made leaves it open.
    assert decide(few, own_share=0.9, failed=["others"]).names == ()


def why_of(tmp_path: Path, cause: Cause, elasticities: Mapping[str, Elasticity]) -> Why:
    why = Why(
        run=saved(tmp_path / "run", [outcome(record(0, [operation()]))]),
        plan=Interventions(changes=("thread",), block_s=1.0),
    )
    changes = np.array([BASE, "thread", BASE])
    known = {"rows": dict(elasticities), "cause": cause, "changes": changes, "too_short": False}
    vars(why).update(known, rates=np.ones((3, 1)))
    return why


@pytest.mark.parametrize(
    ("value", "word", "other"),
    [
        (0.44, "In part: larger objects (a share of 44%)", "No help"),
        (0.05, "No help: larger", "In part"),
    ],
)
def test_a_share_is_a_share_and_no_help_is_below_a_tenth(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: float, word: str, other: str
) -> None:
    """Half the bytes took 44 % of a connection's time: objects of 1 MiB had 22 times the rate."""
    monkeypatch.setattr(Why, "too_short", False)
    cause = Cause(names=(BoundBy.CONNECTION,))
    sentence = why_of(tmp_path, cause, rows({"thread": 1, "bytes": value})).sentence
    assert word in sentence
    assert other not in sentence


def test_a_control_that_had_an_effect_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Why, "too_short", False)
    cause = Cause(names=(BoundBy.LATENCY,))
    odd = Elasticity(expected=log(0.75), logs=np.linspace(0.01, 0.02, 12))
    for number, (control, found) in enumerate(((odd, 1), (row(0), 0))):
        output = lines(why_of(tmp_path / f"{number}", cause, rows({}, nothing=control)), "text")
        assert sum("something else varied" in line for line in output) == found


def test_a_change_that_is_not_made_needs_no_more_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Why, "too_short", False)
    output = why_of(tmp_path, Cause(undecided=("pause",)), rows({})).sentence
    assert "0 block" not in output


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize(
    ("workload", "load"), [("mixed", {"mix": (("get", 1.0),)}), ("parquet", {})]
)
def test_every_job_has_a_change_of_threads_or_pauses(
    workload: str, load: Mapping[str, object], threads: int
) -> None:
    of = JobSpec(
        workload=workload,
        target=TARGET,
        name="j",
        number=2,
        concurrency=2,
        objects=8,
        size=1 << 20,
        duration=9.0,
        load=Load(threads=threads, **load),  # type: ignore[arg-type] # fields of a load
    )
    assert {"thread", "pause"} & {*changes_for(of)}


@uses("workload parquet")
def test_scans_in_changed_blocks_are_of_files_that_were_written() -> None:
    of = JobSpec(
        workload="parquet",
        target=TARGET,
        name="j",
        number=2,
        concurrency=2,
        objects=2,
        size=1 << 20,
    )
    plan = Interventions(changes=changes_for(of), block_s=1.0)
    assert "bytes" not in plan.changes
    changed = of.with_options(interventions=plan)
    invocation = next(invocation_specs(changed, run_id="r", created_ns=1 << 62))
    prepared = {spec.key for spec in of.declared.prepare(invocation, 0)}
    for own_variant in variants(invocation):
        for thread in range(own_variant.load.threads):
            scanned = {spec.key for spec in of.declared.operations(own_variant, thread)}
            assert scanned <= prepared
    extended, threads = with_extra_threads(invocation, plan)
    assert [*threads] == [0]
    assert [*of.declared.operations(extended, 0)]
    assert {OperationKind.SCAN} == {*of.declared.kinds(of.load)}
