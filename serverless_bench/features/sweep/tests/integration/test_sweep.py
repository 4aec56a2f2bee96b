"""A sweep measures each combination, deletes its objects, and can be resumed and shown again."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.commands.command import Sbench
from tests.house.members import uses
from tests.stores.servers import DIRECT, Server, loopback

CELLS = ("--in-flight", "1,4", "--budget", "20s", "--name", "s")


@pytest.fixture
def late(tmp_path: Path) -> Iterator[Server]:
    with loopback("--latency", "fixed:10ms", log=tmp_path / "serve.log") as server:
        yield server


@uses("workload read")
def test_each_combination_is_measured_and_shown_again(sbench: Sbench) -> None:
    done = sbench("sweep", "--size", "64KiB", *CELLS, "--format", "json")
    document = json.loads(done.out)
    rows = document["rows"]
    assert [(row["at"]["job"], row["at"]["in_flight"]) for row in rows] == [
        (job, n) for job in ("write", "read") for n in (1, 4)
    ]
    assert all(row["functions"] * row["threads"] == row["at"]["in_flight"] for row in rows)
    assert all(row["runs"] >= 1 and row["ops_per_s"] > 0 and row["p50_s"] > 0 for row in rows)
    assert document["complete"]
    assert len(document["knees"]) == 2
    assert "sweep" in sbench("ls").out
    again = sbench("report", "s").out
    assert "knee of read 64KiB: " in again
    assert json.loads(sbench("report", "s", "--format", "json").out) == document
    assert sbench("plot", "s").out == "plot: sbench-runs/s/plot.png\n"
    # Nothing is left to run, so that nothing runs.
    resumed = sbench("sweep", "--resume", "s", "--format", "json")
    assert json.loads(resumed.out) == document


def test_a_sweep_that_does_not_exist_is_not_resumed(sbench: Sbench) -> None:
    done = sbench("sweep", "--resume", "nosuch")
    assert (done.code, done.err.splitlines()[0]) == (2, "sbench: there is no series 'nosuch'")


@pytest.mark.parametrize("flags", [("--set", "client=nosuch"), ("--axis", "client=wire,nosuch")])
def test_an_unknown_client_is_rejected_before_a_run(sbench: Sbench, flags: tuple[str, ...]) -> None:
    done = sbench("sweep", "write", "--size", "4KiB", *CELLS, *flags)
    assert (done.code, done.err.splitlines()[0]) == (3, "sbench: unknown client 'nosuch'")
    assert not (sbench.directory / "sbench-runs").exists()


def test_a_study_is_not_resumed_as_a_sweep(sbench: Sbench) -> None:
    only = ("--only", "workers=1", "--repeats", "1", "--run-duration", "0.1", "--name", "study")
    assert sbench("study", "run", "pywren-scaling", *only).code in {0, 6}
    done = sbench("sweep", "--resume", "study")
    assert done.code == 2
    assert done.err.splitlines() == [
        "sbench: sbench-runs/study is no sweep",
        "hint: sbench study run --resume sbench-runs/study",
    ]


def test_a_sweep_of_another_user_is_resumed_if_the_user_trusts_it(sbench: Sbench) -> None:
    assert sbench("sweep", "write", "--size", "4KiB", *CELLS).code == 0
    state = sbench.directory / "sbench-runs/s/study.json"
    state.write_text(json.dumps({**json.loads(state.read_text()), "seed": 5}))
    refused = sbench("sweep", "--resume", "s")
    assert (refused.code, "--trust" in refused.err) == (2, True), refused.err
    assert sbench("sweep", "--resume", "s", "--trust").code == 0


def test_an_interrupted_sweep_is_resumed_and_leaves_no_object(sbench: Sbench, late: Server) -> None:
    where = ("--endpoint-url", late.endpoint_url, "--bucket", "b")
    process = sbench.apart.start("sweep", "write", "--size", "4KiB,64KiB", *CELLS, *where)
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("run 2 "):
            process.send_signal(signal.SIGINT)
            break
    out, err = process.communicate()
    assert process.returncode == 130, out + err
    assert "sbench sweep --resume sbench-runs/s" in err
    before = [*(sbench.directory / "sbench-runs/s/cells").glob("*/*/run.json")]
    done = sbench("sweep", "--resume", "s", "--format", "json")
    assert done.code == 0
    assert {row["runs"] >= 1 for row in done.json["rows"]} == {True}
    after = [*(sbench.directory / "sbench-runs/s/cells").glob("*/*/run.json")]
    assert len(after) > len(before) >= 2
    with DIRECT.open(f"{late.endpoint_url}/-/statistics") as answer:
        assert json.load(answer)["objects"] == 0


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("list",), "sweep runs no job 'list'"),
        (("--size", "4KiB,huge"), "huge"),
        (("--in-flight", "1,x"), "'1,x' are not whole numbers"),
        (("--in-flight", "0"), "must be at least 1, got 0"),
        (("--set", "number=4"), "sweep sets number itself"),
        (("--axis", "client"), "--axis: 'client' is not AXIS=VALUE"),
        (("--axis", "nosuch=1"), "nosuch"),
        (("--axis", "threads=1,2"), "sweep sets threads itself"),
        (("--budget", "1s"), "24 cells need 115 s"),
    ],
)
def test_wrong_flags_are_named(sbench: Sbench, flags: tuple[str, ...], words: str) -> None:
    done = sbench("sweep", *flags)
    assert done.code == 2, done.err
    assert words in done.err.replace("\n", " ")


@pytest.mark.full
@pytest.mark.timing
@uses("workload read")
def test_rates_and_knees_are_those_of_a_store_with_a_known_limit(sbench: Sbench) -> None:
    """By Little's law n requests in flight that take 40 ms are n / 40 ms requests a second."""
    store = ("store=loopback", "serve.latency=fixed:40ms", "serve.put_limit=100")
    shape = [word for setting in store for word in ("--set", setting)]
    flags = ("--size", "4KiB", "--in-flight", "1,2,4,16", "--budget", "100s", "--format", "json")
    document = sbench("sweep", *flags, *shape).json
    for row in document["rows"]:
        number = row["at"]["in_flight"]
        if row["at"]["job"] == "read" or number <= 2:
            assert row["ops_per_s"] == pytest.approx(number / 0.0405, rel=0.1), row
    knees = {knee["at"]["job"]: knee["in_flight"] for knee in document["knees"]}
    assert knees["read"] == 16
    assert knees["write"] in {4, 16}
