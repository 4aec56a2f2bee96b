"""OME-Zarr: images, written by Dask through Zarr-Python."""

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

from serverless_bench.clients.options import option
from serverless_bench.features.array.libraries.base import (
    ArrayLibrary,
    needs,
    parse_options,
    supported,
)
from serverless_bench.features.array.load import PYRAMID, ArraySpec
from serverless_bench.job.target import Target, Transfer

needs("ome_zarr", "obstore")

_AXES = "tczyx"
"""Axes of an image; an array of fewer axes has the last of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OmeZarrOptions:
    """Options of OME-Zarr and Dask."""

    pyramid: bool = option(default=False, about="write four smaller levels, too")
    workers: int | None = option(None, "threads of Dask, as many as CPUs", least=1)
    async_concurrency: int | None = option(None, "concurrent requests of Zarr-Python, 10", least=1)


class OmeZarr(ArrayLibrary):
    """``ome_zarr.writer.write_image``, which also creates the image."""

    supports = supported("ome_zarr")
    options: ClassVar[type] = OmeZarrOptions

    def __init__(self, array: ArraySpec, target: Target, transfer: Transfer) -> None:
        self._options = options = parse_options(OmeZarrOptions, array)
        with warnings.catch_warnings():
            # ome_zarr itself uses a class that it has deprecated.
            warnings.simplefilter("ignore", DeprecationWarning)
            import ome_zarr.writer  # noqa: F401 - see needs
        from serverless_bench.features.array.libraries import zarr_parts

        zarr_parts.configure(requests=options.async_concurrency, threads=None)
        self._parts = zarr_parts
        self._of = (array, target, transfer)
        self._written: set[str] = set()

    def write(self, where: str, block: Any) -> None:
        import dask
        import zarr
        from ome_zarr.writer import write_image

        array = self._of[0]
        group = zarr.open_group(
            self._parts.open_store(*self._of, where),
            mode="a",
            zarr_format=self._parts.FORMATS[array.driver],
        )
        storage = {
            "chunks": array.chunks,
            "compressor": self._parts.compressors(array),
            # Only a second write needs to list and delete the existing objects.
            "overwrite": where in self._written,
            **({} if array.shards is None else {"shards": array.shards}),
        }
        self._written.add(where)
        with dask.config.set(num_workers=self._options.workers), warnings.catch_warnings():
            # The mean of random floats overflows.
            warnings.simplefilter("ignore", RuntimeWarning)
            write_image(
                block,
                group,
                scale_factors=list(PYRAMID) if self._options.pyramid else [],
                axes=_AXES[-len(array.shape) :],
                storage_options=storage,
            )

    def read(self, where: str) -> Any:
        import dask
        import zarr
        from ome_zarr import OMEZarrMultiscale

        group = zarr.open_group(self._parts.open_store(*self._of, where), mode="r")
        image = OMEZarrMultiscale.from_ome_zarr(group).images[0]
        with dask.config.set(num_workers=self._options.workers):
            return image.data.compute()
