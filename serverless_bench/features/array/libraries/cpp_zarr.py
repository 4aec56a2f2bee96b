"""cppzarr: Zarr in C++ with OpenMP, for files."""

from dataclasses import dataclass
from typing import Any, ClassVar

from serverless_bench.clients.options import option
from serverless_bench.features.array.libraries.base import (
    CLEVEL,
    ArrayLibrary,
    needs,
    parse_options,
    supported,
)
from serverless_bench.features.array.load import ArraySpec
from serverless_bench.job.target import Target, Transfer

needs("cppzarr")

_CODECS = {"none": "none", "blosc-lz4": "lz4", "blosc-zstd": "zstd"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CppZarrOptions:
    """Options of cppzarr."""

    num_threads: int | None = option(None, "threads of one call, as many as CPUs", least=1)


class CppZarr(ArrayLibrary):
    """``cppzarr.write_zarr``, which also creates the array, and ``read_zarr``."""

    supports = supported("cpp_zarr")
    options: ClassVar[type] = CppZarrOptions

    def __init__(self, array: ArraySpec, target: Target, transfer: Transfer) -> None:
        import cppzarr

        self._library = cppzarr
        self._array = array
        self._threads = parse_options(CppZarrOptions, array).num_threads

    def write(self, where: str, block: Any) -> None:
        import numpy as np

        array = self._array
        self._library.write_zarr(
            where,
            np.asarray(block),
            cname=_CODECS[array.codec],
            clevel=CLEVEL,
            order="C",
            chunks=array.chunks,
            dimension_separator="/" if array.driver == "zarr3" else ".",
            zarr_format=3 if array.driver == "zarr3" else 2,
            shards=array.shards,
            num_threads=self._threads,
        )

    def read(self, where: str) -> Any:
        return self._library.read_zarr(where, order="C", num_threads=self._threads)
