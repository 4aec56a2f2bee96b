"""Classes of sizes."""

from typing import Final

from tests.reference.rows import Row

KIB: Final = 1024
EDGES: Final = (
    *((0, "0 B"), (8 * KIB, "1 B-8 KiB"), (64 * KIB, "8-64 KiB"), (512 * KIB, "64-512 KiB")),
    *((4 * KIB**2, "512 KiB-4 MiB"), (32 * KIB**2, "4-32 MiB"), (256 * KIB**2, "32-256 MiB")),
    (2 * KIB**3, "256 MiB-2 GiB"),
)
"""Classes by their upper bounds, which are in them."""
CLASSES: Final = (*(name for _, name in EDGES), "above 2 GiB")
NO_SIZE: Final = ("call", "delete", "delete_many", "head", "list")


def size_class(op: Row) -> str | None:
    """Return the class of the moved bytes; for copies and failed operations, of the object."""
    failed = op["error"] is not None
    if op["kind"] in NO_SIZE or (failed and op["kind"] == "get_range"):
        return None
    size = op["size"] if failed or op["kind"] == "copy" else op["bytes"]
    if size is None:
        return None
    return next((name for edge, name in EDGES if size <= edge), CLASSES[-1])
