"""Zarr-Python 3, on obstore for S3."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from serverless_bench.clients.options import option
from serverless_bench.features.array.libraries.base import needs, parse_options, supported
from serverless_bench.features.array.libraries.blocks import NUMPY_TYPES
from serverless_bench.features.array.load import ArraySpec
from serverless_bench.job.target import Target, Transfer

needs("zarr", "obstore")


@dataclass(frozen=True, slots=True, kw_only=True)
class ZarrOptions:
    """Options of Zarr-Python."""

    async_concurrency: int | None = option(None, "requests in flight, 10", least=1)
    max_workers: int | None = option(None, "threads that encode, CPUs and 4 more", least=1)


class ZarrPython:
    """Zarr-Python, through its synchronous interface."""

    supports = supported("zarr")
    options: ClassVar[type] = ZarrOptions

    def __init__(self, array: ArraySpec, target: Target, transfer: Transfer) -> None:
        options = parse_options(ZarrOptions, array)
        from serverless_bench.features.array.libraries import zarr_parts

        zarr_parts.configure(requests=options.async_concurrency, threads=options.max_workers)
        self._parts = zarr_parts
        self._of = (array, target, transfer)
        self._array: Any = None

    def create(self, where: str, shape: Sequence[int]) -> None:
        import zarr

        array, store = self._of[0], self._parts.open_store(*self._of, where)
        try:
            self._array = zarr.create_array(
                store,
                shape=tuple(shape),
                chunks=array.chunks,
                shards=array.shards,
                dtype=NUMPY_TYPES[array.dtype],
                compressors=self._parts.compressors(array),
                fill_value=0,
                zarr_format=self._parts.FORMATS[array.driver],
            )
        except zarr.errors.ContainsArrayError:
            self._array = zarr.open_array(store, mode="r+")

    def write(self, where: str, block: Any) -> None:
        self._array[...] = block

    def append(self, where: str, block: Any, row: int) -> None:
        """Append as ``zarr.Array.append`` does, but at a given row."""
        end = row + block.shape[0]
        if self._array.shape[0] < end:
            self._array.resize((end, *block.shape[1:]))
        self._array[row:end] = block

    def read(self, where: str) -> Any:
        import zarr

        return zarr.open_array(self._parts.open_store(*self._of, where), mode="r")[...]

    def close(self) -> None:
        self._array = None
