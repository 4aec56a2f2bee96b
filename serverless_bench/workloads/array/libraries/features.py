"""What an array can ask of a library, and which library cannot do what."""

from collections.abc import Mapping
from typing import Final

from serverless_bench.job.load import ArraySpec

FEATURES: Final = (
    *("write", "append", "read"),
    *("s3", "file"),
    *("zarr", "zarr3", "shards"),
    *("codec:none", "codec:blosc-lz4", "codec:blosc-zstd", "codec:zstd"),
    *("source:numpy", "source:jax"),
)
"""What an array can ask of a library."""

UNSUPPORTED: Final[Mapping[str, Mapping[str, str]]] = {
    "cpp_zarr": {
        "append": "it cannot make an array longer",
        "s3": "it writes files only",
        "codec:zstd": "it has Zstandard within Blosc only: blosc-zstd",
    },
    "ome_zarr": {"append": "it writes whole images only"},
    "tensorstore": {},
    "zarr": {},
}
"""By library, what it does not have, and why."""


def supported(library: str) -> frozenset[str]:
    """Return what a library has, of ``FEATURES``."""
    return frozenset(FEATURES).difference(UNSUPPORTED[library])


def features(array: ArraySpec) -> tuple[str, ...]:
    """Return what ``array`` asks of its library, of ``FEATURES``."""
    requested = [array.operation, "s3" if array.path is None else "file", array.driver]
    requested += ["shards"] if array.shards else []
    return (*requested, f"codec:{array.codec}", f"source:{array.source}")


def unsupported(array: ArraySpec) -> str | None:
    """Return why the library cannot do what is requested; None if it can.

    Experiments print this in the place of a figure.
    """
    missing = UNSUPPORTED.get(array.library, {})
    return next((missing[name] for name in features(array) if name in missing), None)
