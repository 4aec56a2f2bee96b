"""Which keys an invocation has written, by its record: those that are good to read."""

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
"""Kinds that decide which keys are good to read."""


def operations_in(path: Path) -> Iterator[Columns]:
    """Yield the operations of each record; lines that are not readable are left out."""
    with open_file(path) as file:
        for line in record_lines(file):
            with suppress(KeyError, TypeError, ValueError):
                record = record_of(orjson.loads(line)["record"])
                yield to_columns(OperationRecord, record.operations)


def readable_keys(operations: Columns) -> list[str]:
    """Return the keys of the objects that an invocation has left as their keys say.

    Those that were deleted or overwritten with other bytes are no good to a reader.
    """
    if _CHANGING.isdisjoint(operations["kind"]):
        return []
    written: dict[str, bool] = {}
    columns = (operations[name] for name in ("kind", "key", "error", "generation"))
    for kind, key, error, generation in zip(*columns, strict=True):
        if kind == OperationKind.DELETE:
            written[key] = False
        elif kind == OperationKind.DELETE_MANY:
            # Its record names the first of the keys alone.
            written = dict.fromkeys(written, False)
        elif kind == OperationKind.PUT:
            # Once written it is there, even if it could not be written again.
            good = error is None or written.get(key, False)
            written[key] = good and not generation
    # What was imported may name no keys.
    known = [key for key, good in written.items() if good and key]
    # Each is to be a line of its own; what a user's function names is the user's.
    return [key for key in (*known, *_whole_arrays(operations)) if key.isprintable()]


def _whole_arrays(operations: Columns) -> Iterator[str]:
    """Yield the keys of arrays that were written to their end, without a gap."""
    if _WRITING.isdisjoint(operations["kind"]):
        return
    reach: dict[str, int] = {}
    columns = (operations[name] for name in ("kind", "key", "error", "offset", "bytes"))
    for kind, key, error, offset, moved in zip(*columns, strict=True):
        if kind in _WRITING and error is None and offset <= reach.get(key, 0):
            reach[key] = max(reach.get(key, 0), offset + moved)
    sizes = dict(zip(operations["key"], operations["size"], strict=True))
    yield from (key for key, end in reach.items() if end == sizes[key])
