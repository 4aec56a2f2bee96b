"""Validation of records in JSON.

Anyone with write access to a store may have written a worker's record there, and a run directory
may come from another user. A record is validated when it is received and when it is read from
disk; all other code trusts it. It tells which
keys are valid to read.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, fields
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Union, get_args

import msgspec
import orjson

from serverless_bench.job.operations import OperationKind
from serverless_bench.rundir.files import open_file, record_lines
from serverless_bench.rundir.record import (
    TABLES,
    FoundBytes,
    InvocationRecord,
    Lost,
    OperationRecord,
)
from serverless_bench.rundir.rows import Act, Columns, Ending, Rows, column, to_columns
from serverless_bench.rundir.schema import LIMIT, Count
from serverless_bench.rundir.tables import ABSENT

_WORDS_OF_OTHERS: Final = frozenset({"detail", "error"})
"""Fields with messages of a library or a user's function, which may contain newlines."""
_NUMBERS: Final[Mapping[Any, Any]] = {
    int: Count,
    float: Annotated[float, msgspec.Meta(ge=0, lt=LIMIT)],
}
# S3 keys have at most 1,024 bytes; error messages are truncated before.
_SENT: Final = {**_NUMBERS, str: Annotated[str, msgspec.Meta(max_length=4096)]}
"""Replacement types for validating a record that a worker sent."""
_SAVED: Final = {
    **_NUMBERS,
    # For tables of columns: literals, because converting to enum members is slower.
    **{kind: Literal[tuple(map(str, kind))] for kind in (OperationKind, FoundBytes, Act, Ending)},
}
"""Replacement types for validating a record in a run directory."""
_RARE: Final = frozenset({"tax_ns", "tax_of_ns", "hold_ns", "hold_of_ns", "extra_operations"})
"""Fields of runs of ``sbench why``, which earlier runs lack."""
# Imported runs may lack timestamps.
_Instant = Annotated[int, msgspec.Meta(ge=ABSENT, lt=LIMIT)] | None


def record_of(data: object) -> InvocationRecord:
    """Return the record that ``InvocationRecord.to_json`` converted to ``data``.

    Raises
    ------
    ValueError
        If ``data`` is not valid.
    """
    record: Any = msgspec.convert(data, _record_type(is_sent=True))
    rows: dict[str, Rows[Any]] = {
        name: Rows(TABLES[name], columns) for name, columns in tables_of(record).items()
    }
    return InvocationRecord(**{**msgspec.structs.asdict(record), **rows})


def tables_of(record: object) -> Mapping[str, Columns]:
    """Return the tables of a validated record as columns.

    Raises
    ------
    ValueError
        If columns differ in length, or a row refers to an operation that does not exist.
    """
    tables = {name: msgspec.structs.asdict(getattr(record, name)) for name in TABLES}
    for name, columns in tables.items():
        if len(set(map(len, columns.values()))) > 1:
            raise ValueError(f"columns of {name} differ in length")
        if max(columns.get("operation", ()), default=-1) >= len(tables["operations"]["index"]):
            raise ValueError(f"{name} refers to an operation that does not exist")
    return tables


def check_received(record: InvocationRecord, index: int, launch: int) -> None:
    """Reject a record of another launch, or with text that cannot be printed.

    Raises
    ------
    ValueError
        If the record is rejected; it gives the reason.
    """
    _check_texts(InvocationRecord, [record])
    if (record.index, record.launch) != (index, launch):
        raise ValueError(f"it belongs to launch {record.launch} of function {record.index}")
    for name, row_type in TABLES.items():
        _check_texts(row_type, getattr(record, name))


@cache
def outcome_type() -> type[msgspec.Struct]:
    """Return the type of an outcome line: a record, or a lost function."""
    lost = msgspec.defstruct(
        "Lost", [(item.name, _values(item.type, _SAVED)) for item in fields(Lost)]
    )
    fields_of_outcome: list[Any] = [
        ("submitted_ns", _Instant),
        ("collected_ns", _Instant),
        ("refusals", Count),
        ("record", _record_type(is_sent=False) | None, None),
        ("lost", lost | None, None),
    ]
    return _complete(msgspec.defstruct("Outcome", fields_of_outcome))


@cache
def _record_type(*, is_sent: bool) -> type[msgspec.Struct]:
    """Return the type of a record in JSON, where a table has one list per field of its rows.

    A worker of another version may omit fields that have defaults; a run directory may have
    unknown fields.
    """
    kinds = _SENT if is_sent else _SAVED
    tables: dict[str, Any] = {
        name: msgspec.defstruct(
            row_type.__name__,
            [(item.name, list[_values(item.type, kinds)]) for item in fields(row_type)],  # type: ignore[misc]
            forbid_unknown_fields=is_sent,
        )
        for name, row_type in TABLES.items()
    }
    members = []
    for item in fields(InvocationRecord):
        may_lack = item.name in _RARE or (is_sent and item.name not in tables)
        has_default = may_lack and item.default is not MISSING
        kind = tables.get(item.name) or _values(item.type, kinds)
        members.append((item.name, kind, item.default if has_default else msgspec.NODEFAULT))
    return _complete(
        msgspec.defstruct("Record", members, forbid_unknown_fields=is_sent, kw_only=True)
    )


def _complete(kind: type[msgspec.Struct]) -> type[msgspec.Struct]:
    """Return a type that is safe to use from multiple threads.

    msgspec completes a type on its first use. Another thread that uses it during that time crashes
    the process, so use it here, before other threads can access it.
    """
    msgspec.json.Decoder(kind)
    return kind


def _values(kind: Any, kinds: Mapping[Any, Any]) -> Any:
    """Return a type with replacements from ``kinds`` for it or for the members of a union."""
    return Union[tuple(kinds.get(member, member) for member in get_args(kind) or (kind,))]  # noqa: UP007


def _check_texts(row_type: type, rows: Sequence[object]) -> None:
    for name in _plain_fields(row_type):
        if not "".join(filter(None, column(rows, name))).isprintable():
            raise ValueError(f"{name} has characters that cannot be printed")


@cache
def _plain_fields(row_type: Any) -> list[str]:
    """Return the names of text fields, except those with messages of other software."""
    texts = (item.name for item in fields(row_type) if str in {item.type, *get_args(item.type)})
    return [name for name in texts if name not in _WORDS_OF_OTHERS]


_WRITING: Final = frozenset({OperationKind.WRITE_ARRAY, OperationKind.APPEND_ARRAY})
_CHANGING: Final = _WRITING | {
    OperationKind.DELETE,
    OperationKind.DELETE_MANY,
    OperationKind.PUT,
}
"""Operation kinds that determine which keys are valid to read."""


def operations_in(path: Path) -> Iterator[Columns]:
    """Yield the operations of each record; unreadable lines are skipped."""
    with open_file(path) as file:
        for line in record_lines(file):
            with suppress(KeyError, TypeError, ValueError):
                record = record_of(orjson.loads(line)["record"])
                yield to_columns(OperationRecord, record.operations)


def readable_keys(operations: Columns) -> list[str]:
    """Return the keys of objects with the content that the key implies.

    Deleted objects, and objects overwritten with different bytes, are not valid to read.
    """
    if _CHANGING.isdisjoint(operations["kind"]):
        return []
    written: dict[str, bool] = {}
    columns = (operations[name] for name in ("kind", "key", "error", "generation"))
    for kind, key, error, generation in zip(*columns, strict=True):
        if kind == OperationKind.DELETE:
            written[key] = False
        elif kind == OperationKind.DELETE_MANY:
            # The record only names the first of the keys.
            written = dict.fromkeys(written, False)
        elif kind == OperationKind.PUT:
            # A successful write remains valid even if a later write of the same bytes fails.
            is_valid = error is None or written.get(key, False)
            written[key] = is_valid and not generation
    # Imported runs may have no keys.
    keys = [key for key, is_valid in written.items() if is_valid and key]
    # A key must fit on one line; a user's function may use any key.
    return [key for key in (*keys, *_whole_arrays(operations)) if key.isprintable()]


def _whole_arrays(operations: Columns) -> Iterator[str]:
    """Yield the keys of arrays that were written completely, without a gap."""
    if _WRITING.isdisjoint(operations["kind"]):
        return
    reach: dict[str, int] = {}
    columns = (operations[name] for name in ("kind", "key", "error", "offset", "bytes"))
    for kind, key, error, offset, moved in zip(*columns, strict=True):
        if kind in _WRITING and error is None and offset <= reach.get(key, 0):
            reach[key] = max(reach.get(key, 0), offset + moved)
    sizes = dict(zip(operations["key"], operations["size"], strict=True))
    yield from (key for key, end in reach.items() if end == sizes[key])
