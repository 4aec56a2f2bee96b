"""Requested parts of objects, and their sizes: for every client, with a real store."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from serverless_bench.base.units import KIB
from serverless_bench.clients import CLIENTS
from serverless_bench.driver.boto import open_s3
from serverless_bench.job.target import Transfer, Verify
from serverless_bench.job.workload import Load
from serverless_bench.metrics.summary import summarize
from serverless_bench.payload.keystream import Keystream
from serverless_bench.rundir.record import Shown
from serverless_bench.worker.invocation import forget_clients
from tests.commands.in_process import run_here
from tests.contract.declared import info_of
from tests.stores.servers import Server, credentials

SIZE = 300 * KIB


@pytest.fixture(scope="module")
def store(embedded: Server) -> Iterator[Server]:
    with credentials(embedded.environment):
        yield embedded
        forget_clients()


@pytest.mark.parametrize("client", CLIENTS)
def test_functions_that_share_objects_read_every_byte_once(
    tmp_path: Path, store: Server, prefix: str, client: str, stack: ExitStack
) -> None:
    stack.callback(forget_clients)
    sizes = Load(sizes="uniform:1:40KiB")
    wrote = run_here(tmp_path / "w", store, prefix=prefix, workload="write", number=4, load=sizes)
    keys = wrote.keys()
    total = int(wrote.operations["bytes"].sum())
    run = run_here(
        tmp_path / "r",
        store,
        keys,
        client=client,
        workload="read",
        number=4,
        objects=4,
        load=Load(split=4),
    )
    read = summarize(run)
    assert (read.ok, read.bytes, read.verified_bytes) == (4, total, total)
    moved: dict[str, list[tuple[int, int]]] = {}
    rows = zip(*(run.operations[name].tolist() for name in ("key", "offset", "bytes")), strict=True)
    for key, offset, count in rows:
        moved.setdefault(key, []).append((offset, offset + count))
    assert set(moved) == set(keys)
    for key, spans in moved.items():
        at = 0
        for begin, end in sorted(spans):
            assert begin == at
            at = end
        assert at == wrote.operations["size"][wrote.operations["key"].tolist().index(key)]


@pytest.mark.parametrize("verify", [Verify.FULL, Verify.NONE])
@pytest.mark.parametrize("client", CLIENTS)
def test_ranges_find_surplus_and_missing_bytes(
    tmp_path: Path, store: Server, prefix: str, client: str, verify: Verify, stack: ExitStack
) -> None:
    stack.callback(forget_clients)
    wrote = run_here(tmp_path / "w", store, prefix=prefix, workload="write", number=2, size=SIZE)
    s3: Any = open_s3(wrote.job.target)
    for key, size in zip(wrote.keys(), (SIZE + 5000, SIZE - 5000), strict=True):
        data = bytearray(size)
        Keystream(key).readinto_at(0, data)
        s3.put_object(Bucket=store.bucket, Key=key, Body=bytes(data))
    run = run_here(
        tmp_path / "r",
        store,
        wrote.keys(),
        client=client,
        workload="read",
        number=6,
        load=Load(split=3),
        transfer=Transfer(retries=0, part_size=64 * KIB, verify=verify),
    )
    read = summarize(run)
    # A client that hides it reads the written bytes of a longer object, and reports a missing end.
    shows = Shown.CONTENT_RANGE in info_of(client).shows
    failed, wrong = (6, 10_000) if shows else (1, 5000)
    assert (read.failed, read.bad_bytes, dict(read.errors)) == (failed, wrong, {"corrupt": failed})
    found = {(bad["found"], bad["offset"], bad["length"]) for bad in read.bad_ranges}
    assert found == {("missing", SIZE - 5000, 5000)} | ({("extra", SIZE, 5000)} if shows else set())
