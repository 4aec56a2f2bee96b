"""Objects that `sbench clean` may delete or must not overlook, and concurrent work on a run."""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from serverless_bench.base.errors import ArchiveError
from serverless_bench.driver import clean
from serverless_bench.driver.boto import open_s3
from serverless_bench.driver.run import run_job
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target
from serverless_bench.rundir.files import locked
from serverless_bench.rundir.run import load_run
from serverless_bench.worker.object_io import ObjectIO
from tests.commands.command import Sbench
from tests.data.runs import forge
from tests.house.members import uses
from tests.stores import servers
from tests.stores.servers import Server, credentials

HEX: Final = "0123456789abcdef" * 2
STRANGERS: Final[Mapping[str, bytes]] = {
    f"lab/{HEX}.20261101/s1/thesis.docx": b"my only thesis",
    f"lab/{HEX}.20261101/zarr.json": b'{"precious":1}',
    f"lab/{HEX}.20261101/c/0/0": b"\x02\x01\x13\x04" + bytes(8) + b"\x20\0\0\0" + bytes(16),
    f"lab/{HEX}.1": b"",
    "lab/plain.txt": b"mine",
}
"""Objects that sbench never wrote, with names and prefixes like those of arrays."""


@pytest.fixture(scope="module")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with servers.moto(tmp_path_factory.mktemp("moto")) as server, credentials(server.environment):
        yield server


@pytest.fixture
def sbench(tmp_path: Path, moto: Server) -> Sbench:
    return Sbench(tmp_path, {**moto.environment, "AWS_ENDPOINT_URL": moto.endpoint_url})


@pytest.fixture
def strangers(moto: Server) -> Iterator[None]:
    """Objects of somebody else's that are as they were when the test is over."""
    s3 = open_s3(Target(bucket=moto.bucket, endpoint_url=moto.endpoint_url, region="us-east-1"))
    for key, body in STRANGERS.items():
        s3.put_object(Bucket=moto.bucket, Key=key, Body=body)
    yield
    for key, body in STRANGERS.items():
        found = s3.get_object(Bucket=moto.bucket, Key=key)["Body"].read()
        assert found == body, f"{key} is not what it was"


def stored(moto: Server, prefix: str) -> list[str]:
    s3 = open_s3(Target(bucket=moto.bucket, endpoint_url=moto.endpoint_url, region="us-east-1"))
    listed = s3.list_objects_v2(Bucket=moto.bucket, Prefix=prefix)
    return [entry["Key"] for entry in listed.get("Contents", ())]


def written(sbench: Sbench, moto: Server, prefix: str, name: str = "w") -> Path:
    done = sbench(
        *("write", "--bucket", moto.bucket, "--prefix", prefix, "--number", 4, "--objects", 2),
        *("--size", "64KiB", "--executor", "inline", "--name", name),
    )
    assert done.code == 0, done
    return sbench.directory / "sbench-runs" / name


@pytest.mark.usefixtures("strangers")
@pytest.mark.parametrize("prefix", ["sbench/", "lab/", ""])
def test_a_replaced_ledger_deletes_no_foreign_object(
    sbench: Sbench, moto: Server, prefix: str
) -> None:
    path = written(sbench, moto, prefix)
    (path / "ledger.txt").write_text("".join(f"{key}\n" for key in STRANGERS))
    done = sbench("clean", path)
    assert done.code == 8
    assert "deleted 8 objects" in done.out
    assert "ledger.txt has 5 keys that the job cannot have made" in done.err
    assert not [key for key in stored(moto, prefix) if key.endswith(".65536")]


@uses("workload array")
@pytest.mark.usefixtures("strangers")
@pytest.mark.parametrize("workload", ["write", "array"])
def test_a_foreign_directory_deletes_no_object_even_with_trust(
    sbench: Sbench, moto: Server, prefix: str, workload: str
) -> None:
    path = written(sbench, moto, prefix)
    header = json.loads((path / "run.json").read_bytes())
    header["origin"] = "00"
    header["job"]["target"]["prefix"] = "lab/"
    if workload == "array":
        array = {"library": "zarr", "shape": [64, 64], "chunks": [64, 64]}
        header["job"] |= {"workload": "array", "load": {**header["job"]["load"], "array": array}}
    # A careful forgery, because otherwise no request would be made.
    forge(path, header)
    (path / "ledger.txt").write_text("".join(f"{key}\n" for key in STRANGERS))
    done = sbench("clean", path)
    assert (done.code, done.out) == (2, "")
    assert "was not made here; it uses http://127.0.0.1" in done.err
    done = sbench("clean", path, "--trust")
    assert done.code == 8
    assert "deleted 0 objects" in done.out
    assert "ledger.txt has 5 keys that the job cannot have made" in done.err


@pytest.mark.parametrize("left", [200, 0, None], ids=["cut", "empty", "missing"])
@pytest.mark.parametrize("command", ["clean", "report", "check", "resume"])
def test_a_ledger_that_was_cut_is_named_and_costs_no_object(
    sbench: Sbench, moto: Server, prefix: str, command: str, left: int | None
) -> None:
    path = written(sbench, moto, prefix)
    ledger = path / "ledger.txt"
    if left is None:
        ledger.unlink()
    else:
        with ledger.open("r+b") as file:
            file.truncate(left)
    done = sbench(command, path)
    assert done.code == 8, done
    whole = (left or 0) // len(f"{prefix}{HEX}.65536\n")
    assert f"ledger.txt has {whole} of the 8 lines that the driver wrote" in done.out + done.err
    assert len(stored(moto, prefix)) == (0 if command == "clean" else 8)


@pytest.mark.parametrize("name", ["keys.txt", "records.jsonl", "run.json"])
def test_every_file_is_compared_with_its_drivers_digest(
    sbench: Sbench, moto: Server, prefix: str, name: str
) -> None:
    path = written(sbench, moto, prefix)
    file = path / name
    data = file.read_bytes()
    # Each changed letter is as valid as the original one, except for the records' hash.
    changed = (
        data.replace(b'"cpus"', b'"CPUS"')
        .replace(b"w0", b"w1")
        .replace(b".65536\n", b".65537\n", 1)
    )
    if name == "records.jsonl":
        changed = data.replace(b'"cold_start":true', b'"cold_start":false', 1)
    assert changed != data
    file.write_bytes(changed)
    for command in ("report", "check"):
        done = sbench(command, path)
        assert done.code == 8, done
        assert f"{name} was changed after the driver wrote it" in done.out + done.err


def test_launches_of_which_no_file_tells_are_found_in_the_store(
    sbench: Sbench, moto: Server, prefix: str
) -> None:
    """The directory is the one from before a second wave: only the store contains that wave."""
    path = written(sbench, moto, prefix)
    earlier = shutil.copytree(path, sbench.directory / "earlier")
    (path / "records.jsonl").write_bytes(b"")
    assert sbench("resume", path).code == 0
    assert len(stored(moto, prefix)) == 16
    done = sbench("clean", earlier)
    assert (done.code, stored(moto, prefix)) == (8, [])
    assert "deleted 16 objects" in done.out
    assert "the files of the run do not mention 8 objects of later launches" in done.err


def test_a_changed_file_gets_no_new_digest(sbench: Sbench, moto: Server, prefix: str) -> None:
    """A resumed command vouches for the lines that it writes, not for those before it."""
    path = written(sbench, moto, prefix)
    with (path / "records.jsonl").open("r+b") as file:
        file.truncate(len(file.readline()))
    with (path / "keys.txt").open("r+b") as file:
        file.truncate(0)
    assert sbench("resume", path).code == 0
    with (path / "ledger.txt").open("r+b") as file:
        file.truncate(0)
    assert "ledger.txt has 0 of the 14 lines" in sbench("report", path).err
    assert sbench("resume", path).code == 8


@pytest.mark.usefixtures("strangers")
def test_resuming_does_not_vouch_for_foreign_keys(
    moto: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver has died; `clean` brings the run to its end first, and so writes a last line."""
    monkeypatch.setattr(clean, "_MARGIN_S", 0.0)
    target = Target(bucket=moto.bucket, endpoint_url=moto.endpoint_url, prefix="lab/")
    given = replace(job(moto.endpoint_url, moto.bucket), target=target)
    given = given.with_options(start_timeout=0.001)
    path = run_job(replace(given, control=replace(target, prefix="c/")), tmp_path / "run").path
    lines = (path / "records.jsonl").read_bytes().splitlines(keepends=True)
    (path / "records.jsonl").write_bytes(lines[0])
    with (path / "ledger.txt").open("a") as ledger:
        ledger.writelines(f"{key}\n" for key in STRANGERS)
    cleaned = clean.clean(path)
    assert load_run(path).ended
    assert (cleaned.deleted.objects, cleaned.complete) == (4, False)


# A run directory is its own


def test_a_directory_with_files_of_a_runs_names_is_left_as_it_is(
    sbench: Sbench, moto: Server
) -> None:
    path = sbench.directory / "sbench-runs" / "w"
    path.mkdir(parents=True)
    for name in ("ledger.txt", "keys.txt", "records.jsonl"):
        (path / name).write_text("precious")
        done = sbench("write", "--bucket", moto.bucket, "--number", 1, "--mb", 1, "--name", "w")
        assert done.code == 8
        assert "already holds files named like those of a run" in done.err
        assert [each.read_text() for each in path.iterdir()] == ["precious"]
        (path / name).unlink()


def test_an_unwritable_run_removes_no_foreign_file(
    sbench: Sbench, moto: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full when the ledger is written, in a directory with a file of somebody's."""
    path = sbench.directory / "results"
    path.mkdir()
    (path / "notes.txt").write_text("precious")
    fsync = os.fsync

    def full(descriptor: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").readlink().name == "ledger.txt":
            raise OSError(28, "No space left on device")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ArchiveError, match="No space left on device"):
        run_job(job(moto.endpoint_url, moto.bucket), path)
    assert [each.name for each in path.iterdir()] == ["notes.txt"]


def test_directories_are_on_the_disk_before_the_first_function(
    tmp_path: Path, moto: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    fsync = os.fsync

    def noted(descriptor: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    before: list[str] = []
    run_job(
        job(moto.endpoint_url, moto.bucket),
        tmp_path / "runs" / "w",
        on_outcome=lambda _: before.extend(synced) if not before else None,
    )
    run = tmp_path / "runs" / "w"
    # The names of files in the run, of the run in its parent, and of the parent in its own.
    assert {str(run), str(run.parent), str(tmp_path), str(run / "ledger.txt")} <= {*before}


# Exclusive work on a run


def job(endpoint_url: str, bucket: str) -> JobSpec:
    target = Target(bucket=bucket, endpoint_url=endpoint_url)
    return JobSpec(workload="write", target=target, executor="inline", number=4, size=100)


def test_clean_locks_the_run_and_records_its_start(
    sbench: Sbench, moto: Server, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(sbench, moto, prefix)
    # A lost function makes the run resumable.
    lines = (path / "records.jsonl").read_bytes().splitlines(keepends=True)
    (path / "records.jsonl").write_bytes(b"".join(lines[1:]))
    delete, seen = ObjectIO.delete, list[tuple[bool, bool]]()

    def looked(store: ObjectIO, name: str, *, etag: str, timeout_s: float) -> None:
        with (path / "records.jsonl").open("ab") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                free = True
            except BlockingIOError:
                free = False
        seen.append((free, load_run(path).cleaning_ns is not None))
        delete(store, name, etag=etag, timeout_s=timeout_s)

    monkeypatch.setattr(ObjectIO, "delete", looked)
    assert "deleted 8 objects" in sbench("clean", path).out
    assert seen == [(False, True)] * 8
    report = sbench("report", path).out.splitlines()[0]
    assert "sbench clean has begun to delete its objects" in report
    for command in (("resume", path), ("read", "--bucket", "b", "--key-file", path / "keys.txt")):
        done = sbench(*command)
        assert done.code == 8
        assert f"the objects of {path} are deleted" in done.err
        assert "; sbench clean" in done.err


def test_a_run_at_work_is_not_cleaned_up(sbench: Sbench, moto: Server, prefix: str) -> None:
    path = written(sbench, moto, prefix)
    with locked(path):
        done = sbench("clean", path)
    assert done.code == 8
    assert "another sbench process uses the run" in done.err
    assert len(stored(moto, prefix)) == 8


def test_clean_deletes_no_object_if_it_cannot_record_its_start(
    sbench: Sbench, moto: Server, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(sbench, moto, prefix)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    done = sbench("clean", path)
    assert done.code == 8
    assert "that deletion starts: No space left on device" in done.err
    assert len(stored(moto, prefix)) == 8
