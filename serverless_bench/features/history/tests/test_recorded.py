"""The stored part of a run, comparability of runs, and files that sbench did not write."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from serverless_bench.base.errors import ArchiveError, SbenchError
from serverless_bench.features.history.folder import History
from serverless_bench.features.history.recorded import RecordedRun, parse, record
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target
from serverless_bench.job.workload import Load
from serverless_bench.rundir.run import Run
from tests.data.runs import OTHER_EXECUTOR, S, job, lost, operation, outcome, saved
from tests.data.runs import record as record_of
from tests.tables import each_row

JOB = job(number=2)


def made(path: Path, of: JobSpec = JOB, **changed: object) -> Run:
    done = [outcome(record_of(n, [operation(end_ns=S)])) for n in range(of.number)]
    run = saved(path, done, of=of)
    return replace(run, **changed)  # type: ignore[arg-type]


def test_a_file_is_small_and_says_the_same_again(tmp_path: Path) -> None:
    run = record(made(tmp_path / "run"), machine="ci-1", label="abc")
    text = run.to_text()
    assert parse(text.encode()) == run
    assert len(text) < 2000
    assert str(tmp_path) not in text
    # For diffs of git: one field per line, always in the same order.
    assert text == json.dumps(json.loads(text), indent=1, sort_keys=True) + "\n"
    assert (run.figures["throughput_bytes_per_s"], run.bytes) == (2000.0, 2000)
    # With seven digits, so that files of other machines are equal.
    assert all(value == float(f"{value:.7g}") for value in run.figures.values())


@pytest.mark.parametrize(
    "other",
    [
        replace(JOB, name="other", seed=5, deadline=10.0),
        replace(JOB, target=replace(JOB.target, bucket="c", prefix="p/")),
        replace(JOB, transfer=replace(JOB.transfer, timeout=3.0)),
        replace(JOB, network_rate=1e9),
    ],
)
def test_settings_without_effect_on_work_leave_the_key(tmp_path: Path, other: JobSpec) -> None:
    assert record(made(tmp_path / "a", other)).key == record(made(tmp_path / "b")).key


@each_row(
    "other",
    [
        replace(JOB, number=3),
        replace(JOB, executor=OTHER_EXECUTOR),
        replace(JOB, endpoints=("http://second",)),
        replace(JOB, load=Load(threads=2)),
        replace(JOB, load=Load(compressibility=2.0)),
        replace(JOB, transfer=replace(JOB.transfer, part_size=5 << 20)),
        replace(JOB, target=replace(JOB.target, client="boto3")),
        replace(JOB, target=replace(JOB.target, endpoint_url="http://elsewhere")),
        replace(JOB, target=replace(JOB.target, endpoint_url="https://store")),
        replace(JOB, target=replace(JOB.target, bucket="b--use1-az4--x-s3", endpoint_url="")),
        replace(JOB, target=replace(JOB.target, endpoint_url="", region="eu-central-1")),
    ],
)
def test_settings_of_the_work_are_in_the_key(tmp_path: Path, other: JobSpec) -> None:
    assert record(made(tmp_path / "a", other)).key != record(made(tmp_path / "b")).key


def test_ports_of_this_machine_are_one_store(tmp_path: Path) -> None:
    urls = ("http://127.0.0.1:1", "http://127.0.0.1:2", "http://localhost:3", "http://[::1]:4")
    of = [replace(JOB, target=Target(bucket="b", endpoint_url=url)) for url in urls]
    found = [record(made(tmp_path / str(n), one)) for n, one in enumerate(of)]
    assert len({run.key for run in found}) == 1
    assert found[0].job["store"] == "s3 http here"


@pytest.mark.parametrize(
    ("target", "store"),
    [
        ({"endpoint_url": "https://store:9000"}, "s3 https store"),
        ({"endpoint_url": "", "region": "eu-central-1"}, "s3 eu-central-1"),
        (
            {"endpoint_url": "", "region": "us-east-1", "bucket": "b--use1-az4--x-s3"},
            "s3 us-east-1 directory bucket",
        ),
        (
            {"endpoint_url": "http://10.0.0.1", "bucket": "b--use1-az4--x-s3"},
            "s3 http 10.0.0.1 directory bucket",
        ),
    ],
)
def test_a_store_is_named_without_variable_parts(
    tmp_path: Path, target: dict[str, str], store: str
) -> None:
    of = replace(JOB, target=replace(JOB.target, **target))  # type: ignore[arg-type]
    assert record(made(tmp_path / "run", of)).job["store"] == store


def test_keys_stay_as_they_are_from_version_to_version(tmp_path: Path) -> None:
    """A history holds runs of many versions: with other keys it would begin anew."""
    of = replace(
        JOB,
        load=Load(threads=4),
        transfer=replace(JOB.transfer, part_size=8 << 20),
        endpoints=("http://second",),
    )
    about = {"cpus": 2, "platform": "Linux-6.18.44-x86_64-with-glibc2.36"}
    keys = [
        record(made(tmp_path / "plain")).key,
        record(made(tmp_path / "more", of, provenance=about), machine="ci").key,
    ]
    assert keys == ["write-wire-local-626e68e94f15", "write-wire-local-ab6a6e42176a"]


def test_versions_are_those_that_a_reader_looks_for_first(tmp_path: Path) -> None:
    about = {
        "sbench": "1",
        "git_commit": "abc",
        "python": "3.12.1" + "x" * 100,
        "libraries": {"wire": "2", "boto3": "3"},
    }
    versions = record(made(tmp_path / "a", provenance=about)).versions
    assert versions == {
        "sbench": "1",
        "git_commit": "abc",
        "python": ("3.12.1" + "x" * 100)[:64],
        "wire": "2",
    }
    assert record(made(tmp_path / "b", provenance={"python": 3, "libraries": 4})).versions == {}


def test_machines_are_distinguished_and_versions_are_not(tmp_path: Path) -> None:
    def on(name: str, machine: str = "", **about: object) -> str:
        return record(made(tmp_path / name, provenance=about), machine=machine).key

    platform = "Linux-6.18.44-x86_64-with-glibc2.36"
    here = on("a", cpus=2, platform=platform, sbench="1", libraries={"wire": "1"})
    newer = "Linux-6.19.1-generic-x86_64-with-glibc2.40"
    assert on("b", cpus=2, platform=newer, sbench="2", libraries={"wire": "2"}) == here
    assert on("c", cpus=4, platform=platform) != here
    assert on("d", cpus=2, platform="Linux-6.18.44-aarch64-with-glibc2.36") != here
    assert on("e", machine="second", cpus=2, platform=platform) != here


def test_an_invalid_run_is_not_recorded(tmp_path: Path) -> None:
    run = saved(tmp_path / "run", [outcome(record_of(0, [operation()])), outcome(lost(1))])
    with pytest.raises(SbenchError, match="cannot be compared: 1 function lost"):
        record(run)


def test_a_run_that_no_file_could_hold_is_refused(tmp_path: Path) -> None:
    run = made(tmp_path / "run", provenance={"cpus": 10**30})
    with pytest.raises(SbenchError, match="run cannot be recorded: `machine"):
        record(run)


@pytest.fixture
def recorded(tmp_path: Path) -> RecordedRun:
    return record(made(tmp_path / "run"))


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path / "history")


def test_two_branches_add_runs_without_touching_one_file(
    tmp_path: Path, history: History, recorded: RecordedRun
) -> None:
    other = record(made(tmp_path / "other", run_id="other"))
    assert [history.add(recorded), history.add(other)] == [True, True]
    before = {path: path.read_bytes() for path in history.path.rglob("*.json")}
    assert len(before) == 2
    assert not history.add(recorded)
    assert {path: path.read_bytes() for path in history.path.rglob("*.json")} == before
    assert history.runs(recorded.key) == sorted([recorded, other], key=lambda run: run.run_id)
    assert history.find("write") == recorded.key


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("schema", 2, "it was written by a newer sbench; upgrade this one"),
        ("schema", "x", "`schema`: Expected `int`, got `str`"),
        ("created_ns", -1, "`created_ns`: Expected `int` >= 0"),
        ("created_ns", 10**30, "`created_ns`"),
        ("figures", {"completion_s.p99": "fast"}, "`figures"),
        ("figures", {"completion_s.p99": 0}, "`figures"),
        ("figures", {"completion_s.p99": 1e300}, "`figures"),
        ("figures", {"t99 s": 1.0}, "figures`: Expected `str` matching"),
        ("figures", {"t98_s": 1.0}, "`figures` has no known metric"),
        ("figures", {}, "`figures"),
        ("figures", None, "`figures"),
        ("bytes", "1", "`bytes`"),
        ("key", "../../etc", "`key` is not a valid key"),
        ("label", "a\x1b[2J", "`label` has characters that cannot be printed"),
        ("job", {"client": "a\nb"}, "`client` has characters that cannot be printed"),
        ("more", 1, "unknown field `more`"),
    ],
)
def test_a_file_that_sbench_did_not_write_so_is_named(
    history: History,
    recorded: RecordedRun,
    field: str,
    value: object,
    says: str,
) -> None:
    history.add(recorded)
    path = history.path / recorded.key / recorded.file_name
    path.write_text(json.dumps({**json.loads(path.read_text()), field: value}))
    with pytest.raises(ArchiveError) as caught:
        history.runs(recorded.key)
    assert str(caught.value).startswith(f"{path}: ")
    assert says in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"<<<<<<< HEAD\n{}",
        b"[" * 50_000,
        b'{"schema": NaN}',
        b'{"schema": 1e999}',
        b"[1]",
        b"null",
        b"\xff\xfe",
        b'"' + b"x" * 70_000 + b'"',
        b'{"schema":' + b"9" * 5000 + b"}",
    ],
)
def test_an_invalid_file_is_named(history: History, recorded: RecordedRun, text: bytes) -> None:
    history.add(recorded)
    path = history.path / recorded.key / recorded.file_name
    path.write_bytes(text)
    with pytest.raises(ArchiveError) as caught:
        history.runs(recorded.key)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_deep_nesting_is_reported() -> None:
    with pytest.raises(ValueError, match="nested") as caught:
        parse(b"[" * 50_000)
    assert str(caught.value) == "it is nested too deeply"


def test_a_run_is_in_the_folder_of_its_key_once(history: History, recorded: RecordedRun) -> None:
    history.add(recorded)
    folder = history.path / recorded.key
    (folder / "copy.json").write_text(recorded.to_text())
    with pytest.raises(ArchiveError, match="is a duplicate of another file"):
        history.runs(recorded.key)
    moved = folder.rename(folder.with_name("write-0123456789ab"))
    with pytest.raises(ArchiveError, match=f"has the key {recorded.key}"):
        history.runs(moved.name)


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_links_lead_nowhere(
    tmp_path: Path, history: History, recorded: RecordedRun, kind: str
) -> None:
    history.add(recorded)
    folder = history.path / recorded.key
    place = folder if kind == "folder" else folder / recorded.file_name
    place.rename(tmp_path / "elsewhere")
    place.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ArchiveError, match="symbolic link"):
        history.runs(history.find("write"))
    if kind == "folder":
        with pytest.raises(ArchiveError, match="symbolic link"):
            history.add(recorded)


def test_a_pipe_is_not_waited_for(history: History, recorded: RecordedRun) -> None:
    history.add(recorded)
    os.mkfifo(history.path / recorded.key / "pipe.json")
    with pytest.raises(ArchiveError, match="is a FIFO"):
        history.runs(recorded.key)


def test_other_files_are_ignored(history: History, recorded: RecordedRun) -> None:
    history.add(recorded)
    (history.path / ".gitattributes").write_text("x")
    (history.path / "README.md").write_text("x")
    (history.path / recorded.key / "notes.txt").write_text("x")
    assert history.keys() == [recorded.key]
    assert history.runs(recorded.key) == [recorded]
