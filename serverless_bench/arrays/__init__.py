"""Array libraries under test: one file, one line here and one extra each.

What an array holds, and which objects it becomes, is ``payload.array_layout``'s business; a
library only writes, appends and reads. docs/arrays.md describes them.
"""

from collections.abc import Callable, Mapping
from typing import Final, cast

from serverless_bench import plugins
from serverless_bench.arrays.base import ArrayLibrary
from serverless_bench.job.spec import ArraySpec, Target, Transfer

ARRAYS: Final[Mapping[str, str]] = {
    "cpp_zarr": "serverless_bench.arrays.cpp_zarr:CppZarr",
    "ome_zarr": "serverless_bench.arrays.ome_zarr:OmeZarr",
    "tensorstore": "serverless_bench.arrays.tensorstore:TensorStore",
    "zarr": "serverless_bench.arrays.zarr:ZarrPython",
}


def library_class(name: str) -> type[ArrayLibrary]:
    """Return the class called ``name``, importing nothing big.

    Raises
    ------
    PluginError
        If it is unknown, or its library is not installed.
    """
    return cast("type[ArrayLibrary]", plugins.load("arrays", ARRAYS, name))


def open_array_library(array: ArraySpec, target: Target, transfer: Transfer) -> ArrayLibrary:
    """Return the library that ``array`` names, ready to write to ``target`` or to files."""
    factory = cast(
        "Callable[[ArraySpec, Target, Transfer], ArrayLibrary]", library_class(array.library)
    )
    return factory(array, target, transfer)
