"""Records of functions are compared with their plan."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from serverless_bench.cli.output.terminal import ExitCode
from serverless_bench.job.operations import OperationKind
from serverless_bench.job.workload import Load
from serverless_bench.metrics.summary import summarize
from serverless_bench.rundir.record import OperationRecord
from serverless_bench.rundir.run import load_run
from tests.data.runs import job, operation, outcome, record, saved
from tests.house.members import uses
from tests.tables import each_row

RECORDED = Path(__file__).parents[2] / "recorded"
KEYS = [f"sbench/{number:032x}.1000" for number in range(2)]

Columns = dict[str, list[Any]]


def read_twice(operations: Columns) -> None:
    first = operations["warmup"].index(False)
    operations["key"][first] = KEYS[0]


def written_elsewhere(operations: Columns) -> None:
    operations["key"][-1] = KEYS[0]


def undone(operations: Columns) -> None:
    for column in operations.values():
        column.clear()


def edited(path: Path, name: str, edit: Callable[[Columns], None], *, ledger: bool = True) -> Path:
    """Copy a recorded run and change the operations of the first record in it."""
    shutil.copytree(RECORDED / name, path)
    records = path / "records.jsonl"
    lines = [json.loads(line) for line in records.read_text().splitlines()]
    changed = next(line["record"] for line in lines if "record" in line)
    edit(changed["operations"])
    if not changed["operations"]["key"]:
        for table in ("attempts", "steps", "accesses"):
            undone(changed[table])
    records.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    if not ledger:
        (path / "ledger.txt").write_text("")
    return path


@pytest.mark.parametrize("detail", [True, False])
@pytest.mark.parametrize(
    ("name", "edit", "why"),
    [
        pytest.param("read", read_twice, "left out the get of", marks=uses("workload read")),
        pytest.param(
            "write", written_elsewhere, "left out the put of", marks=uses("workload write")
        ),
        pytest.param("write", undone, "left out the put of", marks=uses("workload write")),
        pytest.param("mixed", undone, "left out the put of", marks=uses("workload mixed")),
        pytest.param(
            "dropped", written_elsewhere, "which was not planned", marks=uses("workload mixed")
        ),
    ],
)
def test_a_function_that_did_something_else_withholds_the_headline(
    tmp_path: Path, name: str, edit: Callable[[Columns], None], why: str, *, detail: bool
) -> None:
    found = summarize(load_run(edited(tmp_path / "run", name, edit), detail=detail))
    reasons = "; ".join(found.withheld)
    assert why in reasons
    assert "1 function called ok deviate from their plan: function " in reasons
    assert found.exit_code() == ExitCode.WITHHELD


@uses("workload write")
def test_without_a_ledger_there_is_no_plan(tmp_path: Path) -> None:
    path = edited(tmp_path / "run", "write", written_elsewhere, ledger=False)
    assert summarize(load_run(path)).withheld == ()


def reads(*places: tuple[str, int, int]) -> list[OperationRecord]:
    """Return reads of ranges: key, where they begin, and their lengths."""
    size = 1000
    return [
        replace(
            operation(number, kind=OperationKind.GET_RANGE, size=size),
            key=key,
            offset=offset,
            bytes=length,
            verified_bytes=length,
        )
        for number, (key, offset, length) in enumerate(places)
    ]


@pytest.mark.parametrize(
    ("second", "why"),
    [
        ((KEYS[0], 500, 500), ""),
        ((KEYS[0], 0, 500), f"1 left out the get_range of 500 bytes from 500 of {KEYS[0]}"),
        ((KEYS[0], 500, 400), f"1 left out the get_range of 500 bytes from 500 of {KEYS[0]}"),
    ],
)
@uses("workload read")
def test_a_share_of_an_object_is_the_one_that_was_planned(
    tmp_path: Path, second: tuple[str, int, int], why: str
) -> None:
    of = replace(job(number=2, workload="read", size=None), load=Load(split=2))
    records = [record(0, reads((KEYS[0], 0, 500))), record(1, reads(second))]
    run = saved(tmp_path / "run", [outcome(each) for each in records], of=of, keys=KEYS[:1])
    planned = "1 function called ok deviate from their plan: function "
    assert summarize(run).withheld == ((planned + why,) if why else ())


@each_row(
    ("keys", "why"),
    [
        ([KEYS[0], KEYS[1], KEYS[0]], None),
        # With several threads, the progress of each is unknown.
        ([KEYS[0], KEYS[0], KEYS[0]], None),
        ([KEYS[0], "other"], "did the get of other, which was not planned"),
    ],
)
@each_row("threads", [1, 2, 3])
@uses("workload read")
def test_with_a_duration_only_planned_objects_are_read(
    tmp_path: Path, keys: list[str], why: str | None, threads: int
) -> None:
    of = replace(
        job(number=1, workload="read", size=None),
        objects=2,
        duration=9.0,
        load=Load(threads=threads),
    )
    done = [
        replace(operation(number, kind=OperationKind.GET), key=key)
        for number, key in enumerate(keys)
    ]
    run = saved(tmp_path / "run", [outcome(record(0, done))], of=of, keys=KEYS)
    assert run.functions["deviation"].tolist() == [why]


@uses("workload mixed")
def test_a_job_without_a_launch_has_no_plan(tmp_path: Path) -> None:
    run = shutil.copytree(RECORDED / "mixed", tmp_path / "run")
    header = run / "run.json"
    spoiled = json.loads(header.read_text())
    spoiled["job"]["load"]["mix"] = [["get", -1.0]]
    header.write_text(json.dumps(spoiled))
    assert load_run(run).functions["deviation"].tolist() == [None, None]
