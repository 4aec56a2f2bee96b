"""Stores and codecs for the libraries that build on Zarr-Python."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

import zarr
from numcodecs import Blosc, Zstd
from obstore.store import S3Store
from zarr.codecs import BloscCname, BloscCodec, ZstdCodec
from zarr.storage import LocalStore, ObjectStore

from serverless_bench.clients.base import is_virtual
from serverless_bench.features.array.libraries.base import CLEVEL
from serverless_bench.features.array.load import ITEM_BYTES, ArraySpec
from serverless_bench.job.target import Target, Transfer

FORMATS: Final[Mapping[str, Literal[2, 3]]] = {"zarr": 2, "zarr3": 3}


def open_store(array: ArraySpec, target: Target, transfer: Transfer, where: str) -> Any:
    """Return a store with ``where`` as its root.

    Each array needs a separate store: Zarr-Python creates a group in each folder above an array,
    and those folders may contain objects of other users.
    """
    if array.path is not None:
        return LocalStore(Path(where))
    endpoint = target.endpoint_url
    virtual = is_virtual(target.addressing, endpoint, target.bucket)
    if virtual:
        endpoint = endpoint.replace("://", f"://{target.bucket}.", 1)
    store = S3Store(
        target.bucket,
        prefix=where,
        endpoint=endpoint,
        region=target.region,
        virtual_hosted_style_request=virtual,
        client_options={"allow_http": True, "timeout": f"{transfer.timeout:g}s"},
        retry_config={"max_retries": transfer.retries},
    )
    return ObjectStore(store)


def compressors(array: ArraySpec) -> Any:
    """Return the codec for Zarr-Python; None for no codec."""
    kind, _, inner = array.codec.partition("-")
    if kind == "none":
        return None
    if array.driver == "zarr":
        if kind == "zstd":
            return Zstd(level=CLEVEL)
        return Blosc(cname=inner, clevel=CLEVEL, shuffle=Blosc.SHUFFLE)
    if kind == "zstd":
        return ZstdCodec(level=CLEVEL, checksum=False)
    # Without a type size, Blosc's shuffle would move single bytes.
    size = ITEM_BYTES[array.dtype]
    return BloscCodec(typesize=size, cname=BloscCname(inner), clevel=CLEVEL, shuffle="shuffle")


def configure(*, requests: int | None, threads: int | None) -> None:
    """Set the number of requests and threads of Zarr-Python; None keeps its default."""
    wanted = {"async.concurrency": requests, "threading.max_workers": threads}
    zarr.config.set({name: value for name, value in wanted.items() if value is not None})
