import json
import os
from dataclasses import replace
from math import prod
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serverless_bench.base.errors import Corrupt, NotFound, OperationError, UsageError
from serverless_bench.base.process import peak_rss_bytes
from serverless_bench.base.units import MIB
from serverless_bench.cli.main import main
from serverless_bench.clients.options import documented
from serverless_bench.features.array.libraries import ARRAYS, tensorstore
from serverless_bench.features.array.libraries.base import (
    FEATURES,
    UNSUPPORTED,
    as_operation_error,
    unsupported,
)
from serverless_bench.features.array.libraries.check import check_array
from serverless_bench.features.array.load import (
    METADATA,
    ArrayLoad,
    ArraySpec,
    array_bytes,
    array_keys,
    chunk_names,
    is_smaller_level,
    run_bytes,
    shape_at,
)
from serverless_bench.features.array.operation import Watch, open_array_library
from serverless_bench.features.array.workload import WORKLOAD
from serverless_bench.job.keys import parent_key
from serverless_bench.job.operations import OperationKind
from serverless_bench.job.spec import InvocationSpec, JobSpec
from serverless_bench.job.target import Target, Transfer
from serverless_bench.rundir.received import readable_keys
from serverless_bench.rundir.record import FoundBytes, OperationRecord
from tests.data.arrays import NOWHERE, Session, files_of, key_of
from tests.data.runs import operation, record
from tests.house.members import uses
from tests.tables import each_row

ARRAY = ArraySpec(library="zarr", shape=(500, 512), chunks=(128, 256))
CODECS = ("none", "blosc-lz4", "blosc-zstd", "zstd")


def test_every_library_is_in_the_table_of_missing_features() -> None:
    assert set(ARRAYS) == set(UNSUPPORTED)
    for name in ARRAYS:
        library = ARRAYS.load(name)
        assert library.supports == set(FEATURES) - set(UNSUPPORTED[name])
        assert all(documented(library.options).values())
        assert set(UNSUPPORTED[name]) <= set(FEATURES)


@pytest.mark.parametrize("library", ARRAYS)
@pytest.mark.parametrize("driver", ["zarr", "zarr3"])
@pytest.mark.parametrize("codec", CODECS)
def test_files_come_back_and_are_those_of_the_ledger(
    library: str, driver: str, codec: str, tmp_path: Path
) -> None:
    array = replace(ARRAY, library=library, driver=driver, codec=codec, path=str(tmp_path))
    if unsupported(array):
        pytest.skip("not supported")
    check_array(array)
    key, session = key_of(array), Session()
    usage = session.write(array, key)
    assert [(meter.request, meter.bytes) for meter, _ in session.last.retrier.done] == [
        ("create_array", 0),
        ("write_array", array_bytes(array)),
    ]
    assert usage.threads_peak is None or usage.threads_peak >= 1
    assert session.read(array, key) == array_bytes(array)
    there, may = set(files_of(array, key)), set(array_keys(array, key))
    assert there <= may
    assert _chunks(there) == _chunks(may)
    # Whoever wrote it, Zarr-Python reads it.
    if library != "ome_zarr":
        assert session.read(replace(array, library="zarr"), key) == array_bytes(array)


@pytest.mark.parametrize("driver", ["zarr", "zarr3"])
@pytest.mark.parametrize("codec", CODECS)
def test_all_libraries_make_chunks_of_the_same_size(
    driver: str, codec: str, tmp_path: Path
) -> None:
    sizes = {}
    for library in ARRAYS:
        array = replace(ARRAY, library=library, driver=driver, codec=codec, path=str(tmp_path))
        if unsupported(array):
            continue
        # Whole chunks, because the padding at the end of an array may compress a little.
        array = replace(array, shape=(512, 512))
        key = key_of(array)
        Session().write(array, key)
        chunks = files_of(array, key)
        sizes[library] = {chunks[name].stat().st_size for name in _chunks(set(chunks))}
    assert len(set(map(frozenset, sizes.values()))) == 1, sizes


@pytest.mark.parametrize("library", [n for n in ARRAYS if "append" not in UNSUPPORTED[n]])
@pytest.mark.parametrize("shards", [None, (256, 512)])
def test_appends_make_one_array(
    library: str, shards: tuple[int, ...] | None, tmp_path: Path
) -> None:
    array = ArraySpec(
        library=library,
        operation="append",
        driver="zarr3" if shards else "zarr",
        shape=(256, 512),
        chunks=(128, 256),
        shards=shards,
        codec="blosc-lz4",
        path=str(tmp_path),
    )
    check_array(array)
    key, session = key_of(array, appends=3), Session()
    session.append(array, key, 0)
    session.append(array, key, 1)
    with pytest.raises(Corrupt):
        session.read(array, key)
    (bad,) = session.last.bad.listed
    size = array_bytes(array)
    assert (bad.found, bad.offset, bad.length) == (FoundBytes.MISSING, 2 * size, size)
    # In a second round the same appends write the same bytes.
    for number in (2, 0):
        session.append(array, key, number)
    assert session.read(array, key) == 3 * size
    assert _chunks(set(files_of(array, key))) == _chunks(set(array_keys(array, key)))


def test_every_library_takes_an_array_of_jax(tmp_path: Path) -> None:
    for library in ARRAYS:
        array = replace(ARRAY, library=library, source="jax", path=str(tmp_path))
        check_array(array)
        key, session = key_of(array), Session()
        session.write(array, key)
        # The keystream contains many NaNs, whose bits are preserved.
        assert session.read(array, key) == array_bytes(array)


def test_threads_of_http_are_decided_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensorstore, "_http_threads", {})
    monkeypatch.delenv("TENSORSTORE_HTTP_THREADS", raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "any")
    three, four = (
        replace(ARRAY, library="tensorstore", library_option=(("http_threads", n),)) for n in "34"
    )
    for _ in range(2):
        open_array_library(three, NOWHERE, Transfer()).close()
    assert os.environ.pop("TENSORSTORE_HTTP_THREADS") == "3"
    with pytest.raises(UsageError, match="has 3 HTTP threads in this process, not 4"):
        open_array_library(four, NOWHERE, Transfer())


@pytest.mark.parametrize("library", ARRAYS)
def test_a_wrong_byte_and_a_missing_array_are_found(library: str, tmp_path: Path) -> None:
    array = replace(ARRAY, library=library, path=str(tmp_path))
    key, session = key_of(array), Session()
    session.write(array, key)
    chunk = files_of(array, key)[f"{key}/s0/0/1" if library == "ome_zarr" else f"{key}/0.1"]
    data = bytearray(chunk.read_bytes())
    data[5] ^= 1
    chunk.write_bytes(data)
    with pytest.raises(Corrupt):
        session.read(array, key)
    (bad,) = session.last.bad.listed
    assert (bad.offset, bad.length) == (256 * 4 + 5, 1)
    assert session.last.verified_bytes == array_bytes(array) - 1
    with pytest.raises(NotFound):
        session.read(array, key_of(array))


@pytest.mark.parametrize("driver", ["zarr", "zarr3"])
def test_a_pyramid_is_in_the_ledger_and_is_counted(driver: str, tmp_path: Path) -> None:
    array = ArraySpec(
        library="ome_zarr",
        driver=driver,
        shape=(2, 250, 301),
        chunks=(1, 128, 301),
        dtype="uint8",
        path=str(tmp_path),
        library_option=(("pyramid", "yes"),),
    )
    key, session = key_of(array), Session()
    session.write(array, key)
    assert session.read(array, key) == array_bytes(array)
    there, may = set(files_of(array, key)), set(array_keys(array, key))
    assert there <= may
    assert _chunks(there) == _chunks(may)
    levels = {name for name in there if is_smaller_level(name)}
    assert {name.split("/")[2] for name in levels} == {"s1", "s2", "s3", "s4"}


def test_memory_and_threads_are_those_of_the_block() -> None:
    before = peak_rss_bytes()
    with Watch() as watch:
        held = bytearray(b"\1") * (32 * MIB)
        del held
    usage = watch.usage()
    if usage.rss_before_bytes is None or usage.rss_peak_bytes is None:
        pytest.skip("nobody sees the resident set here")
    assert 32 * MIB <= usage.rss_peak_bytes - usage.rss_before_bytes + MIB < 40 * MIB
    assert usage.threads_peak is not None
    assert usage.cpu_user_s + usage.cpu_sys_s > 0
    # The kernel may reset its peak, but the record of the function keeps it.
    assert peak_rss_bytes() >= before


lengths = st.integers(1, 40)


@given(
    st.lists(st.tuples(lengths, lengths), min_size=1, max_size=3),
    st.sampled_from(["zarr", "zarr3"]),
    st.sampled_from(["zarr", "ome_zarr"]),
)
def test_the_ledger_has_each_chunk_once(
    axes: list[tuple[int, int]], driver: str, library: str
) -> None:
    shape, chunks = (tuple(axis) for axis in zip(*axes, strict=True))
    array = ArraySpec(library=library, driver=driver, shape=shape, chunks=chunks, dtype="uint16")
    key = key_of(array, prefix="a/b/")
    assert shape_at(array, key) == shape
    keys = list(array_keys(array, key))
    assert len(set(keys)) == len(keys)
    assert all(parent_key(each) == key for each in keys)
    counts = [-(-length // chunk) for length, chunk in axes]
    assert len(_chunks(set(keys))) == prod(counts) == len(list(chunk_names(array, shape, ".")))
    assert parent_key(key) is None
    assert 2 <= run_bytes(array) <= array_bytes(array)


@each_row(
    ("changes", "message"),
    [
        ({"library": "cpp_zarr"}, "writes files only"),
        ({"library": "cpp_zarr", "path": "/x", "codec": "zstd"}, "blosc-zstd"),
        ({"library": "cpp_zarr", "path": "/x", "operation": "append"}, "longer"),
        ({"library": "ome_zarr", "operation": "append"}, "whole images"),
        ({"library": "ome_zarr", "shape": (1,) * 5 + (64,), "chunks": (1,) * 5 + (64,)}, "5 axes"),
        ({"codec": "gzip"}, "`codec`"),
        ({"dtype": "float64"}, "`dtype`"),
        ({"driver": "n5"}, "`driver`"),
        ({"source": "torch"}, "`source`"),
        ({"chunks": (128,)}, "`chunks` 128"),
        ({"chunks": (128, 0)}, "`chunks`"),
        ({"chunks": (128, 16)}, "keeps only 64 bytes"),
        ({"shards": (256, 512)}, "only zarr3"),
        ({"shards": (200, 512), "driver": "zarr3"}, "not a multiple"),
        ({"operation": "append"}, "do not end"),
        ({"shape": (400_000, 512), "chunks": (1, 256)}, "more than"),
        ({"library_option": (("async_concurrency", "0"),)}, "`library_option` async_concurrency=0"),
        ({"library_option": (("threads", "4"),)}, "library 'zarr' has no option 'threads'"),
    ],
)
def test_impossible_arrays_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check_array(replace(ARRAY, **changes))  # type: ignore[arg-type]


@uses("feature barrier")
@each_row(
    ("flags", "message", "code"),
    [
        (("write", "--library", "cpp_zarr"), "writes files only", 2),
        (("write", "--shape", "64,x"), "are not whole numbers", 2),
        (("write", "--library-option", "http_threads"), "has no value", 2),
        (("write", "--path", "x", "--barrier", "1"), "needs a bucket", 2),
        (("read",), "give --key-file", 2),
        (("write", "--library", "n5"), "use one of cpp_zarr, ome_zarr, tensorstore", 3),
    ],
)
def test_the_command_ends_with_one_line(
    flags: tuple[str, ...],
    message: str,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["array", *flags]) == code
    output = capsys.readouterr().err
    assert message in output
    assert "hint: " in output
    assert not list(tmp_path.iterdir())


@each_row(
    ("text", "code"),
    [
        ("NOT_FOUND: Metadata at x does not exist", "not_found"),
        ("PERMISSION_DENIED: y [tensorstore_spec='not_found']", "access_denied"),
        ("Server returned non-2xx status code: 503 Service Unavailable", "throttled"),
        ("HTTP response code: 500", "server_error"),
        ("HTTP error: error sending request\n\nsource: TimedOut", "timeout"),
        ("HTTP error: error sending request\n\nretry_timeout: 10", "connection_error"),
        ("ABORTED: Failed to connect to 127.0.0.1 port 9", "connection_error"),
        ("the moon is full", "bad_request"),
    ],
)
def test_errors_of_libraries_have_our_names(text: str, code: str) -> None:
    error = as_operation_error(ValueError(text))
    assert isinstance(error, OperationError)
    assert error.code == code


def test_the_workload_makes_arrays_or_appends_or_reads() -> None:
    writes = _invocation(ARRAY)
    operations = list(WORKLOAD.operations(writes))
    assert [op.kind for op in operations] == [OperationKind.WRITE_ARRAY] * 3
    size = array_bytes(ARRAY)
    assert {op.size for op in operations} == {size}
    ledger = [key for op in operations for key in array_keys(ARRAY, op.key)]
    assert list(WORKLOAD.keys(writes)) == ledger
    append = replace(ARRAY, operation="append", shape=(256, 512))
    operations = list(WORKLOAD.operations(_invocation(append)))
    block = array_bytes(append)
    assert [op.offset for op in operations] == [0, block, 2 * block]
    assert {(op.key, op.size, op.length) for op in operations} == {
        (operations[0].key, 3 * block, block)
    }
    assert shape_at(append, operations[0].key) == (768, 512)
    read = _invocation(replace(ARRAY, operation="read"), keys=("a", "b"))
    assert [op.key for op in WORKLOAD.operations(read)] == ["a", "b"]
    assert list(WORKLOAD.keys(read)) == []
    assert list(WORKLOAD.keys(_invocation(replace(ARRAY, path="/x")))) == []


def test_an_array_survives_json() -> None:
    array = replace(ARRAY, shards=(256, 512), library_option=(("max_workers", "2"),))
    job = JobSpec(workload="array", target=NOWHERE, number=1, load=ArrayLoad(array=array))
    assert JobSpec.from_json(json.loads(json.dumps(job.to_json()))) == job


def test_only_whole_arrays_are_offered_to_readers() -> None:
    size, write, append = 100, OperationKind.WRITE_ARRAY, OperationKind.APPEND_ARRAY
    operations = (
        _row(write, "whole", size),
        _row(write, "failed", size, error="timeout"),
        _row(OperationKind.READ_ARRAY, "foreign", size),
        _row(append, "grown", 2 * size),
        _row(append, "grown", 2 * size, offset=size),
        _row(append, "short", 2 * size),
        _row(append, "gap", 2 * size, error="timeout"),
        _row(append, "gap", 2 * size, offset=size),
    )
    assert readable_keys(record(0, operations).to_json()["operations"]) == ["whole", "grown"]


def _row(
    kind: OperationKind, key: str, size: int, *, offset: int = 0, error: str | None = None
) -> OperationRecord:
    row = operation(kind=kind, size=size, error=error)
    return replace(row, key=key, offset=offset, bytes=0 if error else 100)


def test_lists_become_shapes_and_texts_do_not() -> None:
    array = ArraySpec(library="zarr", shape=[8, 8], chunks=[4, 4])  # type: ignore[arg-type]
    assert (array.shape, array.chunks) == ((8, 8), (4, 4))
    with pytest.raises(UsageError, match="`shape` must be a list of whole numbers, got '512'"):
        ArraySpec(library="zarr", shape="512", chunks=(1,))  # type: ignore[arg-type]


def _invocation(array: ArraySpec, keys: tuple[str, ...] = ()) -> InvocationSpec:
    return InvocationSpec(
        run_id="run",
        index=0,
        workload="array",
        target=Target(bucket="b", endpoint_url="http://localhost"),
        transfer=Transfer(),
        objects=3,
        size=None,
        read_times=1,
        keys=keys,
        deadline=1.0,
        not_after_ns=0,
        seed=0,
        load=ArrayLoad(array=array),
    )


def _chunks(keys: set[str]) -> set[str]:
    return {key for key in keys if key.rpartition("/")[2] not in METADATA}


@pytest.mark.parametrize("operation", ["", "delete"])
def test_an_operation_that_arrays_lack_is_refused(operation: str) -> None:
    with pytest.raises(UsageError, match="`operation` must be write or append or read"):
        ArraySpec(library="zarr", shape=(4,), chunks=(2,), operation=operation)
