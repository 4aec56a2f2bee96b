"""``sbench limit`` as a user runs it."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from serverless_bench.rundir.run import load_run
from tests.commands.command import Call, Sbench
from tests.house.members import uses
from tests.stores.servers import loopback

QUICK = ("--block", "0.3s", "--size", "1KiB", "--executor", "inline", "--number", "1")
"""One function in this process; each run excludes its first 0.06 s."""


def test_a_search_is_a_series_of_runs_and_a_report(sbench: Sbench, tmp_path: Path) -> None:
    # It serves 20 a second.
    with loopback("--queue", "1:fixed:50ms", log=tmp_path / "log") as store:
        done = sbench(
            *("limit", "write", "--endpoint-url", store.endpoint_url, "--bucket", store.bucket),
            *(*QUICK, "--objects", "8", "--threads", "8", "--p99", "500ms"),
            *("--lowest", "4", "--highest", "512", "--precision", "40%", "--budget", "8s"),
            *("--name", "found", "--format", "json"),
        )
    found = done.json
    # A busy machine finds a limit of its own; test_search.py measures how often the result is
    # right.
    codes = {"precision": 0, "budget": 10, "undecided": 10, "lowest": 14, "none": 14}
    assert done.code == codes[found["ended"]], done.err
    levels = [row["level"] for row in found["rows"]]
    assert levels == sorted(set(levels))
    assert levels[0] == 4
    assert (found["limit"] is None) == (found["ended"] in {"lowest", "none", "undecided"})
    assert (found["low"] or 0) <= (found["limit"] or 0) <= (found["high"] or 1024)
    growing = [row["growing"] for row in found["rows"]]
    assert done.err.count(", queue grows; beyond p99 100.00%") == sum(growing)
    verdicts = {row["verdict"] for row in found["rows"]}
    assert verdicts <= {"holds", "undecided", "does not hold"}
    # Every block is a normal run, and its objects are deleted.
    root = sbench.directory / "sbench-runs" / "found"
    runs = [load_run(path.parent) for path in root.glob("*/run.json")]
    assert len(runs) == found["blocks"]
    assert {run.job.load.rate for run in runs} == {row["level"] for row in found["rows"]}
    report = sbench("report", root / "4-1", "--format", "json")
    assert report.json["latencies"]["target_per_s"] == 4


def test_threads_and_functions_are_levels_too(sbench: Sbench, tmp_path: Path) -> None:
    short = ("--p99", "1min", "--highest", "2", "--budget", "1s", "--precision", "20%")
    with loopback(log=tmp_path / "log") as store:
        on = ("--endpoint-url", store.endpoint_url, "--bucket", store.bucket, "--format", "json")
        threads = sbench("limit", "mixed", *on, *short, *QUICK, "--objects", 4, "--over", "threads")
        functions = sbench(
            *("limit", "write", *on, *short, "--block", "0.2s", "--size", "1KiB"),
            *("--over", "number", "--name", "n"),
        )
    for done in (threads, functions):
        assert done.code in {0, 10, 15}, done.err
        assert [row["level"] for row in done.json["rows"]][-1] <= 2
    runs = (sbench.directory / "sbench-runs" / "n").glob("*/run.json")
    jobs = [load_run(path.parent).job for path in runs]
    assert all(one.number == one.concurrency for one in jobs)


def test_an_objective_that_never_holds_ends_with_its_own_code(
    sbench: Sbench, tmp_path: Path
) -> None:
    with loopback("--error", "1", log=tmp_path / "log") as store:
        done = sbench(
            *("limit", "write", "--endpoint-url", store.endpoint_url, "--bucket", store.bucket),
            *(*QUICK, "--retries", "0", "--errors", "1%", "--lowest", "100", "--keep"),
        )
    assert done.code == 14, done.err
    assert "does not hold even at 100 operations per second" in done.out


@uses("feature until_stable")
@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ("there is no objective to hold", ()),
        ("--p99: 'soon' is not a duration", ("--p99", "soon")),
        ("--p99: '-1s' is not a duration", ("--p99", "-1s")),
        ("--block 660 s is longer than --budget 600 s", ("--p99", "1s", "--block", "11min")),
        ("at --lowest 10 no operation starts", ("--p99", "1s", "--block", "99ms")),
        ("No such option '--until-stable'", ("--p99", "1s", "--until-stable", "2%")),
        ("--errors: '2' is not a share", ("--errors", "2")),
        ("--precision: '0' is not a share", ("--p99", "1s", "--precision", "0")),
        ("--lowest 9 is above --highest 8", ("--p99", "1s", "--lowest", "9", "--highest", "8")),
        ("--over threads sets --threads", ("--p99", "1s", "--over", "threads", "--threads", 2)),
        ("write has no --mix", ("--p99", "1s", "--mix", "get=1")),
        ("inline runs one function", ("--p99", "1s", "--over", "number", "--executor", "inline")),
    ],
)
def test_wrong_flags_of_limit_start_no_run(
    call: Call, words: str, arguments: Sequence[str]
) -> None:
    code, out, err = call("limit", "write", *map(str, arguments))
    assert (code, out) == (2, "")
    assert words in err
    assert err.count("\n") == 2
