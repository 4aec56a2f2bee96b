"""Check an array before anything starts."""

from typing import Final

from serverless_bench.base.errors import UsageError
from serverless_bench.base.plugins import extra
from serverless_bench.features.array.libraries import ARRAYS
from serverless_bench.features.array.libraries.base import (
    FEATURES,
    features,
    needs,
    parse_options,
    unsupported,
)
from serverless_bench.features.array.load import ITEM_BYTES, ArraySpec, piece_count, run_bytes
from serverless_bench.job.keys import MIN_PIECE_BYTES

_MAX_OBJECTS: Final = 100_000
"""Most chunks of one array; each is listed in the run's ledger."""
_OME_AXES: Final = 5


def check_array(array: ArraySpec) -> None:
    """Check that the library, and sbench, can create an array.

    Raises
    ------
    UsageError
        If either cannot.
    PluginError
        If the library is unknown or not installed, or JAX is required and not installed.
    """
    library = ARRAYS.load(array.library)
    for name, value, choices in (
        ("dtype", array.dtype, tuple(ITEM_BYTES)),
        ("driver", array.driver, ("zarr", "zarr3")),
        ("codec", array.codec, _named("codec")),
        ("source", array.source, _named("source")),
    ):
        if value not in choices:
            raise UsageError(f"`{name}` cannot be {value!r}", hint=f"use {', '.join(choices)}")
    lacking = sorted(set(features(array)) - library.supports)
    if lacking:
        reason = unsupported(array) or f"it does not offer {', '.join(lacking)}"
        raise UsageError(
            f"{array.library} is not able to do this: {reason}",
            hint='see the libraries\' features in "Arrays" in the documentation',
        )
    parse_options(library.options, array)
    _check_shape(array)
    if array.source == "jax":
        with extra("jax", "`source` jax"):
            needs("jax")


def _named(family: str) -> tuple[str, ...]:
    return tuple(n.partition(":")[2] for n in FEATURES if n.startswith(f"{family}:"))


def _check_shape(array: ArraySpec) -> None:
    axes = len(array.shape)
    for name, lengths in (
        ("shape", array.shape),
        ("chunks", array.chunks),
        ("shards", array.shards),
    ):
        if lengths is not None and (len(lengths) != axes or not axes or min(lengths) < 1):
            raise UsageError(
                f"`{name}` {_text(lengths)} does not fit `shape` {_text(array.shape)}",
                hint="give as many lengths as the array has axes, each at least 1",
            )
    if array.library == "ome_zarr" and axes > _OME_AXES:
        raise UsageError(f"an image has at most {_OME_AXES} axes, not {axes}")
    _check_cuts(array)


def _check_cuts(array: ArraySpec) -> None:
    if array.shards is not None:
        if array.driver != "zarr3":
            raise UsageError("only zarr3 has shards", hint="`driver` zarr3")
        if any(shard % chunk for shard, chunk in zip(array.shards, array.chunks, strict=True)):
            raise UsageError(
                f"`shards` {_text(array.shards)} is not a multiple of"
                f" `chunks` {_text(array.chunks)}"
            )
    if array.operation == "append" and array.shape[0] % (array.shards or array.chunks)[0]:
        raise UsageError(
            f"appends of {array.shape[0]} rows do not end where chunks do",
            hint="make the first length of `shape` a multiple of that of `chunks`, or each"
            " append would rewrite a chunk of the previous append",
        )
    if run_bytes(array) < MIN_PIECE_BYTES:
        raise UsageError(
            f"`chunks` {_text(array.chunks)} keeps only {run_bytes(array)} bytes together",
            hint=f"sbench identifies chunks by {MIN_PIECE_BYTES} neighbouring bytes: increase the"
            " last length",
        )
    count = piece_count(array, array.shape)
    if count > _MAX_OBJECTS:
        raise UsageError(
            f"{count} chunks are more than {_MAX_OBJECTS}", hint="make `chunks` larger"
        )


def _text(lengths: tuple[int, ...]) -> str:
    return ",".join(map(str, lengths))
