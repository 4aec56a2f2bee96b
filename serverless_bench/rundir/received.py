"""Records as JSON: whether each of their values can be.

What a worker leaves in a store, anybody may have written who may write there, and a run directory
may be somebody else's. A record is checked where it arrives, and where it is read; what is behind
that trusts it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from functools import cache
from typing import Annotated, Any, Final, Literal, Union, get_args

import msgspec

from serverless_bench.job.operations import OperationKind
from serverless_bench.rundir.access import Act, Ending
from serverless_bench.rundir.record import TABLES, FoundBytes, InvocationRecord, Lost
from serverless_bench.rundir.rows import Columns, Rows, column
from serverless_bench.rundir.schema import LIMIT, Count
from serverless_bench.rundir.tables import ABSENT

_WORDS_OF_OTHERS: Final = frozenset({"detail", "error"})
"""Fields with what a library or a user's function says: lines, too."""
_NUMBERS: Final[Mapping[Any, Any]] = {
    int: Count,
    float: Annotated[float, msgspec.Meta(ge=0, lt=LIMIT)],
}
# A key of S3 has 1,024 bytes, and what went wrong is cut before.
_SENT: Final = {**_NUMBERS, str: Annotated[str, msgspec.Meta(max_length=4096)]}
"""What stands for a type in a record that was sent."""
_SAVED: Final = {
    **_NUMBERS,
    # Of tables of columns, the words themselves: members take longer to be looked up.
    **{kind: Literal[tuple(map(str, kind))] for kind in (OperationKind, FoundBytes, Act, Ending)},
}
"""What stands for a type in a run directory."""
# What was imported may not say when.
_Instant = Annotated[int, msgspec.Meta(ge=ABSENT, lt=LIMIT)] | None


def record_of(data: object) -> InvocationRecord:
    """Return the record that ``InvocationRecord.to_json`` made ``data`` from.

    Raises
    ------
    ValueError
        If ``data`` is anything else.
    """
    record: Any = msgspec.convert(data, _record_type(is_sent=True))
    rows: dict[str, Rows[Any]] = {
        name: Rows(TABLES[name], columns) for name, columns in tables_of(record).items()
    }
    return InvocationRecord(**{**msgspec.structs.asdict(record), **rows})


def tables_of(record: object) -> Mapping[str, Columns]:
    """Return the tables of a record whose values are checked, as columns.

    Raises
    ------
    ValueError
        If the columns, or the tables, do not fit together.
    """
    tables = {name: msgspec.structs.asdict(getattr(record, name)) for name in TABLES}
    for name, columns in tables.items():
        if len(set(map(len, columns.values()))) > 1:
            raise ValueError(f"columns of {name} are of unequal length")
        if max(columns.get("operation", ()), default=-1) >= len(tables["operations"]["index"]):
            raise ValueError(f"{name} of an operation that there is not")
    return tables


def check_received(record: InvocationRecord, index: int, launch: int) -> None:
    """Refuse a record of another launch, or with texts that cannot be shown.

    Raises
    ------
    ValueError
        If it is; it says why.
    """
    _check_texts(InvocationRecord, [record])
    if (record.index, record.launch) != (index, launch):
        raise ValueError(f"it is of launch {record.launch} of function {record.index}")
    for name, row_type in TABLES.items():
        _check_texts(row_type, getattr(record, name))


@cache
def outcome_type() -> type[msgspec.Struct]:
    """Return what a line of records says of a function call: a record, or that it is lost."""
    lost = msgspec.defstruct(
        "Lost", [(one.name, _values(one.type, _SAVED)) for one in fields(Lost)]
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
    """Return what a record is in JSON: a table is one list for each field of its rows.

    A worker of another version may leave fields out that have defaults; a run directory may have
    more fields than are known here.
    """
    kinds = _SENT if is_sent else _SAVED
    tables: dict[str, Any] = {
        name: msgspec.defstruct(
            row_type.__name__,
            [(one.name, list[_values(one.type, kinds)]) for one in fields(row_type)],  # type: ignore[misc]
            forbid_unknown_fields=is_sent,
        )
        for name, row_type in TABLES.items()
    }
    given = []
    for one in fields(InvocationRecord):
        has_default = is_sent and one.name not in tables and one.default is not MISSING
        kind = tables.get(one.name) or _values(one.type, kinds)
        given.append((one.name, kind, one.default if has_default else msgspec.NODEFAULT))
    return _complete(
        msgspec.defstruct("Record", given, forbid_unknown_fields=is_sent, kw_only=True)
    )


def _complete(kind: type[msgspec.Struct]) -> type[msgspec.Struct]:
    """Return a type that several threads may use.

    msgspec completes a type when it is first used. A second thread that uses it meanwhile crashes
    the process, so it is used here, where no other thread has it yet.
    """
    msgspec.json.Decoder(kind)
    return kind


def _values(kind: Any, kinds: Mapping[Any, Any]) -> Any:  # noqa: ANN401 - types
    """Return a type with others in the place of it, or of the members of a union."""
    return Union[tuple(kinds.get(one, one) for one in get_args(kind) or (kind,))]  # noqa: UP007


def _check_texts(row_type: type, rows: Sequence[object]) -> None:
    for name in _plain_fields(row_type):
        if not "".join(filter(None, column(rows, name))).isprintable():
            raise ValueError(f"{name} has characters that cannot be printed")


@cache
def _plain_fields(row_type: Any) -> list[str]:  # noqa: ANN401 - a dataclass
    """Return the names of fields that have texts, and no lines of somebody else."""
    texts = (one.name for one in fields(row_type) if str in {one.type, *get_args(one.type)})
    return [name for name in texts if name not in _WORDS_OF_OTHERS]
