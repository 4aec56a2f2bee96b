"""A read has the shape of the write, and says what its shape leaves unused."""

import json
from typing import Any

import pytest

from tests.commands.command import Sbench
from tests.house.members import uses

HERE = ("--executor", "local", "--format", "json")
SHAPE = ("--number", 4, "--objects", 2, "--concurrency", 2, "--threads", 2)


@pytest.fixture
def written(sbench: Sbench) -> Sbench:
    wrote = sbench("write", *SHAPE, "--size", "1KiB", *HERE, "--name", "w")
    assert wrote.code == 0, wrote.err
    return sbench


def shape_of(sbench: Sbench, name: str) -> tuple[Any, ...]:
    job = json.loads((sbench.directory / "sbench-runs" / name / "run.json").read_text())["job"]
    return job["number"], job["objects"], job["concurrency"], job["load"]["threads"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((), (4, 2, 2, 2)),
        (("--number", 2), (2, 2, 2, 2)),
        (("--objects", 8), (1, 8, 2, 2)),
        (("--concurrency", 1), (4, 2, 1, 2)),
        (("--threads", 1), (4, 2, 2, 1)),
    ],
    ids=["nothing", "number", "objects", "concurrency", "threads"],
)
def test_a_read_has_the_shape_of_the_write(
    written: Sbench, given: tuple[Any, ...], expected: tuple[int, ...]
) -> None:
    read = written("read", "--from", "w", *HERE, *given, "--name", "r")
    assert read.code == 0, read.err
    assert shape_of(written, "r") == expected
    assert read.json["bytes"] == expected[0] * expected[1] * 1024


def test_a_plan_has_the_shape_of_the_write(written: Sbench) -> None:
    planned = written("plan", "--format", "json", "read", "--from", "w", "--bucket", "b")
    assert planned.code == 0, planned.err
    assert (planned.json["functions"], planned.json["concurrency"]) == (4, 2)


def test_a_search_for_a_limit_has_the_shape_of_the_write(written: Sbench) -> None:
    budget = ("--budget", "1s", "--block", "0.2s", "--highest", 20, "--p99", "10s", "--keep")
    found = written("limit", "read", "--from", "w", "--name", "l", *budget)
    assert found.code in (0, 10), found.err
    runs = [path.parent for path in (written.directory / "sbench-runs/l").rglob("run.json")]
    names = {str(path.relative_to(written.directory / "sbench-runs")) for path in runs}
    assert {shape_of(written, name) for name in names} == {(4, 2, 2, 2)}


@uses("feature limit")
def test_a_series_has_as_many_functions_as_run_at_once(
    sbench: Sbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second wave would double the time of a block; the user's own number stays."""
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    budget = ("--p99", "1s", "--block", "0.5s", "--budget", "1s", "--highest", 20, "--keep")
    for name, given, number in (("own", (), 4), ("given", ("--number", 6), 6)):
        done = sbench("limit", "write", "--size", "1KiB", *budget, *given, "--name", name)
        assert done.code in {0, 10}, done.err
        assert ("batches" in done.err) == (number == 6)
        made = (sbench.directory / "sbench-runs" / name).rglob("run.json")
        jobs = [json.loads(file.read_text())["job"] for file in made]
        assert {job["number"] for job in jobs} == {number}


def test_idle_threads_and_waves_are_said_everywhere(written: Sbench) -> None:
    shape = ("--number", 2, "--objects", 1, "--concurrency", 1, "--threads", 4)
    for_a_while = (*shape, "--duration", "0.2", "--executor", "local")
    read = written("read", "--from", "w", *for_a_while, "--name", "r")
    assert read.code == 0, read.err
    output = ("3 of 4 in each function", "--duration 200 ms x 2 batches = 400 ms")
    for text in (read.err, read.out, written("check", "r").out):
        assert [words for words in output if words not in text] == []
    assert written("report", "r", "--format", "json").json["batches_s"] == 0.4
