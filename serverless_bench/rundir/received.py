"""A record as it came from a worker: its tables stay columns on their way to the disk.

A driver collects millions of rows and looks at hardly any, so it makes objects of those alone
that somebody asks for.
"""

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, Final, Self

from serverless_bench.job.operations import OperationKind
from serverless_bench.rundir.record import (
    TABLES,
    Found,
    InvocationRecord,
    from_columns,
    launch_of,
    to_columns,
)

Columns = Mapping[str, list[Any]]
"""A table as it is in JSON: lists of equal length by name."""

_COLUMNS: Final = {
    name: {field.name: field.default for field in fields(row_type)}
    for name, row_type in TABLES.items()
}
"""By table, its columns with what stands for one that an older version did not write."""
_SCALARS: Final = tuple(f.name for f in fields(InvocationRecord) if f.name not in TABLES)
_CHOICES: Final = {
    ("operations", "kind"): frozenset(OperationKind),
    ("bad_ranges", "found"): frozenset(Found),
}
"""Columns that hold one of a few words."""


class ReceivedRecord(InvocationRecord):
    """A record whose rows are made when they are looked at; ``to_json`` makes none."""

    __slots__ = ("_tables",)
    _tables: dict[str, Columns]

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return the record that ``to_json`` made ``data`` from.

        Raises
        ------
        TypeError, ValueError, KeyError
            If ``data`` is anything else.
        """
        scalars = {name: value for name, value in data.items() if name not in TABLES}
        scalars.pop("attempt", None)
        record = cls(**{**scalars, "launch": launch_of(data)})
        tables = {name: _checked(name, data.get(name, {})) for name in TABLES}
        object.__setattr__(record, "_tables", tables)
        for name in TABLES:
            # `__getattr__` fills them in.
            object.__delattr__(record, name)
        return record

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - rows, or all tables
        """Return the rows of a table that nobody has looked at yet."""
        if name == "_tables":
            # A copy (``replace``) is made of rows.
            made: Any = {n: to_columns(kind, getattr(self, n)) for n, kind in TABLES.items()}
        elif name in TABLES:
            made = from_columns(TABLES[name], self._tables[name])
        else:
            raise AttributeError(name)
        object.__setattr__(self, name, made)
        return made

    @property
    def ok(self) -> bool:
        """Whether everything that was asked for happened."""
        errors = self._tables["operations"]["error"]
        return self.error is None and errors.count(None) == len(errors)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able value with one table of columns per kind of row."""
        return {name: getattr(self, name) for name in _SCALARS} | self._tables


def _checked(name: str, columns: Columns) -> Columns:
    """Return a table with all of its columns.

    Raises
    ------
    TypeError, ValueError
        If it is no such table.
    """
    known = _COLUMNS[name]
    if not columns.keys() <= known.keys():
        raise TypeError(f"{name} has unknown columns: {sorted(columns.keys() - known.keys())}")
    if not all(isinstance(column, list) for column in columns.values()):
        raise TypeError(f"{name} has a column that is no list")
    lengths = {len(column) for column in columns.values()}
    if len(lengths) > 1:
        raise ValueError(f"{name} has columns of unequal length")
    count = lengths.pop() if lengths else 0
    if len(columns) == len(known):
        complete = columns
    else:
        missing = {column: known[column] for column in known.keys() - columns.keys()}
        if count and MISSING in missing.values():
            raise TypeError(f"{name} lacks columns")
        complete = {**columns, **{column: [value] * count for column, value in missing.items()}}
    for (table, column), choices in _CHOICES.items():
        if table == name and not choices.issuperset(complete[column]):
            raise ValueError(f"{name} has a {column} that is unknown")
    return complete
