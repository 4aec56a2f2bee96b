"""Conversion of an op-log's threads into function calls."""

import heapq
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from serverless_bench.base.errors import UsageError
from serverless_bench.base.units import NS_PER_S, format_count, format_rate
from serverless_bench.features.formats.importers.base import (
    GET,
    KINDS,
    PUT,
    FunctionCall,
    Hints,
    Imported,
    ImportedRows,
    Importer,
)
from serverless_bench.features.formats.importers.oplog import OpLog
from serverless_bench.job.operations import OperationKind
from serverless_bench.rundir.tables import ABSENT, Ints

_DELETIONS: Final = [
    place
    for place, kind in enumerate(KINDS)
    if kind in {OperationKind.DELETE, OperationKind.DELETE_MANY}
]
_PAUSE_NS: Final = NS_PER_S
"""Shortest pause between preparation and measurement; warp's lasts 3 s."""


def oplog_importer(tool: str, *, trusted: bool) -> Importer:
    """Return the importer of the op-logs of a tool; ``trusted`` as in ``imported_from``.

    Only logs of warp have categories, or first bytes before the end of operations.
    """
    return Importer(
        takes=lambda content: isinstance(content, OpLog),
        recognises=lambda content: (
            isinstance(content, OpLog)
            and (content.has_categories or content.first_bytes_differ) is trusted
        ),
        read=lambda log, hints: imported_from(log, hints, tool=tool, trusted=trusted),
    )


def imported_from(log: OpLog, hints: Hints, *, tool: str, trusted: bool) -> Imported:
    """Return an op-log as function calls: one per thread, with operations in order.

    Parameters
    ----------
    log
        The op-log.
    hints
        Empty hints: an op-log has all this information itself.
    tool
        Name in ``IMPORTERS``.
    trusted
        Whether ``first_byte`` is correct, and ``thread`` runs one operation at a time. If not,
        first bytes are dropped and overlapping operations become separate calls.

    Raises
    ------
    UsageError
        If a hint is given.
    """
    if hints.phase is not None or hints.size_bytes is not None:
        raise UsageError(
            "--phase and --size are for pickles", hint="an op-log says both for each operation"
        )
    names, function = _in_order(log)
    notes = list(_notes(log, _drop_strange_instants(log.rows, keep_first_bytes=trusted)))
    order = np.lexsort((log.rows.column("start_ns"), function))
    if _overlap(log.rows, function, order):
        if trusted:
            notes.append("operations of a thread overlap, unlike those of warp's threads")
        else:
            names, function = _distributed(log.rows, names, function, order)
            notes.append(
                "operations of a thread overlap: they are distributed over"
                f" {len(names)} function calls, as many as ran at once"
            )
    notes += _leave_out(log.rows)
    kinds = set(log.rows.column("kind")[log.rows.column("warmup") == 0].tolist())
    return Imported(
        tool=tool,
        path=log.path,
        workload={frozenset({PUT}): "write", frozenset({GET}): "read"}.get(
            frozenset(kinds), "mixed"
        ),
        calls=tuple(FunctionCall(index=i, worker_id=name) for i, name in enumerate(names)),
        lost={},
        rows=replace(log.rows, function=array("q", function.tobytes())),
        concurrency=len(names),
        created_ns=int(log.rows.column("start_ns").min()),
        endpoint_url=log.endpoint,
        remarks={"bytes": "as recorded", "left_out": dict(log.others)},
        notes=tuple(notes),
    )


def _leave_out(rows: ImportedRows) -> Iterator[str]:
    """Mark preparation and cleanup, which tools do not count either, and yield a note for each.

    Preparation are writes before all else, cleanup are deletions after all else. Where the
    measurement writes, too, a pause separates it from the preparation.
    """
    kind, start, end = rows.column("kind"), rows.column("start_ns"), rows.column("end_ns")
    writes, deletes = kind == PUT, np.isin(kind, _DELETIONS)
    if writes.all() or not writes.any():
        return
    before = writes & (end <= start[~writes].min())
    if before.any() and (writes & ~before).any():
        before &= int(start[~before].min() - end[before].max()) >= _PAUSE_NS
    others = ~(before | deletes)
    after = np.zeros_like(before)
    if before.any() and others.any() and deletes.any():
        after = deletes & bool(start[deletes].min() >= end[others].max())
    for name, mask in (("preparation", before), ("cleanup", after)):
        if not mask.any():
            continue
        rows.column("warmup")[mask] = 1
        took_s = int(end[mask].max() - start[mask].min()) / NS_PER_S
        count, moved = int(mask.sum()), int(rows.column("size_bytes")[mask].sum())
        pace = f"{count / took_s:.4g}/s, {format_rate(moved / took_s)}" if took_s else "at once"
        yield f"{format_count(count, 'operation')} of {name} left out of all figures ({pace})"


def _notes(log: OpLog, dropped: int) -> Iterator[str]:
    if log.others:
        counts = ", ".join(f"{count} {kind}" for kind, count in sorted(log.others.items()))
        yield f"dropped, as their kind is unknown: {counts}"
    if dropped:
        yield f"{dropped} first or last bytes lie outside their operations: dropped"
    if log.clock_set:
        yield (
            f"the durations of {log.clock_set} operations do not match their instants:"
            " a clock was set; the instants are used"
        )


def _in_order(log: OpLog) -> tuple[list[str], Ints]:
    """Return the names of the threads in order, and each operation's position in them."""

    def place(number: int) -> tuple[str, int, str]:
        client, name = log.threads[number]
        return client, int(name) if name.isdecimal() else 0, name

    ordered = sorted(range(len(log.threads)), key=place)
    number = np.empty(len(ordered), dtype=np.int64)
    number[ordered] = np.arange(len(ordered))
    names = ["/".join(log.threads[i]) for i in ordered]
    return names, np.asarray(number[log.rows.column("function")], dtype=np.int64)


def _drop_strange_instants(rows: ImportedRows, *, keep_first_bytes: bool) -> int:
    """Clear first and last bytes outside their operations, and return the number of these."""
    dropped = 0
    start, end = rows.column("start_ns"), rows.column("end_ns")
    for name in ("first_byte_ns", "last_byte_ns"):
        column = rows.column(name)
        is_known = column != ABSENT
        outside = is_known & ((column < start) | (column > end))
        dropped += int(outside.sum())
        if name == "first_byte_ns" and not keep_first_bytes:
            outside = is_known
        column[outside] = ABSENT
    return dropped


def _overlap(rows: ImportedRows, function: Ints, order: Ints) -> bool:
    """Return whether a thread starts an operation before the last operation has ended."""
    same = function[order][1:] == function[order][:-1]
    start, end = rows.column("start_ns")[order], rows.column("end_ns")[order]
    return bool((same & (start[1:] < end[:-1])).any())


def _distributed(
    rows: ImportedRows, names: Sequence[str], function: Ints, order: Ints
) -> tuple[list[str], Ints]:
    """Split threads into as many calls as they had simultaneous operations.

    Each operation goes to the call that has been free for longest.
    """
    ends: list[list[tuple[int, int]]] = [[] for _ in names]
    call_of = np.empty(len(order), dtype=np.int64)
    call_names: list[str] = []
    for row in order.tolist():
        thread = int(function[row])
        free = ends[thread]
        if free and free[0][0] <= rows.start_ns[row]:
            call = free[0][1]
            heapq.heapreplace(free, (rows.end_ns[row], call))
        else:
            call = len(call_names)
            call_names.append(f"{names[thread]}/{len(free)}")
            heapq.heappush(free, (rows.end_ns[row], call))
        call_of[row] = call
    return call_names, call_of
