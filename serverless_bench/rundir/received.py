"""A record as somebody else sent it: whether each of its values can be.

What a worker leaves in a store, anybody may have written who may write there. It is checked once,
where it arrives; what is behind that trusts it.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from functools import cache
from typing import Annotated, Any, Final, Union, get_args

import msgspec

from serverless_bench.rundir.record import TABLES, InvocationRecord
from serverless_bench.rundir.rows import Rows, column
from serverless_bench.rundir.schema import LIMIT, Count

_MOST_CHARACTERS: Final = 4096
"""Of a text; a key of S3 has 1,024 bytes, and what went wrong is cut before."""
_WORDS_OF_OTHERS: Final = frozenset({"detail", "error"})
"""Fields with what a library or a user's function says: lines, too."""
_BOUNDED: Final[Mapping[Any, Any]] = {
    int: Count,
    float: Annotated[float, msgspec.Meta(ge=0, lt=LIMIT)],
    str: Annotated[str, msgspec.Meta(max_length=_MOST_CHARACTERS)],
}


def record_of(data: object) -> InvocationRecord:
    """Return the record that ``InvocationRecord.to_json`` made ``data`` from.

    Raises
    ------
    ValueError
        If ``data`` is anything else.
    """
    values = msgspec.structs.asdict(msgspec.convert(data, _sent_record()))
    for table, row_type in TABLES.items():
        columns = msgspec.structs.asdict(values[table])
        if len({len(each) for each in columns.values()}) > 1:
            raise ValueError(f"columns of {table} are of unequal length")
        values[table] = Rows(row_type, columns)
    return InvocationRecord(**values)


def check_received(record: InvocationRecord, index: int, launch: int) -> None:
    """Refuse a record of another launch, of operations without a place, or of no plain text.

    Raises
    ------
    ValueError
        If it is; it says why.
    """
    _check_texts(InvocationRecord, [record])
    if (record.index, record.launch) != (index, launch):
        raise ValueError(f"it is of launch {record.launch} of function {record.index}")
    for table, row_type in TABLES.items():
        rows = getattr(record, table)
        _check_texts(row_type, rows)
        numbers = rows.columns.get("operation")
        if numbers and max(numbers) >= len(record.operations):
            raise ValueError(f"{table} of an operation that there is not")


@cache
def _sent_record() -> type[msgspec.Struct]:
    """Return what a record is in JSON: a table is one list for each field of its rows."""
    tables = {
        table: msgspec.defstruct(
            row_type.__name__,
            [(each.name, list[_bounded(each.type)]) for each in fields(row_type)],  # type: ignore[misc]
            forbid_unknown_fields=True,
        )
        for table, row_type in TABLES.items()
    }
    given = [
        (each.name, tables.get(each.name) or _bounded(each.type), _default(each, tables))
        for each in fields(InvocationRecord)
    ]
    return msgspec.defstruct("Record", given, forbid_unknown_fields=True, kw_only=True)


def _default(field: Field[Any], tables: Collection[str]) -> object:
    has_none = field.name in tables or field.default is MISSING
    return msgspec.NODEFAULT if has_none else field.default


def _bounded(kind: Any) -> Any:  # noqa: ANN401 - a type, or a union of some
    """Return a type whose values are those that a run directory may have."""
    return Union[tuple(_BOUNDED.get(each, each) for each in get_args(kind) or (kind,))]  # noqa: UP007


def _check_texts(row_type: type, rows: Sequence[object]) -> None:
    for name in _plain_fields(row_type):
        if not "".join(filter(None, column(rows, name))).isprintable():
            raise ValueError(f"{name} has characters that cannot be printed")


@cache
def _plain_fields(row_type: type) -> list[str]:
    """Return the names of fields that have texts, and no lines of somebody else."""
    texts = (each.name for each in fields(row_type) if str in {each.type, *get_args(each.type)})
    return [name for name in texts if name not in _WORDS_OF_OTHERS]
