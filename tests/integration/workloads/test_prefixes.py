"""With any prefix of keys, reads are verified, bytes have their shape, and clean cleans."""

import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from serverless_bench.base.units import KIB
from serverless_bench.cli.main import main
from serverless_bench.clients import CLIENTS
from serverless_bench.driver.boto import open_s3
from serverless_bench.driver.clean import clean
from serverless_bench.driver.run import run_job
from serverless_bench.features.array.load import ArrayLoad, ArraySpec
from serverless_bench.job.workload import Load
from serverless_bench.metrics.summary import summarize
from serverless_bench.worker.invocation import forget_clients
from tests.commands.in_process import names, run_here
from tests.house.members import uses
from tests.stores.servers import KEYS, Server, credentials, loopback, rclone

OLD = f"{'0123456789abcdef' * 2}.70000"
"""Rest of a key of sbench."""
PREFIXES = (
    "",
    "bench-",
    "run1",
    "cafe",
    "a.b.",
    f"{OLD}/",
    f"{OLD}.",
    "with space/and+%41&=?#",
    "\u00fcber/\u4e2d\u6587-",
    "p" * 200 + "/" + "q" * 200,
)
ODD = "\u00fcber/\u4e2d a+%41&=?#~cafe"
SIZE = 70_001


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Flips a bit in every body that it sends; writes are compared, too."""
    log = tmp_path_factory.mktemp("loopback") / "out"
    with loopback("--flip", "1", log=log) as running, credentials(KEYS):
        yield running
        forget_clients()


@pytest.fixture(scope="module")
def store(embedded: Server) -> Iterator[Server]:
    with credentials(embedded.environment):
        yield embedded
        forget_clients()


@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_wrong_bit_is_found_for_every_prefix(tmp_path: Path, server: Server, prefix: str) -> None:
    wrote = run_here(
        tmp_path / "w",
        server,
        prefix=prefix,
        workload="write",
        number=2,
        size=SIZE,
    )
    read = summarize(run_here(tmp_path / "r", server, wrote.keys(), workload="read", number=2))
    assert (read.corrupt_objects, read.unknown_objects) == (2, 0)
    assert read.bad_bytes > 0


# The other clients with all unusual keys at once.
@uses("feature barrier")
@pytest.mark.parametrize(
    ("client", "prefix"),
    [
        *(("wire", prefix) for prefix in PREFIXES if prefix),
        *((client, ODD) for client in CLIENTS if client != "wire"),
    ],
)
def test_objects_are_shaped_verified_and_cleaned_up(
    tmp_path: Path, store: Server, client: str, prefix: str, stack: ExitStack
) -> None:
    stack.callback(forget_clients)
    load = Load(compressibility=4, duplication=2, layout="sharded:3")
    wrote = run_here(
        tmp_path / "w",
        store,
        client=client,
        prefix=prefix,
        workload="write",
        number=2,
        objects=2,
        size=SIZE,
        load=load,
        options={"barrier": 1.0},
    )
    keys = wrote.keys()
    assert len(keys) == 4, wrote.operations["error"]
    read = summarize(
        run_here(tmp_path / "r", store, keys, client=client, workload="read", number=4)
    )
    assert (read.ok, read.verified_bytes, read.unknown_objects) == (4, 4 * SIZE, 0)
    s3: Any = open_s3(wrote.job.target)
    body = s3.get_object(Bucket=store.bucket, Key=keys[0])["Body"].read()
    # Its window is too small for the repetitions; 4,096 / 4 bytes of each block are left.
    assert len(zlib.compress(body)) < SIZE / 3.5
    assert set(names(store, prefix)) >= set(keys)
    cleaned = clean(tmp_path / "w")
    assert (cleaned.deleted.objects, cleaned.deleted.foreign) == (4, [])
    assert not set(names(store, prefix)) & set(keys)


@uses("feature barrier")
@pytest.mark.parametrize("prefix", ["cafe", f"{OLD}/", "a b+%41/\u00fc-"])
def test_arrays_and_mixes_are_cleaned_up(tmp_path: Path, store: Server, prefix: str) -> None:
    array = ArraySpec(library="tensorstore", shape=(64, 64), chunks=(32, 64), dtype="float32")
    wrote = run_here(
        tmp_path / "w",
        store,
        prefix=prefix,
        workload="array",
        number=1,
        load=ArrayLoad(array=array),
        options={"barrier": 1.0},
    )
    (key,) = wrote.keys()
    job = replace(wrote.job, load=ArrayLoad(array=replace(array, operation="read")), options={})
    read = summarize(run_job(job, tmp_path / "r", keys=[key]))
    assert read.verified_bytes == 64 * 64 * 4
    mixed = run_here(
        tmp_path / "m",
        store,
        prefix=prefix,
        workload="mixed",
        number=1,
        objects=4,
        size=5 * KIB,
        load=Load(mix=(("get", 1), ("put", 1), ("copy", 1), ("delete", 1)), operations=20),
    )
    assert summarize(mixed).failed == 0
    mine = {*wrote.ledger(), *mixed.ledger()}
    assert mine & set(names(store, prefix))
    for name in ("w", "m"):
        cleaned = clean(tmp_path / name)
        assert cleaned.deleted.foreign == []
    assert not mine & set(names(store, prefix))


def test_clean_works_where_uploads_are_not_listed(
    tmp_path: Path, prefix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    # A store of its own, because rclone does list uploads after its bucket had some.
    with rclone(tmp_path) as fresh, credentials(fresh.environment):
        run_here(
            tmp_path / "w",
            fresh,
            prefix=prefix,
            workload="write",
            number=2,
            size=SIZE,
        )
        assert len(names(fresh, prefix)) == 2
        assert main(["clean", str(tmp_path / "w")]) == 0
        forget_clients()
        assert not names(fresh, prefix)
    text = capsys.readouterr().out
    assert text.startswith("deleted 2 objects, uploads not looked for")
