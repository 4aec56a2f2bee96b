"""A record as somebody else sent it: whether each of its values can be.

What a worker leaves in a store, anybody may have written who may write there. It is checked once,
where it arrives, a column at a time; what is behind that trusts it.
"""

import math
import struct
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import fields
from enum import StrEnum
from functools import cache
from types import NoneType
from typing import Any, Final, get_args

from serverless_bench.rundir.record import TABLES, InvocationRecord
from serverless_bench.rundir.rows import column

_MOST_CHARACTERS: Final = 4096
"""Of a text; a key of S3 has 1,024 bytes, and what went wrong is cut before."""
_WORDS_OF_OTHERS: Final = frozenset({"detail", "error"})
"""Fields with what a library or a user's function says: lines, too."""
_BEYOND: Final = 1 << 63


def check_received(record: InvocationRecord, index: int, launch: int) -> None:
    """Refuse a record of another launch, or with a value that is none of its field.

    Raises
    ------
    ValueError
        If it is; it says why.
    """
    for name, types in _types(InvocationRecord).items():
        if name not in TABLES:
            _check([getattr(record, name)], name, types)
    if (record.index, record.launch) != (index, launch):
        raise ValueError(f"it is of launch {record.launch} of function {record.index}")
    operations = len(record.operations)
    for table, row_type in TABLES.items():
        rows = getattr(record, table)
        for name, types in _types(row_type).items():
            values = column(rows, name)
            _check(list(values) if not isinstance(values, list) else values, name, types)
        if "operation" in _types(row_type) and len(rows):
            numbers = column(rows, "operation")
            if not 0 <= min(numbers) <= max(numbers) < operations:
                raise ValueError(f"{table} of an operation that there is not")


@cache
def _types(row_type: type) -> dict[str, frozenset[type]]:
    """Return by field what types its values may have, as JSON brings them."""
    kinds = {each.name: get_args(each.type) or (each.type,) for each in fields(row_type)}
    return {
        name: frozenset((*some, int) if float in some else some) for name, some in kinds.items()
    }


def _check(values: Sequence[Any], name: str, types: Collection[type]) -> None:
    if int in types and float not in types:
        # Tells at once what nearly all columns of whole numbers are.
        with suppress(struct.error):
            struct.pack(f"{len(values)}q", *values)
            return
    found = set(map(type, values))
    if not found <= set(types):
        raise ValueError(f"{name} is of type {', '.join(sorted(t.__name__ for t in found))}")
    known = values if NoneType not in found else [value for value in values if value is not None]
    if not known or any(issubclass(kind, StrEnum) for kind in types):
        return
    if str in types:
        _check_texts(known, name)
    elif not all(-_BEYOND <= value < _BEYOND and math.isfinite(value) for value in known):
        raise ValueError(f"{name} is a number that 64 bits do not hold")


def _check_texts(texts: Sequence[str], name: str) -> None:
    if max(map(len, texts)) > _MOST_CHARACTERS:
        raise ValueError(f"{name} has more than {_MOST_CHARACTERS} characters")
    if name not in _WORDS_OF_OTHERS and not "".join(texts).isprintable():
        raise ValueError(f"{name} has characters that cannot be printed")
