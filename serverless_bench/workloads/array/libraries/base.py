"""What sbench asks of an array library, and what libraries share."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol, TypeVar

from serverless_bench.clients.options import parse
from serverless_bench.errors import (
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
from serverless_bench.job.load import ArraySpec
from serverless_bench.job.target import Target
from serverless_bench.job.transfer import Transfer

CLEVEL: Final = 1
"""Level of every codec. The published comparison of Zarr writers used Blosc's LZ4 at 1."""

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

K = TypeVar("K")


class ArrayLibrary(Protocol):
    """One library, reduced to whole operations on one array at a time.

    It may use as many threads and requests as it likes, and retries by itself: its
    attempts are hidden. It raises what it wants: ``explained`` makes ``OperationError``
    of that. ``where`` is a key of the bucket without a slash at its end, or a directory.
    Whoever inherits it need not define ``create`` and ``close`` if there is nothing to do,
    nor ``append`` if it is none of its features.
    """

    supports: ClassVar[frozenset[str]]
    """Of ``FEATURES``."""
    options: ClassVar[type]
    """What ``ArraySpec.options`` may set, as a dataclass (see ``clients.options``)."""

    def __init__(self, array: ArraySpec, target: Target, transfer: Transfer) -> None:
        """Get ready to write ``array`` to ``target`` or to files."""

    def create(self, where: str, shape: Sequence[int]) -> None:
        """Open the array for writing; make it if it is not there."""

    def write(self, where: str, block: Any) -> None:  # noqa: ANN401 - NumPy's or JAX's
        """Write all of the array that ``create`` has opened."""

    def append(self, where: str, block: Any, row: int) -> None:  # noqa: ANN401
        """Write ``block`` from ``row`` on, and make the array longer where it has to be."""
        raise NotImplementedError

    def read(self, where: str) -> Any:  # noqa: ANN401 - what the library returns
        """Return the whole array."""

    def close(self) -> None:
        """Release what it holds."""


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


def needs(*modules: str) -> None:
    """Say that a plugin's library is missing without importing it.

    Big libraries are imported when they are opened: some read their settings then.

    Raises
    ------
    ModuleNotFoundError
        If one is not installed.
    """
    for name in modules:
        if find_spec(name) is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def parse_options(options: type[K], array: ArraySpec) -> K:
    """Return the options as ``array.options`` sets them.

    Raises
    ------
    UsageError
        If a name is unknown or a value is none of its kind.
    """
    target = Target(
        client=array.library, bucket="", endpoint_url="", client_option=array.library_option
    )
    return parse(options, target, kind="library")


def place(array: ArraySpec, key: str) -> str:
    """Return where the array of ``key`` is: the key, or a directory."""
    if array.path is None:
        return key
    return str(Path(array.path).absolute() / key.rpartition("/")[2])


@contextmanager
def explained() -> Iterator[None]:
    """Turn what a library raises into an ``OperationError``.

    Libraries raise their own classes or none: the text says most.
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
    # TensorStore appends its specification, obstore a dump of its own structures.
    text = _DUMP.split(message)[0] + (" timed out" if "TimedOut" in message else "")
    found = _STATUS.search(text)
    status = int(next(filter(None, found.groups()))) if found else None
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
"""Statuses decide, then absl's words (TensorStore), obstore's classes and errno's."""
