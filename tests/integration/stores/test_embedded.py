"""The embedded store: shared, kept, and stopped when no command uses it."""

import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from serverless_bench.base.errors import INTERRUPTED
from serverless_bench.driver.boto import open_s3
from serverless_bench.job.target import Target
from tests.commands.command import Apart, Done, Sbench
from tests.commands.processes import PATIENCE_S, Family, until
from tests.house.members import uses
from tests.stores.servers import credentials

pytestmark = pytest.mark.on_change(
    "serverless_bench/cli/commands/store.py", "serverless_bench/stores"
)

WEED = "weed -logdir"


@pytest.fixture
def alone(tmp_path: Path, family: Family) -> Apart:
    return Apart(tmp_path, {"SBENCH_STORE_DIR": str(tmp_path / "store"), **family.mark})


def test_data_outlive_the_store(alone: Apart, family: Family) -> None:
    assert alone("write", "--number", 2, "--mb", 1, "--key-file", "k").code == 0
    assert until(family.gone)
    read = alone("read", "--key-file", "k", "--format", "json")
    assert read.json["verified_bytes"] == 2 << 20
    assert until(family.gone)


def test_a_store_can_be_kept(alone: Apart, family: Family) -> None:
    assert alone("store", "status").out.startswith("not running")
    started = alone("store", "start")
    assert started.out.startswith("running at http://127.0.0.1:")
    (weed,) = family.members(WEED)
    assert alone("store", "start").out == started.out
    alone("write", "--number", 1, "--mb", 1)
    assert [process.pid for process in family.members(WEED)] == [weed.pid]
    status = alone("store", "status").out.splitlines()
    assert status[0] == started.out.strip()
    assert str(alone.directory / "store") in status[1]
    assert alone("store", "stop").out == "stopped\n"
    assert until(family.gone)
    assert alone("store", "stop").out == "not running\n"


def test_kept_files_can_be_deleted(alone: Apart, family: Family) -> None:
    assert "nothing to delete" in alone("store", "clear", "--yes").out
    written = alone("write", "--number", 1, "--mb", 1, "--key-file", "k", "--name", "w")
    assert written.code == 0
    unasked = alone("store", "clear")
    assert unasked.code == 2
    assert "stdin is not a terminal" in unasked.err
    assert "--yes" in unasked.err
    assert alone("read", "--key-file", "k", "--format", "json").json["ok"] == 1
    # While it runs, its objects may still be needed.
    alone("store", "start")
    running = alone("store", "clear", "--yes")
    assert (running.code, "sbench store stop" in running.err) == (5, True)
    alone("store", "stop")
    assert until(family.gone)
    beside = alone.directory / "store" / "not-of-the-store"
    beside.write_text("kept")
    cleared = alone("store", "clear", "--yes")
    assert (cleared.code, cleared.out.startswith("deleted ")) == (0, True)
    assert beside.read_text() == "kept"
    assert alone("read", "--key-file", "k", "--format", "json").json["ok"] == 0
    assert "nothing to delete" not in alone("clean", "w").out


def started(alone: Apart) -> "subprocess.Popen[str]":
    """Start a run that outlasts any wait, and return when it has written something."""
    store = alone.directory / "store"
    before = size_of(store)
    endless = ("--number", 1, "--objects", 100, "--size", "16KiB", "--duration", 890)
    process = alone.start("write", *endless, "--format", "json", "--name", "first")
    until(lambda: process.poll() is not None or size_of(store) > before + 10_000)
    assert process.poll() is None, process.communicate()[1]
    return process


def interrupted(process: "subprocess.Popen[str]") -> dict[str, Any]:
    """Interrupt a run, and return its report."""
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == INTERRUPTED, err
    return Done(INTERRUPTED, out, err).json


@uses("feature page")
def test_concurrent_commands_share_a_store_and_report_it(alone: Apart, family: Family) -> None:
    here = Sbench(alone.directory, alone.environment)
    first = started(alone)
    (weed,) = until(lambda: family.members(WEED))
    assert here("store", "status").out.startswith("running at ")
    second = here("write", "--number", 1, "--mb", 1, "--format", "json", "--name", "second")
    assert second.json["ok"] == 1
    assert weed.is_running()
    text = "1 other command loaded the embedded store for "
    for name, report in (("first", interrupted(first)), ("second", second.json)):
        assert report["neighbours"]["commands"] == 1
        # The second one ran within the first one's time; `store status` causes no load.
        assert report["neighbours"]["shared_s"] == second.json["neighbours"]["shared_s"] > 0
        assert text in here("report", name).out
        assert text in here("report", name, "--format", "html").out
        assert text in here("check", name).out
    # In the line about the bottleneck, which may be wrapped.
    assert "store shared with 1 other command" in " ".join(here("report", "second").out.split())
    assert until(family.gone)


def test_a_store_that_cannot_be_looked_through_costs_no_command(
    alone: Apart, family: Family
) -> None:
    here = Sbench(alone.directory, alone.environment)
    old = here("write", "--number", 1, "--mb", 1, "--name", "old", "--format", "json")
    assert "neighbours" not in old.json
    first = started(alone)
    (weed,) = until(lambda: family.members(WEED))
    for name, leads in (("zy.dat", "zy.dat"), ("zz.dat", "nowhere")):
        (alone.directory / "store" / "data" / name).symlink_to(leads)
    cleaned = here("clean", "old")
    assert (cleaned.code, "deleted 1 object" in cleaned.out) == (0, True), cleaned.err
    assert [process.pid for process in family.members(WEED)] == [weed.pid]
    # Deleting is work for the store, too.
    assert interrupted(first)["neighbours"]["commands"] == 1
    assert (
        "Too many levels of symbolic links"
        in (alone.directory / "store" / "keeper.log").read_text()
    )


def test_other_tools_can_use_it(alone: Apart) -> None:
    started = alone("store", "start").out
    lines = alone("store", "status", "--env").out.splitlines()
    # Everything that it prints exists, including the bucket.
    url, bucket = re.fullmatch("running at (.*), bucket (.*)\n", started).groups()  # type: ignore[union-attr]
    text = dict(line.removeprefix("export ").split("=", 1) for line in lines)
    with credentials(text):
        s3 = open_s3(Target(bucket=bucket, endpoint_url=url))
        assert not s3.list_objects_v2(Bucket=bucket)["KeyCount"]
    alone("store", "stop")
    assert [line.partition("=")[0] for line in lines] == [
        "export AWS_ENDPOINT_URL",
        "export AWS_ACCESS_KEY_ID",
        "export AWS_SECRET_ACCESS_KEY",
    ]


def test_credentials_stand_in_no_file(alone: Apart) -> None:
    alone("store", "start")
    lines = alone("store", "status", "--env").out.splitlines()
    secret = lines[2].partition("=")[2]
    alone("write", "--number", 1, "--mb", 1, "--format", "json")
    alone("store", "stop")
    # The store's own files may contain its credentials; those of sbench may not.
    for path in (alone.directory / "sbench-runs").rglob("*"):
        assert path.is_dir() or secret.encode() not in path.read_bytes()
    for name in ("keeper.log", "lock"):
        assert secret.encode() not in (alone.directory / "store" / name).read_bytes()


def test_cleaning_gives_the_space_back(alone: Apart) -> None:
    alone("store", "start")
    alone("write", "--number", 4, "--mb", 16, "--name", "w")
    before = size_of(alone.directory / "store")
    alone("clean", "sbench-runs/w")
    after = size_of(alone.directory / "store")
    alone("store", "stop")
    assert before > 60 << 20
    assert after < 10 << 20


def size_of(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*.dat"))
