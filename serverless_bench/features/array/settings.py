"""Settings of an array, which ``ArraySpec`` has as plain values."""

from dataclasses import dataclass
from typing import Annotated, Literal

from serverless_bench.job.meaning import GivenPairs, Meaning, absolute, read_numbers, read_pairs


def read_options(name: str, given: GivenPairs) -> tuple[tuple[str, str], ...]:
    """Return options of a library, with names as in Python."""
    return tuple((key.replace("-", "_"), value) for key, value in read_pairs(name, given))


@dataclass(frozen=True, slots=True, kw_only=True)
class ArraySettings:
    """The settings that only jobs on arrays have."""

    operation: Annotated[
        Literal["write", "append", "read"] | None,
        Meaning("Operation on arrays; the word after `sbench array`.", is_argument=True),
    ] = None
    library: Annotated[str, Meaning("Array library: cpp_zarr, ome_zarr, tensorstore or zarr.")] = (
        "tensorstore"
    )
    driver: Annotated[str, Meaning("Format: zarr (2) or zarr3.")] = "zarr"
    shape: Annotated[
        str | tuple[int, ...],
        Meaning("Shape of an array, or of one append.", read=read_numbers),
    ] = "4096,4096"
    chunks: Annotated[str | tuple[int, ...], Meaning("Shape of a chunk.", read=read_numbers)] = (
        "1024,1024"
    )
    shards: Annotated[
        str | tuple[int, ...] | None,
        Meaning(
            "Shape of a shard, stored as one object; a chunk by default.",
            read=read_numbers,
        ),
    ] = None
    dtype: Annotated[str, Meaning("Type of an element: uint8, uint16, uint32 or float32.")] = (
        "float32"
    )
    codec: Annotated[
        str, Meaning("Codec: none, blosc-lz4, blosc-zstd or zstd, all at level 1.")
    ] = "none"
    source: Annotated[str, Meaning("Library that holds the data: numpy or jax.")] = "numpy"
    path: Annotated[
        str | None,
        Meaning(
            "Directory for arrays in files; the bucket by default.", parse=absolute, path="folder"
        ),
    ] = None
    library_option: Annotated[
        str | tuple[str, ...] | dict[str, str | int | float | bool],
        Meaning(
            'An option of the array library; see "Arrays" in the documentation.',
            read=read_options,
            metavar="NAME=VALUE",
        ),
    ] = ()
