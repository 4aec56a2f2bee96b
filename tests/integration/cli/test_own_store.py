"""A user's own store, from an empty store to a verified read in two commands."""

import json
import shutil
from pathlib import Path

import pytest

from serverless_bench.driver.origin import is_ours
from serverless_bench.rundir import run
from serverless_bench.rundir.run import load_run
from tests.commands.command import Sbench
from tests.house.members import uses
from tests.stores.servers import Server

SMALL = ("--number", 2, "--mb", 1, "--executor", "inline")


@pytest.fixture(params=["moto", "rclone"])
def own(request: pytest.FixtureRequest) -> Server:
    server: Server = request.getfixturevalue(request.param)
    return server


def test_a_bucket_is_made_and_read_back_in_two_commands(own: Server, tmp_path: Path) -> None:
    sbench = Sbench(tmp_path, own.environment)
    where = ("--endpoint-url", own.endpoint_url, "--bucket", "first-day")
    refused = sbench("write", *where, *SMALL)
    assert refused.code != 0
    assert "--create-bucket creates it" in refused.err
    written = sbench("write", *where, *SMALL, "--create-bucket", "--name", "w")
    assert written.code == 0, written.err
    # An existing bucket is not an error.
    assert sbench("write", *where, *SMALL, "--create-bucket", "--name", "v").code == 0
    read = sbench("read", "--executor", "inline", "--format", "json", "--name", "r")
    assert read.code == 0, read.err
    assert "reading the objects of sbench-runs/v" in read.err
    assert read.json["verified_bytes"] == read.json["bytes"] == 2 << 20
    assert read.json["store"].startswith("first-day at ")
    named = sbench("read", "--executor", "inline", "--format", "json", "--from", "w")
    assert named.json["verified_bytes"] == 2 << 20, named.err
    keys = [(tmp_path / "sbench-runs" / name / "keys.txt").read_text() for name in "vrw"]
    assert keys[0] == keys[1] != keys[2]


def test_a_cleaned_run_is_not_read(own: Server, tmp_path: Path) -> None:
    sbench = Sbench(tmp_path, own.environment)
    where = ("--endpoint-url", own.endpoint_url, "--bucket", own.bucket)
    for name in ("first", "second"):
        assert sbench("write", *where, *SMALL, "--name", name).code == 0
    assert sbench("clean", "second").code == 0
    read = sbench("read", "--executor", "inline")
    assert "reading the objects of sbench-runs/first" in read.err
    assert read.code == 0
    assert sbench("read", "--from", "second", "--executor", "inline").code != 0


def test_the_records_of_other_runs_are_not_read_to_find_a_write(
    moto: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sbench = Sbench(tmp_path, moto.environment)
    where = ("--endpoint-url", moto.endpoint_url, "--bucket", moto.bucket)
    assert sbench("write", *where, *SMALL, "--name", "w").code == 0
    for name in ("r", "s"):
        assert sbench("read", "--executor", "inline", "--name", name).code == 0
    loaded = []

    def load(path: Path, *, detail: bool) -> run.Run:
        loaded.append(path.name)
        return load_run(path, detail=detail)

    monkeypatch.setattr(run, "load_run", load)
    assert sbench("read", "--executor", "inline", "--name", "t").code == 0
    assert loaded == ["w"]


def test_another_ones_run_needs_trust(moto: Server, tmp_path: Path) -> None:
    sbench = Sbench(tmp_path, moto.environment)
    where = ("--endpoint-url", moto.endpoint_url, "--bucket", moto.bucket)
    assert sbench("write", *where, *SMALL, "--name", "mine").code == 0
    shutil.copytree(tmp_path / "sbench-runs" / "mine", tmp_path / "theirs")
    header = tmp_path / "theirs" / "run.json"
    header.write_text(json.dumps({**json.loads(header.read_text()), "seal": "another's"}))
    assert not is_ours(tmp_path / "theirs")
    refused = sbench("read", "--from", "theirs", "--executor", "inline")
    assert refused.code == 2
    assert "was not made here" in refused.err
    # Trust does not extend to a header that its driver did not write.
    trusted = sbench("read", "--from", "theirs", "--trust", "--executor", "inline")
    assert trusted.code == 8
    assert "is not as its driver wrote it" in trusted.err


@uses("client obstore")
@pytest.mark.parametrize(
    "where", [("--bucket", "b"), ("--bucket", "az://b", "--client", "obstore"), ()]
)
def test_a_bucket_is_made_on_a_store_of_ones_own_alone(
    sbench: Sbench, where: tuple[str, ...]
) -> None:
    done = sbench("write", *where, *SMALL, "--create-bucket")
    assert done.code == 2
    assert "--create-bucket needs the --endpoint-url of an S3-compatible store" in done.err


def test_a_read_without_objects_says_how_to_make_them(sbench: Sbench) -> None:
    done = sbench("read")
    assert done.code == 2
    assert "with the objects to read" in done.err


@uses("feature cost")
@pytest.mark.parametrize("command", ["mixed", "conditional"])
def test_jobs_without_an_end_run_for_a_while(sbench: Sbench, command: str) -> None:
    planned = sbench("plan", command, "--format", "json")
    assert planned.code == 0, planned.err
    done = sbench(
        command, "--executor", "inline", "--number", 1, SBENCH_NAME="r", SBENCH_DURATION="0.2"
    )
    assert done.code == 0, done.err
    header = json.loads((sbench.directory / "sbench-runs" / "r" / "run.json").read_text())
    assert header["job"]["duration"] == 0.2
