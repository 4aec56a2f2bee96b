"""``sbench qualify`` on stores: its output, its exit codes, and that it leaves nothing."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.commands.command import Sbench
from tests.stores.servers import DIRECT, KEYS, Server, loopback


@pytest.fixture
def sbench(tmp_path: Path) -> Sbench:
    return Sbench(tmp_path, KEYS)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with loopback("--strict", log=tmp_path / "serve.log") as server:
        yield server


def statistics(server: Server) -> dict[str, Any]:
    with DIRECT.open(f"{server.endpoint_url}/-/statistics") as answer:
        found: dict[str, Any] = json.load(answer)
    return found


def test_a_store_is_checked_over_several_endpoints(sbench: Sbench, server: Server) -> None:
    urls = f"{server.endpoint_url},{server.endpoint_url.replace('127.0.0.1', 'localhost')}"
    few = ("--for", "ranges,create-put,list-new", "--budget", "5min", "--name", "q")
    done = sbench("qualify", "any", "--endpoint-url", urls, *few, "--format", "json")
    assert done.code == 0, done.out
    document = json.loads(done.out)
    assert document["endpoints"] == urls.split(",")
    assert {row["guarantee"]: row["verdict"] for row in document["guarantees"]} == dict.fromkeys(
        ("create-put", "list-new", "ranges"), "safe"
    )
    assert [row["tries"] for row in document["guarantees"]] == [200, 20, 10]
    assert document["guarantees"][0]["at_most"] == 3 / 200
    seen = statistics(server)
    assert seen["objects"] == document["left"] == 0
    assert seen["requests"]["put"] == document["requests"]["PUT"]
    # Only the keys of the ledger were written, and deleted.
    keys = (sbench.directory / "sbench-runs/q/keys.jsonl").read_text().splitlines()
    assert len({*keys}) == len(keys) == seen["requests"]["delete"]
    assert all(json.loads(key).startswith("sbench/q/") for key in keys)
    assert json.loads(sbench("report", "q", "--format", "json").out) == document
    assert "3 safe" in sbench("ls").out
    again = sbench("qualify", "any", "--endpoint-url", urls, "--name", "q")
    assert (again.code, again.err.splitlines()[0]) == (2, "sbench: sbench-runs/q exists")


def test_a_broken_guarantee_is_shown_with_its_requests(sbench: Sbench, tmp_path: Path) -> None:
    with loopback("--delete-ignored", "1", log=tmp_path / "log") as server:
        done = sbench(
            *("qualify", "any", "--endpoint-url", server.endpoint_url),
            *("--for", "read-deleted,clock"),
        )
    assert done.code == 13
    lines = done.out.splitlines()
    assert "1 safe, 1 unsafe; 8 functions, 1 endpoint" in lines
    assert any(line.startswith("read-deleted is unsafe: a GET after") for line in lines)
    assert any("DELETE /any/sbench/" in line and "-> 204" in line for line in lines)


def test_lost_answers_and_refusals_of_the_store_are_no_broken_guarantees(
    sbench: Sbench, tmp_path: Path
) -> None:
    faults = ("--lost-answer", "0.02", "--list-error", "0.02", "--delete-error", "0.02")
    with loopback(*faults, log=tmp_path / "log") as server:
        where = ("any", "--endpoint-url", server.endpoint_url)
        few = ("--for", "create-put,replace-put,lost-create,list-new,copy,list-stable")
        done = sbench("qualify", *where, *few, "--budget", "5min", "--format", "json")
        seen = statistics(server)
    verdicts = {row["verdict"] for row in json.loads(done.out)["guarantees"]}
    assert "unsafe" not in verdicts, done.out
    assert seen["objects"] == 0
    assert {"lost-answer", "list-error", "delete-error"} <= seen["faults"].keys()


def test_without_time_nothing_is_known(sbench: Sbench, server: Server) -> None:
    where = ("any", "--endpoint-url", server.endpoint_url, "--for", "clock,ranges")
    done = sbench("qualify", *where, "--budget", "0s")
    assert done.code == 10
    assert "2 unknown; 8 functions, 1 endpoint" in done.out.splitlines()


@pytest.mark.parametrize(
    ("flags", "code", "line"),
    [
        (("any", "--for", "range"), 2, "there is no guarantee or program 'range'"),
        (("az://any",), 2, "qualify sends requests of S3, not of az://"),
        (("any", "--functions", "3"), 2, "--functions: 3 is not in the range 4<=x<=64"),
    ],
)
def test_bad_input_is_one_line(
    sbench: Sbench, flags: tuple[str, ...], code: int, line: str
) -> None:
    done = sbench("qualify", *flags)
    assert (done.code, done.out) == (code, "")
    assert line in done.err.splitlines()[0]


def test_an_interrupted_check_leaves_no_object(sbench: Sbench, tmp_path: Path) -> None:
    with loopback("--latency", "fixed:5ms", log=tmp_path / "log") as server:
        process = sbench.apart.start(
            *("qualify", "any", "--endpoint-url", server.endpoint_url, "--budget", "5min")
        )
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
        assert process.returncode == 130, out + err
        seen = statistics(server)
    assert seen["requests"]["put"] > 0
    assert seen["objects"] == 0
