"""TensorStore, Google's library in C++, with a built-in S3 client."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from serverless_bench.base.errors import UsageError
from serverless_bench.clients.base import AWS_HOST
from serverless_bench.clients.options import option
from serverless_bench.features.array.libraries.base import CLEVEL, needs, parse_options, supported
from serverless_bench.features.array.libraries.blocks import NUMPY_TYPES
from serverless_bench.features.array.load import ITEM_BYTES, ArraySpec
from serverless_bench.job.target import Addressing, Target, Transfer

needs("tensorstore")

_LITTLE: Final = {"name": "bytes", "configuration": {"endian": "little"}}

_http_threads: dict[int, int | None] = {}
"""Number of HTTP threads that each process, by id, started with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorStoreOptions:
    """Options of TensorStore."""

    http_threads: int | None = option(None, "threads that move HTTP, 4", least=1)
    s3_request_concurrency: int | None = option(None, "requests in flight, 32", least=1)
    data_copy_concurrency: int | None = option(None, "threads that encode, as CPUs", least=1)
    file_io_concurrency: int | None = option(None, "files open concurrently", least=1)
    file_io_sync: bool = option(
        default=False, about="wait for the disk; its own default is yes, other writers never do"
    )


class TensorStore:
    """TensorStore's zarr and zarr3 drivers."""

    supports = supported("tensorstore")
    options: ClassVar[type] = TensorStoreOptions

    def __init__(self, array: ArraySpec, target: Target, transfer: Transfer) -> None:
        options = parse_options(TensorStoreOptions, array)
        _begin(options.http_threads)
        import tensorstore

        self._library = tensorstore
        self._array = array
        self._target = target
        self._context = tensorstore.Context(_context(options, transfer))
        self._store: Any = None

    def create(self, where: str, shape: Sequence[int]) -> None:
        metadata = _metadata(self._array, shape)
        try:
            self._store = self._open(where, metadata=metadata, create=True, open=True)
        except ValueError as exc:
            if self._array.operation != "append" or "FAILED_PRECONDITION" not in str(exc):
                raise
            # A later round appends to an array that has already been extended.
            self._store = self._open(where)

    def write(self, where: str, block: Any) -> None:
        self._store.write(block).result()

    def append(self, where: str, block: Any, row: int) -> None:
        end = row + block.shape[0]
        if self._store.shape[0] < end:
            longer = [end, *block.shape[1:]]
            self._store = self._store.resize(exclusive_max=longer, expand_only=True).result()
        self._store[row:end].write(block).result()

    def read(self, where: str) -> Any:
        return self._open(where).read().result()

    def close(self) -> None:
        self._store = None

    def _open(self, where: str, **extra: object) -> Any:
        spec = {"driver": self._array.driver, "kvstore": self._kvstore(where), **extra}
        return self._library.open(spec, context=self._context).result()

    def _kvstore(self, where: str) -> dict[str, Any]:
        if self._array.path is not None:
            return {"driver": "file", "path": f"{where}/"}
        target = self._target
        kind = "environment" if "AWS_ACCESS_KEY_ID" in os.environ else "default"
        return {
            "driver": "s3",
            "bucket": target.bucket,
            "path": f"{where}/",
            "aws_region": target.region,
            "aws_credentials": {"type": kind},
            **_endpoint(target),
        }


def _begin(http_threads: int | None) -> None:
    """Set the environment variables that TensorStore uses, once per process.

    Raises
    ------
    UsageError
        If this process has already started with a different number.
    """
    initial = _http_threads.setdefault(os.getpid(), http_threads)
    if initial != http_threads:
        raise UsageError(
            f"TensorStore has {initial or 4} HTTP threads in this process, not {http_threads or 4}",
            hint="it is fixed per process: use an executor with a process for each function",
        )
    if http_threads is not None:
        os.environ["TENSORSTORE_HTTP_THREADS"] = str(http_threads)


def _endpoint(target: Target) -> dict[str, str]:
    """Return the endpoint, unless TensorStore determines it by itself."""
    scheme, _, host = target.endpoint_url.partition("://")
    if target.addressing is Addressing.VIRTUAL:
        host = f"{target.bucket}.{host}"
        return {"endpoint": f"{scheme}://{host}", "host_header": host}
    if AWS_HOST in host and target.addressing is Addressing.AUTO:
        return {}
    return {"endpoint": target.endpoint_url}


def _context(options: TensorStoreOptions, transfer: Transfer) -> dict[str, Any]:
    limits = {
        name: {"limit": limit}
        for name in ("s3_request_concurrency", "data_copy_concurrency", "file_io_concurrency")
        if (limit := getattr(options, name)) is not None
    }
    # TensorStore counts attempts, not retries.
    attempts = {"max_retries": transfer.retries + 1}
    return {**limits, "file_io_sync": options.file_io_sync, "s3_request_retries": attempts}


def _metadata(array: ArraySpec, shape: Sequence[int]) -> dict[str, Any]:
    if array.driver == "zarr":
        codec = _codec(array, shuffle=1)
        return {
            "shape": list(shape),
            "chunks": list(array.chunks),
            "dtype": NUMPY_TYPES[array.dtype],
            "compressor": codec and {"id": codec[0], **codec[1]},
            "fill_value": 0,
        }
    codecs: list[dict[str, Any]] = [_LITTLE]
    if codec := _codec(array, shuffle="shuffle", typesize=ITEM_BYTES[array.dtype]):
        codecs.append({"name": codec[0], "configuration": codec[1]})
    if array.shards is not None:
        inner = {
            "chunk_shape": list(array.chunks),
            "codecs": codecs,
            "index_codecs": [_LITTLE, {"name": "crc32c"}],
        }
        codecs = [{"name": "sharding_indexed", "configuration": inner}]
    return {
        "shape": list(shape),
        "chunk_grid": {
            "name": "regular",
            "configuration": {"chunk_shape": list(array.shards or array.chunks)},
        },
        "data_type": array.dtype,
        "codecs": codecs,
        "fill_value": 0,
    }


def _codec(array: ArraySpec, **blosc: Any) -> tuple[str, dict[str, Any]] | None:
    """Return the codec's name and settings; Blosc's have a different form in each format."""
    kind, _, inner = array.codec.partition("-")
    if kind == "blosc":
        return kind, {"cname": inner, "clevel": CLEVEL, "blocksize": 0, **blosc}
    return None if kind == "none" else (kind, {"level": CLEVEL})
