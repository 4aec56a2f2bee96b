"""Loads of arrays."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal

from serverless_bench.job.load import Load
from serverless_bench.job.types import Limits, check_types, wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class ArraySpec:
    """An array that a library writes, appends to or reads.

    Parameters
    ----------
    library
        tensorstore, zarr, ome_zarr or cpp_zarr.
    operation
        write, append or read.
    driver
        Format on the store: zarr (version 2) or zarr3.
    shape
        Shape of the array, or of an append.
    chunks
        Shape of a chunk, one length per axis.
    shards
        Chunks that share an object; None for an object per chunk.
    dtype
        Type of an element.
    codec
        none, blosc-lz4 or zstd.
    source
        Library that holds the data in memory: numpy or jax.
    path
        A directory for arrays in files; None for the target's bucket.
    library_option
        Options of the library, as names and values.

    Examples
    --------
    >>> array = sbench.ArraySpec(library="zarr", shape=(512, 512), chunks=(256, 256))
    >>> array.dtype, array.codec
    ('float32', 'none')
    """

    library: str
    operation: Annotated[str, Literal["write", "append", "read"]] = "write"
    driver: str = "zarr"
    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    shards: tuple[int, ...] | None = None
    dtype: str = "float32"
    codec: str = "none"
    source: str = "numpy"
    path: str | None = None
    library_option: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        check_types(self)
        for name in ("shape", "chunks", "shards"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, tuple(value))
        object.__setattr__(self, "library_option", tuple((n, v) for n, v in self.library_option))


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayLoad(Load):
    """The operations of a function on arrays.

    Parameters
    ----------
    array
        The array that is written, appended to or read.

    Examples
    --------
    >>> array = sbench.ArraySpec(library="zarr", shape=(512, 512), chunks=(256, 256))
    >>> sbench.ArrayLoad(array=array).library
    'zarr'
    """

    array: ArraySpec | None = None
    # Arrays at a rate, which only Python offers.
    rate: Annotated[float | None, Limits(positive=True)] = None
    arrivals: Annotated[str, Literal["uniform", "poisson"]] = "uniform"

    @classmethod
    def made(cls, settings: Mapping[str, Any]) -> Load:
        """Return the load with the array that settings describe."""
        if settings["operation"] is None:
            raise wrong("operation", "is missing", hint='as in operation = "write"')
        return cls(array=ArraySpec(**{f.name: settings[f.name] for f in fields(ArraySpec)}))

    @property
    def library(self) -> str | None:
        """The library that moves the bytes."""
        return None if self.array is None else self.array.library

    @property
    def folder(self) -> str | None:
        """The directory of arrays in files; None for a bucket."""
        return None if self.array is None else self.array.path
