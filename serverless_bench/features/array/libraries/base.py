"""Interface of array libraries, and code that they share."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol, TypeVar

from serverless_bench.base.errors import (
    AccessDenied,
    BadRequest,
    ConnectionLost,
    NotFound,
    OperationError,
    ServerFault,
    Throttled,
    TimedOut,
    UsageError,
)
from serverless_bench.clients.options import parse
from serverless_bench.features.array.load import ArraySpec
from serverless_bench.job.target import Target, Transfer

CLEVEL: Final = 1
"""Compression level for all codecs. The published comparison of Zarr writers used Blosc's LZ4 at
1."""

FEATURES: Final = (
    *("write", "append", "read"),
    *("s3", "file"),
    *("zarr", "zarr3", "shards"),
    *("codec:none", "codec:blosc-lz4", "codec:blosc-zstd", "codec:zstd"),
    *("source:numpy", "source:jax"),
)
"""Features that an array may need from a library."""

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
"""Unsupported features by library, with reasons."""

K = TypeVar("K")


class ArrayLibrary(Protocol):
    """One library, reduced to complete operations on one array at a time.

    It may use any number of threads and requests, and retries by itself: its attempts are hidden.
    It may raise any exception: ``explained`` converts it to ``OperationError``. ``where`` is a key
    of the bucket without a trailing slash, or a directory. Subclasses may leave out ``create`` and
    ``close`` if there is no work to do, and ``append`` if they do not support it.
    """

    supports: ClassVar[frozenset[str]]
    """Supported members of ``FEATURES``."""
    options: ClassVar[type]
    """Options that ``ArraySpec.options`` may set, as a dataclass (see ``clients.options``)."""

    def __init__(self, array: ArraySpec, target: Target, transfer: Transfer) -> None:
        """Prepare to write ``array`` to ``target`` or to files."""

    def create(self, where: str, shape: Sequence[int]) -> None:
        """Open the array for writing; create it if it does not exist."""

    def write(self, where: str, block: Any) -> None:
        """Write the full array that ``create`` has opened."""

    def append(self, where: str, block: Any, row: int) -> None:
        """Write ``block`` from ``row`` on, extending the array if necessary."""
        raise NotImplementedError

    def read(self, where: str) -> Any:
        """Return the full array."""

    def close(self) -> None:
        """Release its resources."""


def supported(library: str) -> frozenset[str]:
    """Return the members of ``FEATURES`` that a library supports."""
    return frozenset(FEATURES).difference(UNSUPPORTED[library])


def features(array: ArraySpec) -> tuple[str, ...]:
    """Return the members of ``FEATURES`` that ``array`` needs."""
    requested = [array.operation, "s3" if array.path is None else "file", array.driver]
    requested += ["shards"] if array.shards else []
    return (*requested, f"codec:{array.codec}", f"source:{array.source}")


def unsupported(array: ArraySpec) -> str | None:
    """Return the reason for the library's rejection of ``array``; None if it is supported.

    Studies print it in place of a result.
    """
    missing = UNSUPPORTED.get(array.library, {})
    return next((missing[name] for name in features(array) if name in missing), None)


def needs(*modules: str) -> None:
    """Check that modules of a plugin's library are installed, without importing them.

    Large libraries are imported when they are opened, because some read their settings on import.

    Raises
    ------
    ModuleNotFoundError
        If a module is not installed.
    """
    for name in modules:
        if find_spec(name) is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def parse_options(options: type[K], array: ArraySpec) -> K:
    """Return the options set in ``array.library_option``.

    Raises
    ------
    UsageError
        If a name is unknown or a value has the wrong type.
    """
    target = Target(
        client=array.library, bucket="", endpoint_url="", client_option=array.library_option
    )
    return parse(options, target, kind="library")


def place(array: ArraySpec, key: str) -> str:
    """Return the location of the array of ``key``: the key, or a directory."""
    return key if array.path is None else str(Path(array.path).absolute() / key.rpartition("/")[2])


@contextmanager
def explained() -> Iterator[None]:
    """Convert a library's exceptions to ``OperationError``.

    Libraries often have no specific classes, so the text decides.
    """
    try:
        yield
    except (OperationError, UsageError, MemoryError):
        raise
    except Exception as exc:
        raise as_operation_error(exc) from exc


def as_operation_error(exc: Exception) -> OperationError:
    """Return the ``OperationError`` that fits the text of ``exc``."""
    message = f"{type(exc).__name__}: {exc}"
    # TensorStore appends its specification, and obstore a dump of its structures.
    text = _DUMP.split(message)[0] + (" timed out" if "TimedOut" in message else "")
    match = _STATUS.search(text)
    status = int(next(filter(None, match.groups()))) if match else None
    for kind, statuses, words in _KINDS:
        if status in statuses or (status is None and words.search(text)):
            return kind(text, status=status)
    return BadRequest(text, status=status)


_DUMP: Final = re.compile(r" \[(?:tensorstore_spec|http_)|\n")
_STATUS: Final = re.compile(
    r"(?:HTTP(?: response code:| error|/1\.1)?|status(?: code)?:?|Client error with status) "
    r"([1-5]\d\d)\b"
)
_KINDS: Final[Sequence[tuple[type[OperationError], frozenset[int], re.Pattern[str]]]] = [
    (kind, frozenset(statuses), re.compile(words, re.IGNORECASE))
    for kind, statuses, words in (
        (NotFound, {404}, r"not_?found|no such|does not exist"),
        (AccessDenied, {401, 403}, r"permission|unauthenticated|access_?denied|credential"),
        (Throttled, {429, 503}, r"resource_exhausted|slow ?down"),
        (TimedOut, {408}, r"deadline_exceeded|time[d_ ]*out"),
        (ServerFault, {500, 502, 504}, r"internal"),
        (ConnectionLost, set[int](), r"unavailable|connect|sending request|reset|pipe"),
    )
]
"""The status decides first, then the words of absl (TensorStore), obstore and errno."""
