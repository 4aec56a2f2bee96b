"""Find the keys that an invocation wrote and that are valid to read, from its record."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import orjson

from serverless_bench.job.operations import OperationKind
from serverless_bench.rundir.files import open_file, record_lines
from serverless_bench.rundir.received import record_of
from serverless_bench.rundir.record import OperationRecord
from serverless_bench.rundir.rows import Columns, to_columns

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
