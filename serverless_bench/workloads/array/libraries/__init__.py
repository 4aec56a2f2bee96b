"""Array libraries under test: one file, one line here and one extra each.

What an array holds, and which objects it becomes, is decided in ``payload.array_layout``; a library
only writes, appends and reads. See docs/arrays.md.
"""

from typing import TYPE_CHECKING, Final

from serverless_bench.plugins import Registry

if TYPE_CHECKING:
    # Help asks for the names alone.
    from serverless_bench.workloads.array.libraries.base import ArrayLibrary as ArrayLibrary

ARRAYS: Final = Registry["type[ArrayLibrary]"](
    "arrays",
    {
        "cpp_zarr": "serverless_bench.workloads.array.libraries.cpp_zarr:CppZarr",
        "ome_zarr": "serverless_bench.workloads.array.libraries.ome_zarr:OmeZarr",
        "tensorstore": "serverless_bench.workloads.array.libraries.tensorstore:TensorStore",
        "zarr": "serverless_bench.workloads.array.libraries.zarr:ZarrPython",
    },
)
