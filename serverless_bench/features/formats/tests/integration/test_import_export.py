"""Measurements of other tools in, measurements of sbench out, as a user does it."""

import os
import pickle
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from serverless_bench.metrics.timeline import function_spans, good_operations
from serverless_bench.rundir.run import load_run
from tests.commands.command import Done, Sbench
from tests.data import oplogs, pickles
from tests.data.oplogs import BEGIN, Request, S, oplog
from tests.house.members import uses

MB = 10**6


@pytest.fixture
def sbench(tmp_path: Path) -> Sbench:
    """The command in an empty directory; it needs no store."""
    return Sbench(tmp_path, {})


def give(sbench: Sbench, content: bytes | str, *flags: str) -> Done:
    path = sbench.directory / "theirs"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return sbench("import", path, *flags)


@uses("feature plot")
def test_lithops_results_become_a_run_like_any_other(sbench: Sbench) -> None:
    data = pickle.dumps(pickles.lithops(pickles.tuples(8, read=True)))
    done = give(sbench, data, "--name", "theirs", "--run-dir", "runs")
    assert (done.code, done.err) == (0, "")
    first, second, *rest = done.out.splitlines()
    assert first == "run directory: runs/theirs"
    assert second == "read: 8 of 8 functions ok, 0 failed, 0 lost, 0 duplicate"
    assert "8 objects were not written by sbench: read unverified" in rest[-2]
    report = sbench("report", "runs/theirs", "--format", "json").json
    assert (report["bytes"], report["verified_bytes"]) == (8 * 512 * MB, 0)
    assert (report["executor"], report["client"]) == ("imported", "lithops")
    assert sbench("plot", "runs/theirs", "--output", "picture.svg").code == 0
    cleaned = sbench("clean", "runs/theirs")
    assert (cleaned.code, "runs/theirs was imported" in cleaned.err) == (2, True)


def test_functions_lost_in_the_other_tool_are_lost_here(sbench: Sbench) -> None:
    data = pickles.lithops(pickles.tuples(1000), read=False, keys=1000)
    del data["results"][100:108]
    done = give(sbench, pickle.dumps(data), "--format", "json")
    assert done.code == 6
    assert (done.json["requested"], done.json["ok"], done.json["lost"]) == (1000, 992, 8)
    assert done.err.startswith("run directory: ")
    assert "note: 1000 functions were requested and 992 have a result" in done.err


def test_the_link_is_in_the_run(sbench: Sbench) -> None:
    done = give(
        sbench, oplogs.impossible(), "--network-rate", "20Gbit", "--name", "one", "--format", "json"
    )
    assert (done.json["requested"], done.json["client"]) == (64, "warp")
    run = load_run(sbench.directory / "sbench-runs" / "one")
    assert run.job.network_rate == 2.5e9
    assert set(run.operations["bytes"]) == {32 * MB}


def test_other_operations_are_named(sbench: Sbench) -> None:
    log = oplog(
        Request(op=op, start_ns=BEGIN + i * S, end_ns=BEGIN + i * S + 5)
        for i, op in enumerate(["PUT", "STAT", "LIST", "MULTIPART"])
    )
    done = give(sbench, log)
    assert done.code == 0
    assert done.err.startswith("note: dropped, as their kind is unknown: 1 MULTIPART\n")


class Runs:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


BROKEN = [
    (pickle.dumps(pickles.tuples())[:-9], ()),
    (oplog([Request(start_ns=BEGIN, end_ns=BEGIN - 1)]), ()),
    (b"no results\n", ()),
    (pickle.dumps(pickles.tuples()), ("--from", "warp")),
    (pickle.dumps(pickles.tuples()), ("--network-rate", "fast")),
    (pickle.dumps(pickles.tuples()), ("--name", "a/b")),
]


@pytest.mark.parametrize(("content", "flags"), BROKEN)
def test_an_invalid_file_is_one_line_and_leaves_no_run(
    sbench: Sbench, content: bytes | str, flags: tuple[str, ...]
) -> None:
    done = give(sbench, content, *flags)
    assert (done.code, done.out) == (2, "")
    error, *hint = done.err.splitlines()
    assert error.startswith("sbench: ")
    assert all(line.startswith("hint: ") for line in hint)
    assert [path.name for path in sbench.directory.iterdir()] == ["theirs"]


def test_a_pickle_that_runs_code_has_not_run(sbench: Sbench) -> None:
    done = give(sbench, pickle.dumps([Runs(sbench.directory / "made")]))
    assert done.code == 2
    assert "is rejected: it is not plain data" in done.err
    assert [path.name for path in sbench.directory.iterdir()] == ["theirs"]


def test_a_run_directory_is_never_used_twice(sbench: Sbench) -> None:
    data = pickle.dumps(pickles.tuples())
    assert give(sbench, data, "--name", "one").code == 0
    assert give(sbench, data, "--name", "one").code == 8


def span_ns(directory: Path) -> int:
    run = load_run(directory)
    good = good_operations(run)
    return int(run.operations["end_ns"][good].max() - run.operations["start_ns"][good].min())


@pytest.mark.parametrize(
    ("style", "name", "slack_ns"),
    [("warp", "log.csv", 0), ("warp", "log.csv.zst", 0), ("pywren", "results.pickle", 500)],
)
def test_there_and_back(sbench: Sbench, style: str, name: str, slack_ns: int) -> None:
    rows = pickles.tuples(20, size=123_456_789, read=True)
    assert give(sbench, pickle.dumps(rows), "--name", "one").code == 0
    assert sbench("export", "sbench-runs/one", "--format", style, "--output", name).code == 0
    phase = ("--phase", "read") if style == "pywren" else ()
    back = sbench("import", name, "--name", "two", "--format", "json", *phase)
    assert back.code == 0, back.err
    assert back.json["bytes"] == 20 * 123_456_789
    assert (back.json["client"], back.json["workload"]) == (style, "read")
    one, two = (sbench.directory / "sbench-runs" / which for which in ("one", "two"))
    assert abs(span_ns(one) - span_ns(two)) <= slack_ns
    assert function_spans(load_run(two)).bytes_per_s == pytest.approx(
        function_spans(load_run(one)).bytes_per_s, rel=1e-6
    )


def test_tables(sbench: Sbench) -> None:
    give(sbench, pickle.dumps(pickles.tuples(3)), "--name", "one")
    text = sbench("export", "sbench-runs/one", "--format", "csv")
    assert (text.code, len(text.out.splitlines())) == (0, 1 + 3)
    binary = sbench("export", "sbench-runs/one", "--format", "parquet", "--output", "one.parquet")
    assert (binary.code, binary.out) == (0, "")
    assert len(pd.read_parquet(sbench.directory / "one.parquet")) == 3
    log = sbench("export", "sbench-runs/one", "--format", "warp")
    assert log.out.splitlines()[0].split("\t") == list(oplogs.WARP)


def test_exports_that_cannot_be(sbench: Sbench) -> None:
    give(sbench, pickle.dumps(pickles.tuples(1)), "--name", "one")
    for arguments, code in (
        (("--format", "parquet"), 2),
        (("--format", "xlsx"), 3),
        (("--format", "csv", "--output", "nowhere/x.csv"), 2),
        ((), 2),
    ):
        done = sbench("export", "sbench-runs/one", *arguments)
        assert (done.code, done.out) == (code, "")
        assert done.err.startswith("sbench: ")


def test_no_terminal_gets_a_traceback_when_the_reader_leaves(sbench: Sbench) -> None:
    give(sbench, oplogs.impossible(), "--name", "one")
    command = f"{sys.executable} -m serverless_bench export sbench-runs/one --format warp | head -1"
    done = os.popen(f"cd {sbench.directory} && {command} 2>&1")  # noqa: S605 - a pipe is the point
    assert done.read().splitlines() == ["\t".join(oplogs.WARP)]
    done.close()
