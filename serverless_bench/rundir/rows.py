"""Rows of a record, stored as one list per column.

A function that makes a hundred thousand requests stores a tuple for each of them while it runs,
and never an object for each of them, neither where rows are written nor where they are collected.
Reads and writes of shared keys are rows, too: the access history of each version.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import cache
from itertools import chain, islice
from typing import Any, Final, Generic, TypeAlias, TypeVar, cast, overload


class Act(StrEnum):
    """Type of access to a shared key."""

    READ = "read"
    WRITE = "write"


class Ending(StrEnum):
    """Outcome of an access."""

    DONE = "done"
    REFUSED = "refused"
    """The key held a version other than the expected version (412)."""
    CONFLICT = "conflict"
    """Another write was in progress at the same time (409)."""
    FAILED = "failed"
    """The store rejected the request for another reason, and did not write."""
    UNKNOWN = "unknown"
    """No response, or a failure of the store; the write may have taken effect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """A single read or write of a shared key."""

    operation: int
    """``OperationRecord.index``."""
    key: str
    act: Act
    version: str | None
    """Token of the version that was read or was to be written (``shared_keys``); None if
    the key did not exist."""
    base: str | None
    """Token of the version that a write was to replace; for a read, as recorded in that version."""
    start_ns: int
    end_ns: int
    ending: Ending


AccessRow: TypeAlias = tuple[str, Act, str | None, str | None, int, int, Ending]
"""The fields of an ``Access`` after its operation."""


R = TypeVar("R")
_AT_ONCE: Final = 512
"""Number of rows converted to columns at a time, chosen to fit into a core's cache."""
Columns = Mapping[str, list[Any]]
"""A table: lists of equal length by name."""


class Rows(Sequence[R], Generic[R]):
    """Rows that are created on access.

    Parameters
    ----------
    row_type
        A dataclass; iteration yields instances of it.
    columns
        One list per field, in the order of the fields, all of equal length.
    """

    __slots__ = ("columns", "row_type")

    def __init__(self, row_type: type[R], columns: Columns) -> None:
        self.row_type = row_type
        self.columns = columns

    @classmethod
    def numbered(cls, row_type: type[R], groups: Sequence[Sequence[tuple[Any, ...]]]) -> "Rows[R]":
        """Return the rows of ``groups`` with the group number as the first column.

        Parameters
        ----------
        row_type
            Type of the rows.
        groups
            Rows as tuples of all fields except the first.
        """
        first, *names = _names(cast("Any", row_type))
        numbers: list[int] = []
        for number, rows in enumerate(groups):
            numbers += [number] * len(rows)
        columns: list[list[Any]] = [[] for _ in names]
        all_rows = chain.from_iterable(groups)
        while some := list(islice(all_rows, _AT_ONCE)):
            for column, values in zip(columns, zip(*some, strict=True), strict=True):
                column.extend(values)
        return cls(row_type, {first: numbers, **dict(zip(names, columns, strict=True))})

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    @overload
    def __getitem__(self, index: int) -> R: ...
    @overload
    def __getitem__(self, index: slice) -> "Rows[R]": ...
    def __getitem__(self, index: int | slice) -> "R | Rows[R]":
        selected = {name: column[index] for name, column in self.columns.items()}
        return (
            Rows(self.row_type, selected) if isinstance(index, slice) else self.row_type(**selected)
        )

    def __iter__(self) -> Iterator[R]:
        for row in zip(*self.columns.values(), strict=True):
            yield self.row_type(**dict(zip(self.columns, row, strict=True)))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Rows):
            return self.row_type is other.row_type and self.columns == other.columns
        return isinstance(other, Sequence) and list(self) == list(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))


def to_columns(row_type: type, rows: Sequence[Any]) -> Columns:
    """Return ``rows`` as one list per field."""
    if isinstance(rows, Rows):
        return rows.columns
    return {name: [getattr(row, name) for row in rows] for name in _names(row_type)}


def column(rows: Sequence[Any], name: str) -> Iterable[Any]:
    """Return the values of a field for all rows."""
    return rows.columns[name] if isinstance(rows, Rows) else [getattr(row, name) for row in rows]


@cache
def _names(row_type: Any) -> Sequence[str]:
    return [field.name for field in fields(row_type)]
