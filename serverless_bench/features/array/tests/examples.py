"""Examples for tests of all commands, workloads and figures."""

from typing import Any, Final

from serverless_bench.features.array.figures import LibraryUsage
from tests.data.loads import array_in, array_load
from tests.house.examples import HOW, Command

COMMANDS: Final = {
    "array": Command(
        ("read",),
        2,
        [
            (
                "write",
                *HOW[2:],
                "--shape",
                "128,128",
                "--chunks",
                "128,128",
                "--path",
                "sbench-runs/arrays",
            )
        ],
    ),
}
NEEDED: Final[dict[str, dict[str, Any]]] = {
    "array": {"array": array_in(array_load(library="zarr", shape=(8,), chunks=(2,)))},
}
LOADS: Final[dict[str, dict[str, Any]]] = {
    "array": NEEDED["array"],
}
PARTS: Final = {"libraries": tuple[LibraryUsage, ...]}
SECTIONS: Final = {
    "LibraryUsage": "libraries",
}
