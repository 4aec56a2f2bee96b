"""Workers and drivers that die: losses are reported, and no process remains."""

import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.commands.command import Apart, Sbench
from tests.commands.processes import PATIENCE_S, Family, until
from tests.house.members import uses
from tests.stores.servers import KEYS, loopback


@pytest.fixture
def alone(tmp_path: Path, family: Family) -> Apart:
    """The command with an embedded store of its own."""
    return Apart(tmp_path, {"SBENCH_STORE_DIR": str(tmp_path / "store"), **family.mark})


@pytest.fixture
def shared(sbench: Sbench, family: Family) -> Apart:
    """The command with the session's store, which is not of this family."""
    return Apart(sbench.directory, {**sbench.environment, **family.mark})


def records(directory: Path) -> int:
    """Count records, without the lines in which the driver says every second that it is active."""
    path = directory / "sbench-runs" / "w" / "records.jsonl"
    return path.read_bytes().count(b'"record":') if path.exists() else 0


LONG = ("write", "--number", "6", "--concurrency", "3", "--mb", "10", "--name", "w")
"""With a store that takes 2 MiB a second on a connection, so that every object needs seconds."""
MANY = ("write", "--number", "400", "--concurrency", "4", "--mb", "8", "--name", "w")


def finished(process: "subprocess.Popen[str]") -> tuple[int, str, str]:
    out, err = process.communicate(timeout=PATIENCE_S)
    assert "Traceback" not in err
    return process.returncode, out, err


def test_a_worker_that_is_killed_costs_one_function(tmp_path: Path, family: Family) -> None:
    shared = Apart(tmp_path, {**KEYS, **family.mark})
    with loopback("--connection-rate", "2MiB", log=tmp_path / "log") as store:
        there = ("--endpoint-url", store.endpoint_url, "--bucket", store.bucket)
        process = shared.start(*LONG, *there, "--format", "json")
        victim = until(family.workers)[0]
        # A worker with a connection is in the middle of an object.
        until(lambda: victim.net_connections("tcp"))
        victim.kill()
        code, out, err = finished(process)
    report = Sbench(shared.directory, {})("report", "sbench-runs/w", "--format", "json").json
    assert code == 6, err
    assert (report["ok"], report["lost"], report["failed"]) == (5, 1, 0)
    assert report["errors"] == {"killed by SIGKILL (by hand, or out of memory)": 1}
    assert report["bytes"] == 5 * 10 << 20
    assert out.count("\n") == 1
    until(family.gone)


def test_a_driver_that_is_killed_leaves_a_report_and_no_process(
    alone: Apart, family: Family
) -> None:
    process = alone.start(*MANY)
    until(lambda: records(alone.directory) >= 3)
    process.kill()
    process.communicate()
    until(family.gone)
    done = alone("report", "sbench-runs/w", "--format", "json")
    report = done.json
    assert done.code == 6
    assert not report["ended"]
    assert report["requested"] == report["ok"] + report["lost"] == 400
    assert report["ok"] >= 3
    first = alone("report", "sbench-runs/w").out.splitlines()[0]
    assert f"{report['lost']} lost" in first
    assert "the driver has not ended this run" in first


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_gives_a_report_of_finished_functions(
    alone: Apart, family: Family, number: signal.Signals
) -> None:
    process = alone.start(*MANY, "--format", "json")
    until(lambda: records(alone.directory) >= 3)
    # A terminal sends Ctrl-C to all processes at once, including the store, which must not end
    # before the driver handles the signal.
    members = [psutil.Process(process.pid)]
    if number == signal.SIGINT:
        members += [member for member in family.members() if member.pid != process.pid]
    for member in members:
        with suppress(ProcessLookupError):  # it ended while we looked
            os.kill(member.pid, number)
    code, out, err = finished(process)
    assert code == 130
    assert "the results so far are saved" in err
    assert "sbench resume w" in err
    assert "sbench clean w" in err
    assert '"lost": ' in out
    until(family.gone)
    report = alone("report", "sbench-runs/w", "--format", "json").json
    assert report["ended"]
    assert report["requested"] == report["ok"] + report["failed"] + report["lost"] == 400


def test_a_fork_server_that_is_killed_ends_the_run_with_a_report(
    shared: Apart, family: Family
) -> None:
    process = shared.start(*MANY, "--format", "json")
    until(lambda: records(shared.directory) >= 3)
    family.members("executors.local_workers")[0].kill()
    code, out, err = finished(process)
    assert code == 4
    assert "the local worker parent died" in err
    assert '"ok": ' in out
    until(family.gone)


def test_a_dead_store_fails_functions_without_a_hang(alone: Apart, family: Family) -> None:
    process = alone.start(*MANY, "--retries", "0", "--format", "json")
    until(lambda: records(alone.directory) >= 3)
    family.members("weed -logdir")[0].kill()
    code, out, err = finished(process)
    assert code == 6, err
    assert '"connection_error": ' in out
    until(family.gone)


def test_a_killed_keeper_ends_its_store(alone: Apart, family: Family) -> None:
    process = alone.start(*MANY, "--retries", "0")
    until(lambda: records(alone.directory) >= 3)
    family.members("stores.keeper")[0].kill()
    until(lambda: not family.members("weed -logdir"))
    code, _, _ = finished(process)
    assert code == 6
    until(family.gone)


def test_an_error_after_the_start_ends_the_store(alone: Apart, family: Family) -> None:
    assert alone("write", "--number", 1, "--mb", 1, "--name", "w").code == 0
    assert alone("write", "--number", 1, "--mb", 1, "--name", "w").code == 8
    assert family.gone()


@uses("executor lithops")
def test_lithops_leaves_no_process_when_the_driver_is_killed(shared: Apart, family: Family) -> None:
    many = [*MANY, "--executor", "lithops", "--number", "100", "--mb", "64"]
    process = shared.start(*many)
    until(lambda: records(shared.directory) >= 1)
    process.kill()
    process.communicate()
    until(family.gone)
