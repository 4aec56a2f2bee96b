"""``sbench parquet``, as a user runs it, and PyArrow reading the same files from the same store."""

import io
import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyarrow.fs import S3FileSystem

from serverless_bench.driver.boto import open_s3
from serverless_bench.features.audit.sources import read_request_log
from serverless_bench.features.check.checked_run import audited
from serverless_bench.features.cost.expected import expected
from serverless_bench.features.cost.forecast import CostConditions
from serverless_bench.features.loopback.server import LoopbackServer, serving
from serverless_bench.features.loopback.state import LoopbackSettings
from serverless_bench.job.keys import hash_key
from serverless_bench.rundir.run import Run, load_run
from tests.commands.command import Done, Sbench
from tests.stores.servers import KEYS, Server, credentials

PROBES = 20
"""HEAD requests of the driver, which a forecast counts too."""


def columns(sbench: Sbench, server: LoopbackServer, *flags: str | int | Path) -> tuple[Done, Run]:
    where = ("--endpoint-url", server.endpoint_url, "--bucket", "any", "--name", "c")
    done = sbench("parquet", *where, "--format", "json", *flags)
    assert done.code == 0, done
    return done, load_run(sbench.directory / "sbench-runs" / "c")


def ranges(request_log: Path, key: str, *, after: int = 0) -> list[tuple[int | None, int | None]]:
    requests = read_request_log(request_log)[after:]
    return sorted((r.offset, r.length) for r in requests if r.operation == "get" and r.key == key)


def read_by_pyarrow(server: LoopbackServer, key: str, names: list[str], gap: int) -> pa.Table:
    """Read columns with all row groups buffered before, as PyArrow does for slow stores."""
    store = S3FileSystem(
        endpoint_override=server.endpoint_url.partition("//")[2],
        scheme="http",
        access_key=KEYS["AWS_ACCESS_KEY_ID"],
        secret_key=KEYS["AWS_SECRET_ACCESS_KEY"],
        region="us-east-1",
    )
    cache = pa.CacheOptions(hole_size_limit=gap, range_size_limit=32 << 20, lazy=False)
    options = ds.ParquetFragmentScanOptions(pre_buffer=True, cache_options=cache)
    # Without a schema PyArrow reads the footer twice.
    schema = pa.schema([pa.field(name, pa.binary(), nullable=False) for name in names])
    file_format = ds.ParquetFileFormat(default_fragment_scan_options=options)
    return ds.dataset(f"any/{key}", schema, format=file_format, filesystem=store).to_table()


@pytest.mark.parametrize(
    ("shape", "share", "gap"),
    [
        # Chunks apart, joined, one larger than a joined range, and 10,000 with a long footer.
        (("--size", "4MiB"), 0.25, 8192),
        (("--size", "4MiB"), 0.3, 100 << 10),
        (("--size", "40MiB", "--row-groups", 2, "--columns", 3), 1.0, 8192),
        (("--size", "8MiB", "--row-groups", 100, "--columns", 100), 0.2, 4096),
    ],
)
def test_pyarrow_requests_the_same_ranges_and_gets_the_same_bytes(
    tmp_path: Path, shape: tuple[str | int, ...], share: float, gap: int
) -> None:
    request_log = tmp_path / "request_log"
    with serving(LoopbackSettings(request_log=request_log)) as server:
        flags = (
            *shape,
            "--column-fraction",
            str(share),
            "--coalesce-gap",
            gap,
            "--number",
            1,
            "--connections",
            4,
        )
        done, run = columns(Sbench(tmp_path, KEYS), server, *flags)
        server.state.request_log.settle()
        (key,) = run.ledger()
        ours = ranges(request_log, key)
        scan = done.json["scans"]
        assert len(ours) == scan["requests_per_file"]
        assert sum(length or 0 for _, length in ours) == scan["read_bytes"]
        with credentials(KEYS):
            body = open_s3(run.job.target).get_object(Bucket="any", Key=key)["Body"].read()
            names = chosen_names(body, scan["needed_bytes"], share)
            server.state.request_log.settle()
            before = len(read_request_log(request_log))
            table = read_by_pyarrow(server, key, names, gap)
        server.state.request_log.settle()
        assert ranges(request_log, key, after=before) == ours
        # Each value has 29 bytes of headers, and all of the needed bytes are values or footer.
        values = sum(len(value.as_py()) + 29 for column in table.columns for value in column)
        footer = int.from_bytes(body[-8:-4], "little") + 8
        assert values + footer == scan["needed_bytes"]


def chosen_names(body: bytes, needed: int, share: float) -> list[str]:
    """Return the columns of a scan: by their number, and seen in what is needed."""
    metadata = pq.ParquetFile(io.BytesIO(body)).metadata
    drawn = sorted(range(metadata.num_columns), key=lambda number: hash_key(str(number)))
    mine = sorted(drawn[: max(1, round(share * len(drawn)))])
    sizes = [
        metadata.row_group(group).column(column).total_compressed_size
        for group in range(metadata.num_row_groups)
        for column in mine
    ]
    assert sum(sizes) + int.from_bytes(body[-8:-4], "little") + 8 == needed
    return [f"c{number}" for number in mine]


@pytest.mark.parametrize(
    "flags",
    [
        ("--size", "1MiB", "--threads", 2, "--read-times", 3),
        ("--size", "1MiB", "--footer-guess", 100, "--warm-up", 1, "--client", "boto3"),
        ("--size", "11MiB", "--part-size", "5MiB", "--column-fraction", "100%", "--connections", 2),
    ],
)
def test_the_store_saw_what_the_records_and_the_plan_say(
    tmp_path: Path, flags: tuple[str | int, ...]
) -> None:
    request_log = tmp_path / "request_log"
    sbench = Sbench(tmp_path, KEYS)
    with serving(LoopbackSettings(request_log=request_log)) as server:
        done, run = columns(sbench, server, *flags, "--number", 2, "--objects", 2)
        server.state.request_log.settle()
        assert audited(run, request_log).differences == ()
        seen = [r.operation for r in read_request_log(request_log) if r.key in run.ledger()]
        plan = expected(run.job, CostConditions(memory_mib=1769, architecture="arm64"))
        assert plan is not None
        assert seen.count("get") == plan.usage.gets - PROBES
        puts = sum(seen.count(name) for name in ("put", "upload_part"))
        assert puts + 2 * seen.count("complete_multipart") == plan.usage.puts
        warm_up = 2 if "--warm-up" in flags else 1
        assert (
            seen.count("get")
            == warm_up * done.json["scans"]["requests_per_file"] * (done.json["operations"])
        )
        assert done.json["verified_bytes"] == done.json["bytes"] == done.json["scans"]["read_bytes"]
        assert sbench("clean", run.path).code == 0
        server.state.request_log.settle()
        assert audited(run, request_log, cleaned=True).left == ()


def test_another_scan_than_those_of_the_job_is_found_in_the_request_log(tmp_path: Path) -> None:
    request_log = tmp_path / "request_log"
    with serving(LoopbackSettings(request_log=request_log)) as server:
        _, run = columns(Sbench(tmp_path, KEYS), server, "--size", "1MiB", "--number", 2)
        server.state.request_log.settle()
    lines = request_log.read_text().splitlines(keepends=True)
    gets = [number for number, line in enumerate(lines) if '"get"' in line]
    request_log.write_text("".join(lines[: gets[5]] + lines[gets[5] + 1 :]))
    assert "asked" in {one.about for one in audited(run, request_log).differences}


def test_the_layout_of_a_real_file_is_scanned_and_cleaned(sbench: Sbench, embedded: Server) -> None:
    del embedded
    table = pa.table({f"name {n}": [f"{n}/{row}" for row in range(4000)] for n in range(9)})
    path = sbench.directory / "like.parquet"
    pq.write_table(table, path, row_group_size=500)
    done = sbench(
        "parquet", "--layout-from", path, "--number", 2, "--format", "json", "--name", "like"
    )
    assert done.code == 0, done
    size = path.stat().st_size
    assert done.json["object_bytes"] == size
    chunks = pq.ParquetFile(path).metadata
    sizes = [
        chunks.row_group(group).column(column).total_compressed_size
        for group in range(8)
        for column in range(9)
    ]
    assert done.json["scans"]["needed_bytes"] < 2 * (sum(sizes) + size)
    header = (sbench.directory / "sbench-runs/like/run.json").read_text()
    assert "name 3" not in header
    assert "like.parquet" not in json.dumps(json.loads(header)["job"])
    cleaned = sbench("clean", "sbench-runs/like")
    assert "deleted 2 objects" in cleaned.out


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--layout-from", "nothing.parquet"), "nothing.parquet is not a file"),
        (("--layout-from", "fifo"), "fifo is not a file"),
        (("--layout-from", "wrong.json"), "wrong.json has no layout"),
        (
            ("--layout-from", "layout.json", "--mb", "3"),
            "--layout-from determines size, row groups",
        ),
        (
            ("--layout-from", "layout.json", "--columns", "3"),
            "--layout-from determines size, row groups",
        ),
        (("--row-groups", "1000", "--columns", "1000"), "times --columns are 1,000,000"),
        (("--sizes", "uniform:1KiB:2KiB"), "No such option"),
    ],
)
def test_wrong_flags_are_a_line_and_exit_code_2(
    sbench: Sbench, flags: tuple[str, ...], says: str
) -> None:
    os.mkfifo(sbench.directory / "fifo")
    (sbench.directory / "wrong.json").write_text("{}")
    (sbench.directory / "layout.json").write_text('{"row_groups": [[[4, 100]]]}')
    done: Any = sbench("parquet", "--bucket", "b", "--number", 1, *flags)
    assert (done.code, done.out) == (2, ""), done
    assert says in done.err
    assert "Traceback" not in done.err
