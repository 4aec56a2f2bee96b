"""Export as warp's op-log of 15 columns, for ``warp analyze`` and other readers.

Each operation of a counted function is a row, except for the warm-up. As in warp, a thread runs
one operation at a time, so each thread of a function call becomes a thread of warp. warp numbers
threads with 16 bits, so 65,536 of them form a client.
"""

import csv
import io
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import BinaryIO, Final

import numpy as np

from serverless_bench.features.formats.exporters.base import Exporter
from serverless_bench.metrics.timeline import measured_operations
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import ABSENT, EARLIEST, Ints, Table

COLUMNS: Final = (
    *("idx", "thread", "op", "client_id", "n_objects", "bytes", "endpoint", "file", "error"),
    *("start", "first_byte", "last_byte", "end", "duration_ns", "cat"),
)
_NAMES: Final = {"get_range": "GET", "head": "STAT", "delete_many": "DELETE"}
"""warp's names of operations, if they are not sbench's names in capitals."""
_THREADS: Final = 1 << 16
_CHUNK: Final = 1 << 16
"""Number of rows that are converted to text at a time."""
_NEEDED: Final = (
    *("function", "kind", "count", "bytes", "key", "error"),
    *("start_ns", "first_byte_ns", "last_byte_sent_ns", "end_ns"),
)
"""Columns of ``operations`` that an export needs."""


def _write(run: Run, out: BinaryIO) -> None:
    text = io.TextIOWrapper(out, "utf-8", newline="", write_through=True)
    table = csv.writer(text, delimiter="\t", lineterminator="\n")
    table.writerow(COLUMNS)
    for rows in _chunks(run):
        table.writerows(rows)
    mark = "" if run.simulated is None else f", SIMULATED with {run.simulated}"
    text.write(f"# sbench export --format warp, run {run.run_id}{mark}\n")
    text.detach()


def _chunks(run: Run) -> Iterator[Iterator[Sequence[object]]]:
    # Get each column only once: the columns of a large run are computed on access.
    operations = {name: run.operations[name] for name in _NEEDED}
    order = np.flatnonzero(measured_operations(run))
    order = order[np.argsort(operations["start_ns"][order], kind="stable")]
    threads = run.job.load.threads
    thread: Ints = run.functions["index"][operations["function"]] * threads
    function, start, end = (operations[name][order] for name in ("function", "start_ns", "end_ns"))
    thread[order] += _lanes(function, start, end, threads)
    operations["thread"] = thread
    for begin in range(0, len(order), _CHUNK):
        part = order[begin : begin + _CHUNK]
        yield _rows(run, {name: column[part] for name, column in operations.items()}, begin)


def _lanes(function: Ints, start_ns: Ints, end_ns: Ints, threads: int) -> Ints:
    """Return a thread, from 0, for each operation of a function, in the order of the starts."""
    lanes = np.zeros(len(function), dtype=np.int64)
    if threads == 1:
        return lanes
    free_ns: defaultdict[int, list[int]] = defaultdict(lambda: [EARLIEST] * threads)
    rows = zip(function.tolist(), start_ns.tolist(), end_ns.tolist(), strict=True)
    for row, (number, start, end) in enumerate(rows):
        ends = free_ns[number]
        # Use the thread that became free last: a schedule leaves the remaining threads idle longer.
        done = [lane for lane, at in enumerate(ends) if at <= start]
        lane = max(done or range(threads), key=ends.__getitem__)
        lanes[row], ends[lane] = lane, end
    return lanes


def _rows(run: Run, operations: Table, begin: int) -> Iterator[Sequence[object]]:
    host = "sbench" if run.simulated is None else "simulated"
    start, end = operations["start_ns"], operations["end_ns"]
    # warp's column is the time at which the last byte was sent, so reads do not have it.
    columns = zip(
        operations["thread"].tolist(),
        [_NAMES.get(kind, kind.upper()) for kind in operations["kind"]],
        operations["count"].tolist(),
        operations["bytes"].tolist(),
        operations["key"],
        operations["error"],
        _instants(start),
        _instants(operations["first_byte_ns"]),
        _instants(operations["last_byte_sent_ns"]),
        _instants(end),
        (end - start).tolist(),
        strict=True,
    )
    endpoint = run.job.target.endpoint_url
    for i, (number, kind, count, size, key, error, *instants, duration) in enumerate(
        columns, begin
    ):
        client, thread = divmod(number, _THREADS)
        yield (
            *(i, thread, kind, f"{host}{client}", count, size, endpoint, key, error or ""),
            *(*instants, duration, 0),
        )


def _instants(column: Ints) -> list[str]:
    """Return RFC 3339 text with nanoseconds; empty for missing instants."""
    text = np.datetime_as_string(column.astype("datetime64[ns]"), unit="ns").tolist()
    return [
        f"{at}Z" if is_known else "" for at, is_known in zip(text, column != ABSENT, strict=True)
    ]


EXPORTER = Exporter(write=_write, is_text=True)
