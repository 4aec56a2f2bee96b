"""Rows of one kind, held as one list per column: what a record is made of.

A function that makes a hundred thousand requests keeps a tuple of each while it runs, and an
object of each nowhere: neither where they are written, nor where they are collected.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cache
from itertools import chain, islice
from typing import Any, Final, Generic, TypeVar, cast, overload

R = TypeVar("R")
_AT_ONCE: Final = 512
"""Rows that are turned into columns at a time: what a core's own cache holds."""
Columns = Mapping[str, list[Any]]
"""A table: lists of equal length by name."""


class Rows(Sequence[R], Generic[R]):
    """Rows that are made when somebody looks at them.

    Parameters
    ----------
    row_type
        A dataclass; what iteration yields.
    columns
        One list per field, in the order of the fields, all of one length.
    """

    __slots__ = ("columns", "row_type")

    def __init__(self, row_type: type[R], columns: Columns) -> None:
        self.row_type = row_type
        self.columns = columns

    @classmethod
    def numbered(cls, row_type: type[R], groups: Sequence[Sequence[tuple[Any, ...]]]) -> "Rows[R]":
        """Return the rows of ``groups``, whose first column is the number of their group.

        Parameters
        ----------
        row_type
            Of the rows.
        groups
            Rows as tuples of all fields but the first.
        """
        first, *names = _names(cast("Any", row_type))
        numbers: list[int] = []
        for number, rows in enumerate(groups):
            numbers += [number] * len(rows)
        columns: list[list[Any]] = [[] for _ in names]
        every = chain.from_iterable(groups)
        while some := list(islice(every, _AT_ONCE)):
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
        picked = {name: column[index] for name, column in self.columns.items()}
        return Rows(self.row_type, picked) if isinstance(index, slice) else self.row_type(**picked)

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
    """Return one field of every row."""
    return rows.columns[name] if isinstance(rows, Rows) else [getattr(row, name) for row in rows]


@cache
def _names(row_type: Any) -> Sequence[str]:  # noqa: ANN401 - a dataclass
    return [each.name for each in fields(row_type)]
