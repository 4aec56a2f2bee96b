"""Array libraries under test: a file, a line here and an extra each.

``features.array.load`` determines the content of an array and the keys of its objects; a library
only writes, appends and reads. README.md describes them.
"""

from typing import TYPE_CHECKING, Final

from serverless_bench.base.plugins import Registry

if TYPE_CHECKING:
    # Help texts need only the names.
    from serverless_bench.features.array.libraries.base import ArrayLibrary as ArrayLibrary

ARRAYS: Final = Registry["type[ArrayLibrary]"](
    "arrays",
    {
        "cpp_zarr": "serverless_bench.features.array.libraries.cpp_zarr:CppZarr",
        "ome_zarr": "serverless_bench.features.array.libraries.ome_zarr:OmeZarr",
        "tensorstore": "serverless_bench.features.array.libraries.tensorstore:TensorStore",
        "zarr": "serverless_bench.features.array.libraries.zarr:ZarrPython",
    },
    kind="library of arrays",
)
