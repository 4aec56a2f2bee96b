"""Arrays on a real store and in files, through the libraries and through the command."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from serverless_bench.base.errors import AccessDenied, ConnectionLost, NotFound
from serverless_bench.cli.main import main
from serverless_bench.driver.boto import open_s3
from serverless_bench.driver.cleanup import delete
from serverless_bench.features.array.libraries import ARRAYS
from serverless_bench.features.array.libraries.base import UNSUPPORTED
from serverless_bench.features.array.load import METADATA, ArraySpec, array_bytes, array_keys
from serverless_bench.job.target import Target
from serverless_bench.job.workload import open_workload
from serverless_bench.rundir.run import load_run
from serverless_bench.worker.invocation import forget_clients
from tests.commands.command import Sbench
from tests.data.arrays import Session, key_of
from tests.stores.servers import Server, credentials

ON_S3 = [name for name in ARRAYS if "s3" not in UNSUPPORTED[name]]
INLINE = ("--executor", "inline")
Here = Callable[..., int]
SMALL = ("--shape", "500,512", "--chunks", "128,256")


def target_of(server: Server) -> Target:
    return Target(bucket=server.bucket, endpoint_url=server.endpoint_url)


def listing(target: Target, prefix: str) -> set[str]:
    pages = open_s3(target).get_paginator("list_objects_v2")
    found = pages.paginate(Bucket=target.bucket, Prefix=prefix)
    return {entry["Key"] for page in found for entry in page.get("Contents", [])}


def chunks(keys: set[str]) -> set[str]:
    return {key for key in keys if key.rpartition("/")[2] not in METADATA}


@pytest.mark.parametrize("library", ON_S3)
@pytest.mark.parametrize(
    ("driver", "codec", "shards"),
    [("zarr", "none", None), ("zarr3", "zstd", (256, 512)), ("zarr3", "blosc-lz4", None)],
)
def test_the_ledger_of_an_array_lists_its_objects(
    library: str,
    driver: str,
    codec: str,
    shards: tuple[int, ...] | None,
    embedded: Server,
    prefix: str,
) -> None:
    array = ArraySpec(
        library=library,
        driver=driver,
        shape=(500, 512),
        chunks=(128, 256),
        shards=shards,
        codec=codec,
    )
    with credentials(embedded.environment):
        session = Session(target_of(embedded))
        key = key_of(array, prefix=prefix)
        session.write(array, key)
        assert session.read(array, key) == array_bytes(array)
        there, may = listing(session.target, prefix), set(array_keys(array, key))
        assert there <= may
        assert chunks(there) == chunks(may)
        # A foreign object in place of a chunk.
        stranger = min(chunks(there))
        open_s3(session.target).put_object(
            Bucket=embedded.bucket, Key=stranger, Body=b"not a chunk" * 100
        )
        target = replace(session.target, prefix=prefix)
        deleted = delete(target, array_keys(array, key), workload=open_workload("array"))
        assert deleted.foreign == [stranger]
        assert listing(session.target, prefix) == {stranger}


@pytest.mark.parametrize("library", ON_S3)
def test_failures_have_names(library: str, embedded: Server, prefix: str) -> None:
    array = ArraySpec(library=library, shape=(64, 64), chunks=(64, 64))
    key = key_of(array, prefix=prefix)
    with credentials(embedded.environment):
        session = Session(target_of(embedded))
        with pytest.raises(NotFound):
            session.read(array, key)
        nowhere = Session(replace(session.target, endpoint_url="http://127.0.0.1:9"))
        with pytest.raises(ConnectionLost):
            nowhere.write(array, key)
        assert nowhere.last.retrier.done[-1][1] is not None
    with credentials({**embedded.environment, "AWS_SECRET_ACCESS_KEY": "wrong"}):
        refused = Session(replace(session.target, region="us-west-2"))
        with pytest.raises(AccessDenied):
            refused.write(array, key)


@pytest.fixture
def here(sbench: Sbench, monkeypatch: pytest.MonkeyPatch) -> Iterator[Here]:
    """The command in this process, which has the libraries already."""
    monkeypatch.chdir(sbench.directory)
    with credentials(sbench.environment):
        yield lambda *words: main(list(words))
    forget_clients()


def test_a_user_writes_reads_and_cleans_arrays(
    sbench: Sbench, here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    first = ("array", "write", "--library", "zarr", *SMALL, "--number", 2, "--name", "w")
    done = sbench(*first, "--key-file", "keys.txt", "--format", "json")
    assert done.code == 0, done.err
    size = 500 * 512 * 4
    assert done.json["bytes"] == 2 * size
    assert done.json["client"] == "zarr"
    (used,) = done.json["libraries"]
    assert (used["kind"], used["count"], used["bytes"]) == ("write_array", 2, 2 * size)
    run = load_run(sbench.directory / "sbench-runs" / "w")
    assert run.provenance["client"]["attempts"] == "hidden"
    assert len(run.keys()) == 2
    # Another library reads the objects of the first one.
    flags = ("--library", "tensorstore", *SMALL, "--objects", "2", *INLINE)
    assert here("array", "read", *flags, "--key-file", "keys.txt") == 0
    output = capsys.readouterr().out
    assert "every byte" in output
    assert "read_array" in output
    assert here("clean", "sbench-runs/w") == 0
    # 8 chunks of each array, .zarray and .zattrs.
    assert "deleted 20 objects" in capsys.readouterr().out


def test_a_user_appends_to_an_array_in_files(
    sbench: Sbench, here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    shape = ("--driver", "zarr3", "--shape", "256,512", "--chunks", "128,512")
    flags = ("--library", "zarr", "--codec", "blosc-lz4", *shape, "--path", "arrays", *INLINE)
    assert here("array", "append", *flags, "--objects", "3", "--name", "a") == 0
    keys = sbench.directory / "sbench-runs" / "a" / "keys.txt"
    (folder,) = (sbench.directory / "arrays").iterdir()
    assert keys.read_text().strip().endswith(folder.name)
    assert here("array", "read", *flags, "--key-file", str(keys)) == 0
    assert "verified 1.5 MiB, every byte" in capsys.readouterr().out
    (folder / "c" / "4" / "0").unlink()
    assert here("array", "read", *flags, "--key-file", str(keys)) == 7
    # A foreign folder in the same place is not deleted.
    other = sbench.directory / "arrays" / "mine"
    other.mkdir()
    assert here("clean", "sbench-runs/a") == 0
    assert list((sbench.directory / "arrays").iterdir()) == [other]
