"""The main job, as a user runs it, against the embedded store."""

import pickle
import tomllib
from pathlib import Path

import pytest

from serverless_bench.cli.main import command_names
from serverless_bench.clients import CLIENTS
from serverless_bench.driver.boto import open_s3
from serverless_bench.job.target import Target
from tests.commands.command import Sbench
from tests.house.members import uses
from tests.stores.servers import Server, credentials

MIB = 1 << 20


def test_write_then_read_in_another_process(sbench: Sbench) -> None:
    written = sbench(
        "write", "--number", 6, "--mb", 4, "--key-file", "keys.txt", "--format", "json"
    )
    read = sbench("read", "--key-file", "keys.txt", "--format", "json")
    assert (written.code, read.code) == (0, 0), written.err + read.err
    for done in (written.json, read.json):
        assert done["requested"] == done["ok"] == 6
        assert done["failed"] == done["lost"] == done["duplicate"] == 0
        assert done["bytes"] == 6 * 4 * MIB
    assert read.json["verified_bytes"] == read.json["bytes"]
    assert read.json["corrupt_objects"] == 0
    assert len((sbench.directory / "keys.txt").read_text().splitlines()) == 6


def test_the_run_directory_is_named_first(sbench: Sbench) -> None:
    done = sbench("write", "--number", 1, "--mb", 1, "--name", "mine", "--run-dir", "here")
    assert done.out.splitlines()[0] == "run directory: here/mine"
    assert (sbench.directory / "here" / "mine" / "records.jsonl").exists()
    assert done.err == ""


IN_CI = (("wire", "local"), ("boto3", "local"), ("wire", "inline"), ("wire", "lithops"))
"""The contract suites have every client and every executor; here they meet."""


@pytest.mark.parametrize(
    ("client", "executor"),
    [
        pytest.param(
            client, executor, marks=() if (client, executor) in IN_CI else pytest.mark.full
        )
        for client in CLIENTS
        for executor in ("inline", "local", "lithops")
    ],
)
def test_clients_run_in_executors(sbench: Sbench, client: str, executor: str) -> None:
    # A library that is loaded into this process would stay as its first test set it.
    sbench = sbench.apart if executor == "inline" else sbench
    how = ("--client", client, "--executor", executor, "--format", "json")
    written = sbench("write", "--number", 3, "--mb", 1, "--key-file", "keys.txt", *how)
    read = sbench("read", "--key-file", "keys.txt", *how)
    assert written.json["ok"] == read.json["ok"] == 3, written.err + read.err
    assert read.json["verified_bytes"] == 3 * MIB
    assert read.json["client"] == client
    assert read.json["executor"] == executor


@pytest.mark.parametrize("client", ["wire", "boto3"])
def test_parts_and_ranges_over_several_connections(sbench: Sbench, client: str) -> None:
    how = ("--connections", 3, "--part-size", "5MiB", "--client", client, "--format", "json")
    written = sbench("write", "--number", 2, "--mb", 17, "--key-file", "k", *how)
    assert written.json["attempts"] == 2 * (4 + 2)
    read = sbench("read", "--key-file", "k", *how)
    assert read.json["attempts"] == 2 * 4
    assert read.json["verified_bytes"] == 2 * 17 * MIB


def test_old_spellings_work(sbench: Sbench) -> None:
    written = sbench(
        *("write", "--mb_per_file=1", "--number=2", "--key_file=big_keys.txt"),
        *("--key_prefix=old/", "--outdir=there", "--name=one", "--outfile=w.pickle"),
    )
    assert written.code == 0, written.err
    keys = (sbench.directory / "big_keys.txt").read_text().splitlines()
    assert all(key.startswith("old/") for key in keys)
    read = sbench(
        *("read", "--number=3", "--key_file=big_keys.txt", "--read_times=2", "--format=json")
    )
    assert (read.json["requested"], read.json["bytes"]) == (3, 6 * MIB)
    one = sbench("read", f"--s3_key={keys[0]}", "--number=2", "--format=json")
    assert (one.json["ok"], one.json["bytes"]) == (2, 2 * MIB)
    rows = pickle.loads((sbench.directory / "w.pickle").read_bytes())  # noqa: TID251 - just written
    assert len(rows) == 2
    for start, stop, rate in rows:
        assert rate == pytest.approx(MIB / (stop - start) / 1e6, rel=1e-3)


def test_fewer_functions_than_keys_read_the_first_ones(sbench: Sbench) -> None:
    sbench("write", "--number", 4, "--mb", 1, "--key-file", "k")
    read = sbench("read", "--key-file", "k", "--number", 2, "--format", "json")
    assert (read.json["requested"], read.json["bytes"]) == (2, 2 * MIB)


def test_several_objects_per_function(sbench: Sbench) -> None:
    written = sbench(
        *("write", "--number", 2, "--objects", 3, "--size", "1000KB", "--key-file", "k"),
        *("--format", "json"),
    )
    assert (written.json["operations"], written.json["bytes"]) == (6, 6_000_000)
    read = sbench("read", "--key-file", "k", "--objects", 3, "--threads", 4, "--format", "json")
    assert (read.json["requested"], read.json["verified_bytes"]) == (2, 6_000_000)
    assert "note: idle threads: 1 of 4 in each function, which has fewer objects" in read.err


def test_foreign_objects_are_read_and_not_verified(sbench: Sbench, embedded: Server) -> None:
    with credentials(embedded.environment):
        s3 = open_s3(Target(bucket=embedded.bucket, endpoint_url=embedded.endpoint_url))
        s3.put_object(Bucket=embedded.bucket, Key="report.pdf", Body=b"x" * 5000)
    read = sbench("read", "--key", "report.pdf", "--format", "json")
    assert (read.code, read.json["bytes"], read.json["verified_bytes"]) == (0, 5000, 0)
    assert read.json["unknown_objects"] == 1
    assert "not written by sbench" in sbench("read", "--key", "report.pdf").out


@pytest.mark.parametrize(("verify", "verified"), [("full", 2), ("sample", 2), ("none", 0)])
def test_verification_can_be_chosen(sbench: Sbench, verify: str, verified: int) -> None:
    sbench("write", "--number", 1, "--mb", 2, "--key-file", "k")
    read = sbench("read", "--key-file", "k", "--verify", verify, "--format", "json")
    assert read.json["verified_bytes"] == verified * MIB


@uses("feature plot")
def test_report_plot_and_clean_work_on_the_directory(sbench: Sbench, embedded: Server) -> None:
    sbench("write", "--number", 2, "--mb", 1, "--name", "w", "--key-file", "k")
    sbench("read", "--key-file", "k", "--name", "r")
    report = sbench("report", "sbench-runs/w", "--format", "json")
    assert (report.code, report.json["ok"]) == (0, 2)
    for style in ("text", "full", "markdown"):
        assert sbench("report", "sbench-runs/r", "--format", style).code == 0
    plotted = sbench("plot", "sbench-runs/w", "sbench-runs/r", "--output", "both.svg")
    assert plotted.code == 0, plotted.err
    assert (sbench.directory / "both.svg").read_text().startswith("<svg")
    with credentials(embedded.environment):
        s3 = open_s3(Target(bucket=embedded.bucket, endpoint_url=embedded.endpoint_url))
        s3.put_object(Bucket=embedded.bucket, Key="sbench/foreign", Body=b"not yours")
        cleaned = sbench("clean", "sbench-runs/w")
        left = s3.list_objects_v2(Bucket=embedded.bucket, Prefix="sbench/")["Contents"]
    assert cleaned.out.startswith("deleted 2 objects, aborted 0 uploads")
    keys = set((sbench.directory / "k").read_text().splitlines())
    assert "sbench/foreign" in {entry["Key"] for entry in left}
    assert keys.isdisjoint(entry["Key"] for entry in left)
    gone = sbench("read", "--key-file", "k", "--format", "json")
    assert (gone.code, gone.json["failed"], gone.json["errors"]) == (6, 2, {"not_found": 2})
    assert "nothing to delete" in sbench("clean", "sbench-runs/r").out


def test_clean_aborts_the_uploads_of_the_run_and_no_others(
    sbench: Sbench, embedded: Server
) -> None:
    sbench("write", "--number", 1, "--mb", 1, "--name", "w", "--key-file", "k")
    (key,) = (sbench.directory / "k").read_text().split()
    with credentials(embedded.environment):
        s3 = open_s3(Target(bucket=embedded.bucket, endpoint_url=embedded.endpoint_url))
        for name in (key, "sbench/somebody-elses"):
            s3.create_multipart_upload(Bucket=embedded.bucket, Key=name)
        cleaned = sbench("clean", "sbench-runs/w")
        left = s3.list_multipart_uploads(Bucket=embedded.bucket).get("Uploads", [])
        for upload in left:
            s3.abort_multipart_upload(
                Bucket=embedded.bucket, Key=upload["Key"], UploadId=upload["UploadId"]
            )
    assert "aborted 1 upload\n" in cleaned.out
    # Other tests may have left theirs.
    names = [upload["Key"] for upload in left]
    assert (key in names, names.count("sbench/somebody-elses")) == (False, 1)


def test_a_store_of_ones_own(tmp_path: Path, moto: Server) -> None:
    sbench = Sbench(tmp_path, moto.environment)
    where = ("--endpoint-url", moto.endpoint_url, "--bucket", moto.bucket, "--format", "json")
    written = sbench("write", "--number", 2, "--mb", 1, "--key-file", "k", "--name", "w", *where)
    assert written.json["ok"] == 2, written.err
    assert sbench("read", "--key-file", "k", *where).json["verified_bytes"] == 2 * MIB
    assert sbench("clean", "sbench-runs/w").code == 0


def test_defaults_come_from_a_file_and_from_the_environment(sbench: Sbench) -> None:
    settings = 'number = 2\nformat = "json"\n[write]\nmb = 1\nmb_per_file = 1\n[read]\n'
    (sbench.directory / "sbench.toml").write_text(settings)
    tomllib.loads(settings)
    named = ("--config", "sbench.toml", "write")
    assert sbench(*named).json["bytes"] == 2 * MIB
    assert sbench(*named, SBENCH_NUMBER="3").json["requested"] == 3
    assert sbench(*named, "--number", 1, SBENCH_NUMBER="3").json["requested"] == 1


@uses("feature demo")
def test_demo_shows_everything(sbench: Sbench) -> None:
    done = sbench("demo", "--number", 3, "--mb", 2, "--name", "first")
    assert done.code == 0, done.err
    figure = sbench.directory / "sbench-runs" / "first-read" / "plot.png"
    assert done.out.splitlines()[-1] == f"plot: {figure.relative_to(sbench.directory)}"
    assert figure.stat().st_size > 10_000
    assert "every byte" in done.out
    for words in ((), ("--from", "first-write")):
        read = sbench("read", *words)
        assert read.code == 8
        assert "the objects of sbench-runs/first-write are deleted" in read.err
        assert "hint: sbench write makes some that stay" in read.err


def test_help_and_version(sbench: Sbench) -> None:
    assert "\nRun:\n" in sbench("--help").out
    for name in command_names():
        assert sbench(name, "--help").code == 0
    assert sbench("--version").out.startswith("sbench, version ")
