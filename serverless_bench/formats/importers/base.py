"""What an importer is, and what it makes of a file: rows that ``saving`` turns into a run."""

from array import array
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np

from serverless_bench.errors import UsageError
from serverless_bench.job.keys import MAX_KEY_BYTES
from serverless_bench.job.operations import OperationKind
from serverless_bench.rundir.tables import ABSENT, Ints
from serverless_bench.units import NS_PER_S

MAX_OPERATION_BYTES: Final = 1 << 50
"""Twenty times the largest object that S3 takes (50 TB)."""
MAX_TOTAL_BYTES: Final = 1 << 62
"""Sums of bytes are 64-bit integers."""
MAX_SPAN_S: Final = 30 * 86_400
"""Longer runs are clocks that disagree; reports and plots divide the span into segments."""
MAX_FUNCTIONS: Final = 100_000
"""Function calls of a run; a pickle repeats one of them with two bytes."""
MAX_INSTANT_S: Final = 9_000_000_000
"""In the year 2255; nanoseconds since 1970 end in 2262."""


KINDS: Final = (
    OperationKind.PUT,
    OperationKind.GET,
    OperationKind.HEAD,
    OperationKind.DELETE,
    OperationKind.LIST,
)
"""Operations that files have."""
PUT, GET = 0, 1
"""Places in ``KINDS``: what moves bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hints:
    """What the user says about a file that may not say it itself."""

    phase: str | None = None
    """write or read."""
    size_bytes: int | None = None
    """Of each object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PickledData:
    """The plain data of a pickle."""

    path: Path
    value: object


_numbers = partial(array, "q")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedRows:
    """Operations as columns that grow; ``ABSENT`` stands for an unknown instant."""

    function: "array[int]" = field(default_factory=_numbers)
    """Index of the function call, as in ``FunctionCall``."""
    line: "array[int]" = field(default_factory=_numbers)
    """Where in the file the operation stands."""
    kind: "array[int]" = field(default_factory=_numbers)
    """Place in ``KINDS``."""
    start_ns: "array[int]" = field(default_factory=_numbers)
    end_ns: "array[int]" = field(default_factory=_numbers)
    first_byte_ns: "array[int]" = field(default_factory=_numbers)
    last_byte_ns: "array[int]" = field(default_factory=_numbers)
    """When the last byte had been sent; of writes only."""
    size_bytes: "array[int]" = field(default_factory=_numbers)
    key: list[str] = field(default_factory=list)
    """Empty if the file names none."""
    error: list[str | None] = field(default_factory=list)
    """``OperationError.code``."""
    detail: list[str | None] = field(default_factory=list)
    """The file's own words for the error."""

    def __len__(self) -> int:
        return len(self.key)

    def column(self, name: str) -> Ints:
        """Return a column of integers as an array, without a copy."""
        return np.frombuffer(getattr(self, name), dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionCall:
    """One function call that has a result, with the instants that the file has."""

    index: int
    worker_id: str
    cold_start: bool = False
    submitted_ns: int = ABSENT
    """By the driver's clock, as ``collected_ns``; both or none."""
    collected_ns: int = ABSENT
    start_ns: int | None = None
    """By the worker's clock, as ``end_ns``."""
    end_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What a file says, checked: everything that a run directory needs."""

    tool: str
    """Name in ``IMPORTERS``."""
    path: Path
    workload: str
    """write, read or mixed."""
    calls: tuple[FunctionCall, ...]
    """In the order of ``index``."""
    lost: Mapping[int, str]
    """Function calls without a result: index and cause."""
    rows: ImportedRows
    concurrency: int
    created_ns: int
    bucket: str = ""
    endpoint_url: str = ""
    remarks: Mapping[str, Any] = field(default_factory=dict)
    """For the run's provenance: how the figures came about."""
    notes: tuple[str, ...] = ()
    """For the user, one line each."""

    @property
    def requested(self) -> int:
        """Function calls, those without a result included."""
        return len(self.calls) + len(self.lost)


@dataclass(frozen=True, slots=True, kw_only=True)
class Importer:
    """One format."""

    takes: Callable[[object], bool]
    """Whether ``read`` can read a content, if the user names this format."""
    recognises: Callable[[object], bool]
    """Whether a content is of this format and no other."""
    read: Callable[[Any, Hints], Imported]
    """Return what a content says; raises ``UsageError`` if that cannot be."""


def check(path: Path, rows: ImportedRows, unit: str) -> None:
    """Refuse operations that cannot have been.

    Parameters
    ----------
    path
        The file, for the message.
    rows
        All operations.
    unit
        What ``ImportedRows.line`` counts.

    Raises
    ------
    UsageError
        If there is none, or one ends before it starts, moves less than nothing or more
        than any object holds, or if they are more than ``MAX_SPAN_S`` apart.
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
    span_s = int(end.max() - start.min()) / NS_PER_S
    if span_s > MAX_SPAN_S:
        refuse(path, f"its operations are {span_s / 86_400:.0f} days apart")


def refuse(path: Path, problem: str) -> NoReturn:
    """Raise the error of a file that says what cannot be.

    Raises
    ------
    UsageError
        Always.
    """
    raise UsageError(
        f"{path} is not imported: {problem}", hint="the file is damaged, or a clock was wrong"
    )


def instant_ns(value: object) -> int | None:
    """Return seconds since the epoch in nanoseconds; None if ``value`` is no such instant."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return round(value * NS_PER_S) if 0 <= value < MAX_INSTANT_S else None


def plain_key(text: object) -> str:
    """Return a key that has a place in a list of keys; empty if ``text`` is none."""
    return plain_text(text, MAX_KEY_BYTES)


def plain_text(text: object, most: int) -> str:
    """Return a text that can stand in a record; empty if it is none, or longer than ``most``."""
    if not isinstance(text, str) or len(text) > most or not text.isprintable():
        return ""
    return text


def common(values: Iterable[str]) -> str:
    """Return the one value that there is; empty if there are none or several."""
    different = set(values)
    return different.pop() if len(different) == 1 else ""
