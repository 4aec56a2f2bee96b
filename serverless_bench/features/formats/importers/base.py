"""Definition of an importer, and of the result: rows that ``saving`` converts into a run."""

from array import array
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np

from serverless_bench.base.errors import UsageError
from serverless_bench.base.units import NS_PER_S
from serverless_bench.job.keys import MAX_KEY_BYTES
from serverless_bench.job.operations import OperationKind
from serverless_bench.rundir.tables import ABSENT, Ints

MAX_OPERATION_BYTES: Final = 1 << 50
"""Twenty times the largest object of S3 (50 TB)."""
MAX_TOTAL_BYTES: Final = 1 << 62
"""Sums of bytes are 64-bit integers."""
MAX_SPAN_S: Final = 30 * 86_400
"""Maximum span: longer runs indicate clocks that disagree, and reports divide spans into segments.
"""
MAX_FUNCTIONS: Final = 100_000
"""Maximum number of function calls: a pickle can repeat a call with two bytes."""
MAX_INSTANT_S: Final = 9_000_000_000
"""Maximum instant, in the year 2255; nanoseconds since 1970 end in 2262."""


KINDS: Final = (
    OperationKind.PUT,
    OperationKind.GET,
    OperationKind.HEAD,
    OperationKind.DELETE,
    OperationKind.LIST,
    OperationKind.DELETE_MANY,
)
"""Kinds of operations in files."""
PUT, GET = 0, 1
"""Indices in ``KINDS`` of the operations that transfer bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hints:
    """Information from the user that a file may lack."""

    phase: str | None = None
    """Phase: write or read."""
    size_bytes: int | None = None
    """Size of each object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PickledData:
    """The plain data of a pickle."""

    path: Path
    value: object


_numbers = partial(array, "q")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedRows:
    """Operations as columns that grow; ``ABSENT`` represents an unknown instant."""

    function: "array[int]" = field(default_factory=_numbers)
    """Index of the function call, as in ``FunctionCall``."""
    line: "array[int]" = field(default_factory=_numbers)
    """Position of the operation in the file."""
    kind: "array[int]" = field(default_factory=_numbers)
    """Index in ``KINDS``."""
    start_ns: "array[int]" = field(default_factory=_numbers)
    end_ns: "array[int]" = field(default_factory=_numbers)
    first_byte_ns: "array[int]" = field(default_factory=_numbers)
    last_byte_ns: "array[int]" = field(default_factory=_numbers)
    """Instants at which the last byte had been sent; for writes only."""
    size_bytes: "array[int]" = field(default_factory=_numbers)
    count: "array[int]" = field(default_factory=_numbers)
    """Number of keys involved, as in ``OperationRecord``."""
    warmup: "array[int]" = field(default_factory=_numbers)
    """1 for preparation and cleanup, which reports leave out."""
    key: list[str] = field(default_factory=list)
    """Keys; empty if the file has none."""
    error: list[str | None] = field(default_factory=list)
    """Values of ``OperationError.code``."""
    detail: list[str | None] = field(default_factory=list)
    """Text of the error in the file."""

    def __len__(self) -> int:
        return len(self.key)

    def add(self, **row: object) -> None:
        """Add an operation: a value for each of the columns."""
        for name, value in row.items():
            getattr(self, name).append(value)

    def column(self, name: str) -> Ints:
        """Return a column of integers as an array, without a copy."""
        return np.frombuffer(getattr(self, name), dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionCall:
    """A function call with a result, and its instants in the file."""

    index: int
    worker_id: str
    cold_start: bool = False
    submitted_ns: int = ABSENT
    """Instants of the driver's clock; either both or none are present."""
    collected_ns: int = ABSENT
    start_ns: int | None = None
    """Instants of the worker's clock."""
    end_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """Validated content of a file, sufficient for a run directory."""

    tool: str
    """Name in ``IMPORTERS``."""
    path: Path
    workload: str
    """Workload: write, read or mixed."""
    calls: tuple[FunctionCall, ...]
    """Function calls in the order of ``index``."""
    lost: Mapping[int, str]
    """Function calls without a result: index and cause."""
    rows: ImportedRows
    concurrency: int
    created_ns: int
    bucket: str = ""
    endpoint_url: str = ""
    remarks: Mapping[str, Any] = field(default_factory=dict)
    """Origin of the numbers, for the run's provenance."""
    notes: tuple[str, ...] = ()
    """Notes for the user, one line each."""

    @property
    def requested(self) -> int:
        """Number of function calls, including those without a result."""
        return len(self.calls) + len(self.lost)


@dataclass(frozen=True, slots=True, kw_only=True)
class Importer:
    """An input format."""

    takes: Callable[[object], bool]
    """Whether ``read`` supports a content, if the user specifies this format."""
    recognises: Callable[[object], bool]
    """Whether a content has this format and no other."""
    read: Callable[[Any, Hints], Imported]
    """Function that converts a content; raises ``UsageError`` if it is invalid."""


def check(path: Path, rows: ImportedRows, unit: str) -> None:
    """Check that all operations are possible.

    Parameters
    ----------
    path
        The file, for the message.
    rows
        All operations.
    unit
        Unit of ``ImportedRows.line``.

    Raises
    ------
    UsageError
        If there is no operation, or one ends before it starts, transfers a negative number of
        bytes or more than the largest possible object, or if they span more than ``MAX_SPAN_S``.
    """
    if not len(rows):
        raise UsageError(f"{path} has no operation", hint="import a file with results")
    start, end = rows.column("start_ns"), rows.column("end_ns")
    size = rows.column("size_bytes")
    for wrong, problem in (
        (start < 0, "starts before 1970"),
        (end < start, "ends before it starts"),
        (size < 0, "moves a negative number of bytes"),
        (size > MAX_OPERATION_BYTES, "moves more bytes than any object has"),
    ):
        if wrong.any():
            refuse(path, f"{unit} {rows.line[int(np.argmax(wrong))]} {problem}")
    if float(size.sum(dtype=np.float64)) >= MAX_TOTAL_BYTES:
        refuse(path, "its bytes add up to more than 4 EiB")
    elapsed_s = int(end.max() - start.min()) / NS_PER_S
    if elapsed_s > MAX_SPAN_S:
        refuse(path, f"its operations are {elapsed_s / 86_400:.0f} days apart")


def refuse(path: Path, problem: str) -> NoReturn:
    """Raise the error of a file with invalid content.

    Raises
    ------
    UsageError
        Always.
    """
    raise UsageError(
        f"{path} is not imported: {problem}", hint="the file is damaged, or a clock was wrong"
    )


def refuse_foreign(path: Path, problem: str) -> NoReturn:
    """Raise the error of a whole file that holds no results of a storage benchmark.

    Raises
    ------
    UsageError
        Always.
    """
    raise UsageError(
        f"{path} has no results of a storage benchmark: {problem}",
        hint='see "Import and export" in the documentation',
    )


def instant_ns(value: object) -> int | None:
    """Return seconds since the epoch in nanoseconds; None if ``value`` is not an instant."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return round(value * NS_PER_S) if 0 <= value < MAX_INSTANT_S else None


def plain_key(text: object) -> str:
    """Return a key that is valid in a list of keys; empty if ``text`` is not."""
    return plain_text(text, MAX_KEY_BYTES)


def plain_text(text: object, most: int) -> str:
    """Return a text that is valid in a record; empty if it is not, or is longer than ``most``."""
    return text if isinstance(text, str) and len(text) <= most and text.isprintable() else ""


def common(values: Iterable[str]) -> str:
    """Return the value if all are equal; empty if there are none or more than one."""
    distinct = set(values)
    return distinct.pop() if len(distinct) == 1 else ""
