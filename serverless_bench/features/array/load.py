"""Loads of arrays, and the layout as objects: a pure function of specification and key.

Element ``i`` of an array in C order holds the keystream bytes of the array's key from ``i *
itemsize`` on. The key declares the array's size in bytes, which determines the shape: an append
adds rows, and the key declares the final number of rows.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import chain, product
from math import prod
from typing import Annotated, Any, Final, Literal

from serverless_bench.base.errors import UsageError
from serverless_bench.job.keys import declared_size, parent_key
from serverless_bench.job.operations import OperationKind
from serverless_bench.job.types import Limits, check_types, wrong
from serverless_bench.job.workload import Load


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


ITEM_BYTES: Final[Mapping[str, int]] = {"uint8": 1, "uint16": 2, "uint32": 4, "float32": 4}
"""Bytes per element. JAX has no wider types unless ``jax_enable_x64`` is set."""

_METADATA: Final = {"zarr": (".zarray", ".zattrs", ".zgroup"), "zarr3": ("zarr.json",)}
METADATA: Final = frozenset().union(*_METADATA.values())
"""Names of the objects that do not hold chunks (Zarr specifications 2 and 3)."""

PYRAMID: Final = (2, 4, 8, 16)
"""Factors by which the additional levels of an OME-Zarr image are smaller, along y and x
(``ome_zarr.writer.write_image``)."""

_LEVEL: Final = re.compile(r"/s[1-9]/")


def array_bytes(array: ArraySpec) -> int:
    """Return the size in bytes of an array, or of an append."""
    return prod(array.shape) * ITEM_BYTES[array.dtype]


def shape_at(array: ArraySpec, key: str) -> tuple[int, ...]:
    """Return the final shape of the array at ``key``.

    Raises
    ------
    UsageError
        If the key declares no size, or the size is not a multiple of the row size.
    """
    size, row = declared_size(key), row_bytes(array)
    if size is None or size % row:
        raise UsageError(
            f"{key} is not an array with rows of {row} bytes",
            hint="`shape` and `dtype` must be the same as when it was written",
        )
    return (size // row, *array.shape[1:])


def row_bytes(array: ArraySpec) -> int:
    """Return the bytes of one step along the first axis."""
    return prod(array.shape[1:]) * ITEM_BYTES[array.dtype]


def run_bytes(array: ArraySpec) -> int:
    """Return the number of neighbouring bytes of an array that a chunk stores contiguously."""
    run = ITEM_BYTES[array.dtype]
    for chunk, length in zip(reversed(array.chunks), reversed(array.shape), strict=True):
        run *= min(chunk, length)
        if chunk < length:
            break
    return run


def array_keys(array: ArraySpec, key: str) -> Iterator[str]:
    """Yield the keys of all objects that a library may create for the array at ``key``.

    The chunk keys are exact; libraries do not necessarily write all of the metadata keys.
    """
    is_image = array.library == "ome_zarr"
    if is_image:
        yield from (f"{key}/{name}" for name in _METADATA[array.driver])
    for number, level in enumerate(_levels(array, shape_at(array, key))):
        folder = f"{key}/s{number}/" if is_image else f"{key}/"
        names = chunk_names(array, level, "/" if is_image else ".")
        yield from (folder + name for name in chain(_METADATA[array.driver], names))


def objects_of(array: ArraySpec, kind: OperationKind, size: int) -> int:
    """Return the smallest number of objects that an operation writes or reads.

    These are all chunks or shards, plus a metadata object if the array is created or opened.

    Parameters
    ----------
    array
        Specification of the array.
    kind
        Kind of the operation.
    size
        Size in bytes that the array's key declares.
    """
    if kind is OperationKind.APPEND_ARRAY:
        return piece_count(array, array.shape)
    shape = (size // row_bytes(array), *array.shape[1:])
    shapes = _levels(array, shape) if kind is OperationKind.WRITE_ARRAY else [shape]
    return sum(piece_count(array, level) + 1 for level in shapes)


def piece_count(array: ArraySpec, shape: Sequence[int]) -> int:
    """Return the number of chunks, or shards, of an array of ``shape``."""
    pieces = array.shards or array.chunks
    return prod(-(-length // piece) for length, piece in zip(shape, pieces, strict=True))


def _levels(array: ArraySpec, shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return the shapes of an array and of the additional levels of an OME-Zarr image."""
    pyramid = dict(array.library_option).get("pyramid", "no")
    if array.library != "ome_zarr" or pyramid.lower() in {"no", "off", "false", "0"}:
        return [shape]
    return [shape, *(smaller(shape, factor) for factor in PYRAMID)]


def smaller(shape: Sequence[int], factor: int) -> tuple[int, ...]:
    """Return the shape of an additional image level: only the last two axes shrink."""
    return tuple(
        max(1, length // factor) if axis >= len(shape) - 2 else length
        for axis, length in enumerate(shape)
    )


def is_smaller_level(key: str) -> bool:
    """Return whether an object belongs to an additional image level, which has no keystream."""
    return _LEVEL.match(key, len(parent_key(key) or key)) is not None


def chunk_names(array: ArraySpec, shape: Sequence[int], dot: str) -> Iterator[str]:
    """Yield the names of the chunks, or shards, of an array of ``shape``."""
    pieces = array.shards or array.chunks
    counts = [range(-(-length // piece)) for length, piece in zip(shape, pieces, strict=True)]
    head, dot = ("c/", "/") if array.driver == "zarr3" else ("", dot)
    yield from (head + dot.join(map(str, place)) for place in product(*counts))
