"""Objects that sbench did not write are read and counted, and stay as they are."""

import csv
import gzip
import io
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import serverless_bench as sbench
from serverless_bench.driver.boto import open_s3
from serverless_bench.features.audit.sources import read_request_log
from serverless_bench.features.check.checked_run import audited
from serverless_bench.features.cost.outlook import plan
from serverless_bench.features.loopback.objects import StoredObject
from serverless_bench.features.loopback.server import LoopbackServer, serving
from serverless_bench.features.loopback.state import LoopbackSettings
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target
from serverless_bench.job.workload import Load
from serverless_bench.rundir.run import load_run
from tests.commands.command import Done, Sbench
from tests.stores.servers import KEYS, Server, credentials

LINES = ["a\t1000", "b c\t3000"]
MIX = "get=1,get_range=1,head=1,list=1"
READING = {"get", "head", "head_bucket", "list_objects", None}
SIZES = {f"data/{number:03} ä+b": 2000 + number for number in range(30)}
COLUMNS = ("a", "b", "c", "d")


def table_file() -> bytes:
    """Return a Parquet file with two row groups, as another program writes it."""
    file = io.BytesIO()
    pq.write_table(
        pa.table({name: list(range(5000)) for name in COLUMNS}), file, row_group_size=2500
    )
    return file.getvalue()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LoopbackServer]:
    with serving(LoopbackSettings(request_log=tmp_path / "log", strict=True)) as server:
        table = table_file()
        bodies = {key: bytes(size) for key, size in SIZES.items()}
        bodies |= {"data/folder/": b"", "tables/1.parquet": table, "tables/2.parquet": table}
        # The key says that sbench wrote it; the bytes do not.
        bodies[f"own/{'ab' * 16}.300"] = bytes(300)
        for key, body in bodies.items():
            content = StoredObject(key=key, size=len(body), verbatim=body)
            server.state.objects.put("theirs", content)
        yield server


def run(
    tmp_path: Path, store: LoopbackServer | Server, *flags: str | int, bucket: str = "theirs"
) -> Done:
    command = Sbench(tmp_path, getattr(store, "environment", KEYS))
    where = ("--endpoint-url", store.endpoint_url, "--bucket", bucket)
    return command(*flags, *where, "--name", "r", "--format", "json")


@pytest.mark.parametrize("executor", ["inline", "local"])
@pytest.mark.parametrize(
    ("flags", "kinds"),
    [
        (("read", "--existing", "data/", "--part-size", 1024), {"get"}),
        (("read", "--existing", "data/", "--split", 2, "--stat", "each"), {"get_range"}),
        (("read", "--existing", "own/", "--objects", 1), {"get"}),
        (
            ("mixed", "--existing", "data/", "--operations", 60, "--mix", MIX),
            {"get", "get_range", "head", "list"},
        ),
        (("parquet", "--existing", "tables/", "--column-fraction", "50%"), {"scan"}),
    ],
)
def test_foreign_objects_are_read_and_none_changes(
    tmp_path: Path,
    store: LoopbackServer,
    flags: tuple[str | int, ...],
    kinds: set[str],
    executor: str,
) -> None:
    before = dict(store.state.objects._buckets["theirs"].kept)
    more = () if "--objects" in flags else ("--objects", 5)
    done = run(tmp_path, store, *flags, "--number", 2, *more, "--executor", executor)
    assert done.code == 0, done
    saved = load_run(tmp_path / "sbench-runs" / "r")
    report, lines = done.json, saved.keys()
    assert {*saved.operations["kind"].tolist()} == kinds
    assert report["verified_bytes"] == 0
    assert report["corrupt_objects"] == report["failed_operations"] == 0
    reads = sum(kind in {"get", "get_range"} for kind in saved.operations["kind"])
    assert report["unknown_objects"] == reads
    chosen = [line.partition("\t") for line in lines]
    if flags[2] == "data/":
        assert {key: int(size) for key, _, size in chosen}.items() <= SIZES.items()
        assert len(chosen) == (5 if "--split" in flags else 10)
        assert report["existing"]["unread_objects"] == 1
    assert report["existing"]["chosen_objects"] == len(chosen)
    assert report["existing"]["cold_objects"] == 0
    store.state.request_log.settle()
    found = audited(saved, tmp_path / "log")
    assert not found.differences, found.differences
    cleaned = Sbench(tmp_path, KEYS)("clean", "r")
    assert cleaned.code == 0, cleaned
    store.state.request_log.settle()
    seen = Counter(request.operation for request in read_request_log(tmp_path / "log"))
    assert seen.keys() <= READING | {"list_uploads"}, seen
    assert store.state.objects._buckets["theirs"].kept == before


def test_a_scan_reads_the_chunks_that_the_footer_names(
    tmp_path: Path, store: LoopbackServer
) -> None:
    flags = ("--number", 1, "--objects", 2, "--executor", "inline", "--footer-guess", 16)
    share = ("--column-fraction", "50%", "--coalesce-gap", 0)
    done = run(tmp_path, store, "parquet", "--existing", "tables/", *flags, *share)
    metadata = pq.ParquetFile(io.BytesIO(table_file())).metadata
    store.state.request_log.settle()
    sent = [r for r in read_request_log(tmp_path / "log") if r.key == "tables/1.parquet"]
    chunks = [
        metadata.row_group(group).column(column)
        for group in range(2)
        for column in range(len(COLUMNS))
    ]
    places = {
        (chunk.dictionary_page_offset or chunk.data_page_offset, chunk.total_compressed_size)
        for chunk in chunks
    }
    # The end, the footer, and a chunk of two columns in two row groups.
    assert len(sent) == 2 + 4
    assert {(r.offset, r.length) for r in sent[2:]} <= places
    scans = done.json["scans"]
    assert (scans["files"], scans["requests_per_file"]) == (2, 6)
    assert scans["needed_bytes"] is scans["needed_bytes_per_s"] is scans["footer_s"] is None


def test_the_seed_draws_the_sample(tmp_path: Path, store: LoopbackServer) -> None:
    def keys(name: str, seed: int) -> set[str]:
        flags = ("--number", 1, "--objects", 4, "--seed", seed, "--executor", "inline")
        done = run(tmp_path / name, store, "read", "--existing", "data/", *flags)
        assert done.code == 0, done
        return {*load_run(tmp_path / name / "sbench-runs" / "r").keys()}

    for name in "abc":
        (tmp_path / name).mkdir()
    assert keys("a", 1) == keys("b", 1) != keys("c", 2)


@pytest.mark.parametrize("kind", ["put", "delete", "delete_many", "copy"])
def test_a_mix_that_changes_objects_is_refused(
    tmp_path: Path, store: LoopbackServer, kind: str
) -> None:
    mix = ("mixed", "--existing", "data/", "--mix", f"get=1,{kind}=1")
    done = run(tmp_path, store, *mix)
    assert done.code == 2
    assert f"--existing objects are only read, and the job has {kind}" in done.err
    assert not store.state.statistics()["requests"]


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("read", "--existing", "none/"), "'none/' names no object to read"),
        (("read", "--existing", "data/", "--key", "x"), "--key does not apply"),
        (("mixed", "--existing", "data/", "--mix", "get=1", "--mb", 1), "--mb does not apply"),
        (("write", "--existing", "data/"), "No such option"),
        (("read", "--existing", "file://nothing"), "nothing"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_line(
    tmp_path: Path, store: LoopbackServer, flags: tuple[str | int, ...], says: str
) -> None:
    done = run(tmp_path, store, *flags)
    assert done.code == 2
    assert says in done.err


def test_cold_objects_are_skipped_and_counted(moto: Server, tmp_path: Path, prefix: str) -> None:
    classes = ("STANDARD", "GLACIER", "DEEP_ARCHIVE", "STANDARD_IA", "GLACIER_IR")
    with credentials(moto.environment):
        s3 = open_s3(Target(bucket=moto.bucket, endpoint_url=moto.endpoint_url))
        for name in classes:
            key = f"{prefix}{name}"
            s3.put_object(Bucket=moto.bucket, Key=key, Body=b"theirs", StorageClass=name)  # type: ignore[arg-type]
    done = run(tmp_path, moto, "read", "--existing", prefix, bucket=moto.bucket)
    assert done.code == 0, done
    assert done.json["existing"] == {"chosen_objects": 3, "cold_objects": 2, "unread_objects": 0}
    assert done.json["unknown_objects"] == 3


def inventory(folder: Path, form: str) -> Path:
    """Write an S3 Inventory of versions, with its manifest, or a part of it."""
    rows = [
        {
            "bucket": "theirs", "key": key, "version_id": "v", "is_latest": True,
            "is_delete_marker": False, "size": size, "storage_class": "STANDARD",
        }
        for key, size in SIZES.items()
    ]  # fmt: skip
    rows[0]["storage_class"] = "GLACIER"
    rows[1]["is_latest"] = False
    rows[2]["is_delete_marker"] = True
    if form == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), folder / "part.parquet")
        return folder / "part.parquet"
    if form == "plain":
        # The columns of a manifest of S3 Batch Operations, and two more.
        names = ("bucket", "key", "size", "storage_class")
        rows = [{name: row[name] for name in names} for row in (rows[0], *rows[3:])]
    text = io.StringIO()
    encoded = [
        {**row, "key": str(row["key"]).replace("+", "%2B").replace(" ", "+")} for row in rows
    ]
    for row in encoded:
        csv.writer(text, quoting=csv.QUOTE_ALL).writerow(
            str(value).lower() if isinstance(value, bool) else value for value in row.values()
        )
    if form == "plain":
        (folder / "list.csv").write_text(text.getvalue())
        return folder / "list.csv"
    (folder / "part.csv.gz").write_bytes(gzip.compress(text.getvalue().encode()))
    schema = "Bucket, Key, VersionId, IsLatest, IsDeleteMarker, Size, StorageClass"
    manifest = {"fileSchema": schema, "files": [{"key": "theirs/all/data/part.csv.gz"}]}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder / "manifest.json"


@pytest.mark.parametrize("form", ["manifest", "plain", "parquet"])
def test_an_inventory_takes_the_place_of_a_listing(
    tmp_path: Path, store: LoopbackServer, form: str
) -> None:
    path = inventory(tmp_path, form)
    done = run(tmp_path, store, "read", "--existing", f"file://{path}", "--executor", "inline")
    assert done.code == 0, done
    assert done.json["existing"]["cold_objects"] == 1
    lines = {f"{key}\t{size}" for key, size in [*SIZES.items()][3:]}
    assert {*load_run(tmp_path / "sbench-runs" / "r").keys()} == lines
    store.state.request_log.settle()
    assert not [r for r in read_request_log(tmp_path / "log") if r.operation == "list_objects"]


def test_a_key_file_may_say_the_sizes(tmp_path: Path, store: LoopbackServer) -> None:
    keys = [*SIZES][:4]
    (tmp_path / "keys").write_text("".join(f"{key}\t{SIZES[key]}\n" for key in keys))
    mix = ("--mix", "get_range=1", "--range-size", 10, "--operations", 8, "--objects", 4)
    flags = ("mixed", "--existing", "file://keys", *mix, "--number", 1, "--executor", "inline")
    assert run(tmp_path, store, *flags).json["bytes"] == 80
    (tmp_path / "keys").write_text("".join(f"{key}\n" for key in keys))
    done = run(tmp_path, store, *flags, "--run-dir", "others")
    assert done.code == 2
    assert "ranges need sizes" in done.err


def far(workload: str, **more: object) -> JobSpec:
    target = Target(
        bucket="b", endpoint_url="https://s3.eu-west-1.amazonaws.com", region="eu-west-1"
    )
    options = {"existing": "data/", "function_region": "us-east-1"}
    return JobSpec(workload=workload, target=target, options=options, number=2, **more)  # type: ignore[arg-type]


def test_a_plan_counts_the_bytes_that_leave_the_region() -> None:
    found = plan(far("read"), LINES)
    assert found.outlook is not None
    assert found.expected is not None
    assert (found.outlook.bytes, found.outlook.operations) == (4000, {"get": 2})
    assert found.outlook.keys == ("a", "b c")
    assert found.expected.usage.cross_region_bytes == 4000
    mixed = far("mixed", load=Load(mix=(("get", 1),), operations=5), objects=2)
    found = plan(mixed, LINES)
    assert found.outlook is not None
    assert found.expected is not None
    assert found.outlook.prepared_objects == 0
    assert found.expected.usage.cross_region_bytes == 2 * 5 * 2000
    assert found.expected.usage.puts < found.expected.usage.gets


def test_python_reads_them_too(tmp_path: Path, store: LoopbackServer) -> None:
    where = {"endpoint_url": store.endpoint_url, "bucket": "theirs", "executor": "inline"}
    with credentials(KEYS):
        found = sbench.read(existing="data/", number=2, run_dir=tmp_path, progress=False, **where)
    assert found.summary.unknown_objects == 2
