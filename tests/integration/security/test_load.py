"""Signals, closed streams, full disks, few files: a line or a report, and no process remains."""

import os
import shlex
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import orjson
import psutil
import pytest

from serverless_bench.base.errors import INTERRUPTED, OUTPUT_UNREAD
from serverless_bench.driver.boto import open_s3
from serverless_bench.features.loopback.server import LoopbackServer, serving
from serverless_bench.features.loopback.shaping import Shape
from serverless_bench.features.loopback.state import LoopbackSettings
from serverless_bench.job.target import Target
from serverless_bench.rundir.run import load_run
from tests.commands.command import COMMAND, Apart, Done, Sbench
from tests.commands.processes import PATIENCE_S, Family, until
from tests.stores.servers import KEYS, credentials

BUCKET = "any"
STOPPED_S = 20


@pytest.fixture
def store() -> Iterator[LoopbackServer]:
    """A slow store, so that requests are always in flight."""
    with serving(LoopbackSettings(strict=True, shape=Shape(latency="fixed:20ms"))) as server:
        yield server


@pytest.fixture
def here(tmp_path: Path, family: Family) -> Apart:
    return Apart(tmp_path, {**KEYS, **family.mark})


def written(store: LoopbackServer) -> set[str]:
    """Return the keys of all objects that are in the store."""
    with credentials(KEYS):
        target = Target(bucket=BUCKET, endpoint_url=store.endpoint_url)
        with closing(open_s3(target)) as s3:
            pages = s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
            return {entry["Key"] for page in pages for entry in page.get("Contents", ())}


def job(store: LoopbackServer, executor: str, *flags: str | int) -> list[str]:
    return [
        *("write", "--executor", executor, "--endpoint-url", store.endpoint_url),
        *("--bucket", BUCKET, "--size", "1KiB", "--name", "w", "--format", "json"),
        *map(str, flags),
    ]


def shell(here: Apart, script: str, *arguments: str, **environment: str | None) -> Done:
    """Run a script of bash in which "$@" is the command."""
    variables = {**os.environ, **here.environment, **environment}
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", script, "bash", *COMMAND, *arguments],
        cwd=here.directory,
        env={name: value for name, value in variables.items() if value is not None},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert "this is a bug" not in done.stderr, done.stderr
    return Done(done.returncode, done.stdout, done.stderr)


def holds(report: dict[str, Any]) -> dict[str, Any]:
    assert report["requested"] == report["ok"] + report["failed"] + report["lost"]
    return report


# Signals


def running(here: Apart, store: LoopbackServer, executor: str) -> "subprocess.Popen[str]":
    """Start a run of many functions, and return when some have returned."""
    process = here.start(*job(store, executor, "--number", 2000, "--concurrency", 2))
    records = here.directory / "sbench-runs" / "w" / "records.jsonl"
    until(lambda: records.exists() and records.read_bytes().count(b"\n") > 2)
    return process


TWICE = [
    (signal.SIGTERM, signal.SIGTERM),
    (signal.SIGTERM, signal.SIGINT),
    (signal.SIGHUP, signal.SIGTERM, signal.SIGHUP),
]


@pytest.mark.parametrize(
    ("executor", "numbers"),
    [("local", TWICE[0]), ("inline", TWICE[1]), ("local", TWICE[2])],
    ids=lambda value: value if isinstance(value, str) else "+".join(each.name for each in value),
)
def test_a_second_signal_costs_no_report(
    here: Apart,
    store: LoopbackServer,
    family: Family,
    executor: str,
    numbers: tuple[signal.Signals, ...],
) -> None:
    process = running(here, store, executor)
    for number in numbers:
        process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == INTERRUPTED, err
    assert "; the results so far are saved" in err
    report = holds(Done(INTERRUPTED, out, err).json)
    assert report["ended"]
    assert report["ok"] > 0
    assert report["lost"] > 0
    until(family.gone)
    assert written(store) <= set(load_run(here.directory / "sbench-runs" / "w").ledger())


def test_a_run_below_nohup_ignores_sighup(here: Apart, store: LoopbackServer) -> None:
    command = shlex.join([*COMMAND, *job(store, "inline", "--number", 40)])
    process = subprocess.Popen(
        ["bash", "-c", f"trap '' HUP; exec {command}"],
        cwd=here.directory,
        env={**os.environ, **here.environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    records = here.directory / "sbench-runs" / "w" / "records.jsonl"
    until(lambda: records.exists() and records.read_bytes().count(b"\n") > 2)
    process.send_signal(signal.SIGHUP)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    assert Done(0, out, err).json["ok"] == 40


# Streams


@pytest.fixture
def run(here: Apart, store: LoopbackServer) -> Path:
    done = Sbench(here.directory, KEYS)(*job(store, "inline", "--number", 2))
    assert done.code == 0, done.err
    return here.directory / "sbench-runs" / "w"


# Printed by the standard library, by click, and by Rich.
@pytest.mark.parametrize("command", ["export", "ls", "--help", "plan"])
def test_closed_output_has_its_exit_code(here: Apart, run: Path, command: str) -> None:
    flags = {"export": ("w", "--format", "csv"), "plan": ("write", "--number", "20")}.get(
        command, ()
    )
    done = shell(here, '"$@" | true', command, *flags)
    assert (done.code, done.err) == (OUTPUT_UNREAD, "")


@pytest.mark.parametrize(
    ("command", "script"),
    [
        ("ls", '"$@" > /dev/full'),
        ("export w --format csv", '"$@" > /dev/full'),
        ("plan write --number 20", '"$@" > /dev/full'),
        ("resume w", '"$@" > /dev/full'),
        ("export w --format csv", '"$@" --output /dev/full'),
    ],
)
def test_output_that_does_not_fit_is_one_line(
    here: Apart, run: Path, command: str, script: str
) -> None:
    done = shell(here, script, *command.split())
    assert done.code == 8
    assert "cannot write" in done.err
    assert "No space left on device" in done.err


def test_closed_streams_end_up_in_no_file_of_the_run(
    here: Apart, store: LoopbackServer, family: Family
) -> None:
    done = shell(here, '"$@" <&- >&- 2>&-', *job(store, "local", "--number", 3))
    assert done == Done(0, "", "")
    path = here.directory / "sbench-runs" / "w"
    lines = (path / "records.jsonl").read_bytes().splitlines()
    assert [next(iter(orjson.loads(line))) for line in lines][-1] == "end"
    assert load_run(path).skipped_lines == 0
    until(family.gone)


def test_a_command_without_standard_error_works(here: Apart, store: LoopbackServer) -> None:
    assert shell(here, '"$@" 2> /dev/full', *job(store, "inline", "--number", 3)).json["ok"] == 3
    assert shell(here, '"$@" 2> /dev/full', "report", "nowhere").code == 8


# Disks


@pytest.mark.parametrize("kib", [1, 3, 5, 20])
def test_a_full_disk_ends_with_no_object_that_no_ledger_lists(
    here: Apart, store: LoopbackServer, kib: int
) -> None:
    """Full within the ledger, in ``run.json``, in the first records, and in later ones."""
    flags = ("--number", 20, "--objects", 2, "--prefix", "p/" * 30)
    # Python would keep compiled modules that it could not write whole (gh-126606).
    script = f'export PYTHONDONTWRITEBYTECODE=1; ulimit -f {kib}; exec "$@"'
    done = shell(here, script, *job(store, "inline", *flags))
    assert done.code == 8, done.err
    assert done.err.count("sbench: ") == 1
    path = here.directory / "sbench-runs" / "w"
    if not done.out:
        assert "cannot write the run directory" in done.err
        assert written(store) == set()
        assert list(path.iterdir()) == [], "its name is free"
        return
    assert "the disk is full" in done.err
    assert done.json["ok"] == done.json["requested"] == 20
    found = load_run(path)
    assert written(store) == set(found.ledger())
    saved = found.functions["status"].astype(str).tolist()
    assert f"{20 - saved.count('ok')} records are not saved" in done.err
    resumed = Sbench(here.directory, KEYS)("resume", "w", "--format", "json")
    assert (resumed.code, resumed.json["ok"]) == (0, 20)
    cleaned = Sbench(here.directory, KEYS)("clean", "w", "--yes")
    assert (cleaned.code, written(store)) == (0, set())


@pytest.mark.parametrize("flag", ["--key-file", "--pickle"])
def test_a_file_beside_the_run_that_does_not_fit_costs_only_itself(
    here: Apart, store: LoopbackServer, flag: str
) -> None:
    flags = ("--number", 2, flag, "/dev/full")
    done = Sbench(here.directory, KEYS)(*job(store, "inline", *flags))
    assert done.code == 8
    assert done.err.splitlines()[-2].endswith(": No space left on device")
    assert done.json["ok"] == 2
    assert load_run(here.directory / "sbench-runs" / "w").ended


# Files, memory, places


@pytest.mark.parametrize(
    ("executor", "flags", "needed"),
    [
        ("local", ("--number", 8, "--threads", 4, "--objects", 4), None),
        ("local", ("--number", 200, "--concurrency", 200), 232),
        ("local", ("--number", 2, "--threads", 20, "--connections", 5, "--part-size", "8MiB"), 132),
        ("inline", ("--number", 2, "--threads", 100), 132),
    ],
)
def test_64_open_files_are_enough_or_too_few(
    here: Apart,
    store: LoopbackServer,
    family: Family,
    executor: str,
    flags: tuple[str | int, ...],
    needed: int | None,
) -> None:
    done = shell(here, 'ulimit -n 64; exec "$@"', *job(store, executor, *flags))
    if needed is None:
        assert (done.code, done.json["ok"]) == (0, 8), done.err
    else:
        assert done.code == 4
        assert f"sbench: {needed} open files are needed, but only 64 are allowed" in done.err
    until(family.gone)


@pytest.mark.parametrize(
    "environment",
    [
        {"HOME": None},
        {"HOME": "/proc/nowhere"},
        {"TMPDIR": "/proc/nowhere"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
    ids=["no home", "a home that is none", "no temporary directory", "ASCII"],
)
def test_a_poor_environment_is_enough(
    here: Apart, store: LoopbackServer, environment: dict[str, str | None]
) -> None:
    done = shell(here, 'exec "$@"', *job(store, "local", "--number", 2), **environment)
    assert (done.code, done.json["ok"]) == (0, 2), done.err


def test_a_terminal_without_our_letters_shows_the_report(
    here: Apart, store: LoopbackServer
) -> None:
    flags = ("--number", 2, "--prefix", "schlüssel/")
    assert Sbench(here.directory, KEYS)(*job(store, "inline", *flags)).code == 0
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    response = shell(here, 'exec "$@"', "export", "w", "--format", "csv", **ascii_only)
    assert response.code == 0, response.err
    response = shell(here, 'exec "$@"', "clean", "w", "--yes", **ascii_only)
    assert response.code == 0, response.err


def test_a_place_that_is_gone_is_one_line(here: Apart, store: LoopbackServer) -> None:
    script = 'mkdir gone; cd gone; rmdir ../gone; exec "$@"'
    done = shell(here, script, *job(store, "local", "--number", 2))
    assert done.code == 8
    assert done.err.count("sbench: ") == 1
    assert "cannot write the run directory sbench-runs/w" in done.err
    assert written(store) == set()


# Many


def many(here: Apart, store: LoopbackServer, number: int) -> None:
    done = here(*job(store, "local", "--number", number, "--concurrency", 16))
    assert done.code == 0, done.err
    assert holds(done.json)["ok"] == number
    assert len(written(store)) == number


def test_a_thousand_tiny_functions(here: Apart, family: Family) -> None:
    with serving(LoopbackSettings(strict=True)) as store:
        many(here, store, 1_000)
    until(family.gone)


@pytest.mark.full
def test_a_hundred_thousand_tiny_functions(here: Apart, family: Family) -> None:
    with serving(LoopbackSettings(strict=True)) as store:
        many(here, store, 100_000)
    until(family.gone)


# Stopped, and continued later


def the_driver(family: Family) -> psutil.Process:
    return family.members("serverless_bench write")[0]


def the_fork_server(family: Family) -> psutil.Process:
    return family.members("executors.local_workers")[0]


def a_worker(family: Family) -> psutil.Process:
    return family.workers()[0]


@pytest.mark.full
@pytest.mark.parametrize(
    ("stopped", "lost"), [(the_driver, 0), (the_fork_server, 0), (a_worker, 1)]
)
def test_functions_survive_a_stop_of_20_s(
    here: Apart,
    store: LoopbackServer,
    family: Family,
    stopped: Callable[[Family], psutil.Process],
    lost: int,
) -> None:
    """Only functions stopped beyond their own deadline are lost, and reported."""
    flags = ("--number", 4, "--concurrency", 4, "--duration", 3, "--deadline", 8)
    process = here.start(*job(store, "local", *flags))
    until(lambda: len(family.workers()) == 4 and family.workers()[0].net_connections("tcp"))
    victim = stopped(family)
    victim.suspend()
    threading.Event().wait(STOPPED_S)
    with suppress(psutil.NoSuchProcess):  # the driver has ended it for its silence
        victim.resume()
    out, err = process.communicate(timeout=PATIENCE_S)
    report = holds(Done(process.returncode, out, err).json)
    assert (process.returncode, report["lost"]) == (6 if lost else 0, lost), err
    assert report["withheld"] == []
    until(family.gone)
