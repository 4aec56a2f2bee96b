"""How an array is cut into objects: a pure function of its specification and its key.

Element ``i`` of an array in C order holds bytes ``i * itemsize`` and following of the
keystream of the array's key. The key declares the array's bytes, so the shape follows
from it: an append adds rows, and a key declares how many there will be in the end.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, product
from math import prod
from typing import Final

from serverless_bench.errors import UsageError
from serverless_bench.job.keys import declared_size
from serverless_bench.job.load import ArraySpec
from serverless_bench.job.operations import OperationKind

ITEM_BYTES: Final[Mapping[str, int]] = {"uint8": 1, "uint16": 2, "uint32": 4, "float32": 4}
"""Bytes of one element. JAX has no wider types unless ``jax_enable_x64`` is set."""

_METADATA: Final = {"zarr": (".zarray", ".zattrs", ".zgroup"), "zarr3": ("zarr.json",)}
METADATA: Final = frozenset().union(*_METADATA.values())
"""Names of the objects that hold no chunk (Zarr specifications 2 and 3)."""

PYRAMID: Final = (2, 4, 8, 16)
"""How many times smaller the further levels of an OME-Zarr image are, along y and x
(``ome_zarr.writer.write_image``)."""

MIN_RUN_BYTES: Final = 128
"""Neighbouring bytes that a chunk keeps together, at least: enough to identify them."""

_ARRAY: Final = re.compile(r"(.*[0-9a-f]{32}\.[1-9][0-9]{0,15})/.+", re.DOTALL)
_LEVEL: Final = re.compile(r"/s[1-9]/")


def array_bytes(array: ArraySpec) -> int:
    """Return the bytes of an array, or of what one append adds."""
    return prod(array.shape) * ITEM_BYTES[array.dtype]


def shape_at(array: ArraySpec, key: str) -> tuple[int, ...]:
    """Return the shape that the array at ``key`` has in the end.

    Raises
    ------
    UsageError
        If its key declares no size, or one that is no whole number of rows.
    """
    size, row = declared_size(key), row_bytes(array)
    if size is None or size % row:
        raise UsageError(
            f"{key} is no array of rows of {row} bytes",
            hint="`shape` and `dtype` have to be those that it was written with",
        )
    return (size // row, *array.shape[1:])


def row_bytes(array: ArraySpec) -> int:
    """Return the bytes of one step along the first axis."""
    return prod(array.shape[1:]) * ITEM_BYTES[array.dtype]


def run_bytes(array: ArraySpec) -> int:
    """Return how many neighbouring bytes of an array stand side by side in its chunks."""
    run = ITEM_BYTES[array.dtype]
    for chunk, length in zip(reversed(array.chunks), reversed(array.shape), strict=True):
        run *= min(chunk, length)
        if chunk < length:
            break
    return run


def array_keys(array: ArraySpec, key: str) -> Iterator[str]:
    """Yield every object that a library may make for the array at ``key``.

    Chunks are all of them and no others; of the metadata not every library writes all.
    """
    is_image = array.library == "ome_zarr"
    if is_image:
        yield from (f"{key}/{name}" for name in _METADATA[array.driver])
    for number, level in enumerate(_levels(array, shape_at(array, key))):
        folder = f"{key}/s{number}/" if is_image else f"{key}/"
        names = chunk_names(array, level, "/" if is_image else ".")
        yield from (folder + name for name in chain(_METADATA[array.driver], names))


def objects_of(array: ArraySpec, kind: OperationKind, size: int) -> int:
    """Return how many objects one operation writes or reads at least.

    Each chunk or shard, and one of metadata where the array is made or opened.

    Parameters
    ----------
    array
        What the array is like.
    kind
        Of the operation.
    size
        Bytes that the key of the array declares.
    """
    if kind is OperationKind.APPEND_ARRAY:
        return piece_count(array, array.shape)
    shape = (size // row_bytes(array), *array.shape[1:])
    shapes = _levels(array, shape) if kind is OperationKind.WRITE_ARRAY else [shape]
    return sum(piece_count(array, each) + 1 for each in shapes)


def piece_count(array: ArraySpec, shape: Sequence[int]) -> int:
    """Return the number of chunks, or shards, of an array of ``shape``."""
    pieces = array.shards or array.chunks
    return prod(-(-length // piece) for length, piece in zip(shape, pieces, strict=True))


def _levels(array: ArraySpec, shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return the shapes of an array and of the further levels of an OME-Zarr image."""
    asked = dict(array.library_option).get("pyramid", "no")
    if array.library != "ome_zarr" or asked.lower() in {"no", "off", "false", "0"}:
        return [shape]
    return [shape, *(smaller(shape, factor) for factor in PYRAMID)]


def smaller(shape: Sequence[int], factor: int) -> tuple[int, ...]:
    """Return the shape of a further level of an image: only the last two axes shrink."""
    return tuple(
        max(1, length // factor) if axis >= len(shape) - 2 else length
        for axis, length in enumerate(shape)
    )


def array_of(key: str) -> str | None:
    """Return the key of the array that an object is of; None if it is of none of ours."""
    match = _ARRAY.fullmatch(key)
    return match[1] if match else None


def is_smaller_level(key: str) -> bool:
    """Tell whether an object is of a further level of an image: it holds no keystream."""
    return _LEVEL.match(key, len(array_of(key) or key)) is not None


def chunk_names(array: ArraySpec, shape: Sequence[int], dot: str) -> Iterator[str]:
    """Yield the name of every chunk, or shard, of an array of ``shape``."""
    pieces = array.shards or array.chunks
    counts = [range(-(-length // piece)) for length, piece in zip(shape, pieces, strict=True)]
    head, dot = ("c/", "/") if array.driver == "zarr3" else ("", dot)
    for place in product(*counts):
        yield head + dot.join(map(str, place))
