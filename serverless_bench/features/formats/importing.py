"""Import of another tool's results into a run directory like those of sbench."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from serverless_bench.base.errors import ArchiveError
from serverless_bench.features.formats.importers import read_results
from serverless_bench.features.formats.importers.base import (
    KINDS,
    FunctionCall,
    Hints,
    Imported,
    ImportedRows,
)
from serverless_bench.job.keys import new_run_id
from serverless_bench.job.spec import DescribedJob, JobSpec
from serverless_bench.job.target import MAX_PART_BYTES, MAX_PARTS, Target, Transfer, Verify
from serverless_bench.rundir.archive import Archive
from serverless_bench.rundir.record import (
    Attempt,
    InvocationRecord,
    Lost,
    OperationRecord,
    Outcome,
    Step,
)
from serverless_bench.rundir.rows import Rows
from serverless_bench.rundir.run import Run, load_run
from serverless_bench.rundir.tables import ABSENT, Ints
from serverless_bench.version import __version__


def save(imported: Imported, directory: Path, *, network_rate: float | None = None) -> None:
    """Write a run directory.

    Parameters
    ----------
    imported
        Content of a file.
    directory
        The new run directory.
    network_rate
        Rate of the network, as in ``JobSpec``.

    Raises
    ------
    ArchiveError
        If the directory holds a run, or cannot be written.
    """
    run_id = new_run_id(imported.created_ns)
    header = {
        "run_id": run_id,
        "created_ns": imported.created_ns,
        "job": job_of(imported, directory.name, network_rate).to_json(),
        "provenance": {
            "sbench": __version__,
            "client": {"attempts": "hidden", "progress": "none"},
            "source": {
                "format": imported.tool,
                "file": imported.path.name,
                **imported.remarks,
            },
        },
    }
    with Archive(directory, header=header) as archive:
        for outcome in outcomes(imported, run_id):
            archive.append(outcome)
    if archive.failure is not None:
        raise ArchiveError(
            archive.shortfall, hint="free space on the disk, delete the directory and import again"
        )


def job_of(imported: Imported, name: str, network_rate: float | None) -> JobSpec:
    """Return the job that corresponds to the imported results."""
    return DescribedJob(
        name=name,
        workload=imported.workload,
        target=Target(
            client=imported.tool,
            bucket=imported.bucket,
            prefix="",
            endpoint_url=imported.endpoint_url,
        ),
        transfer=Transfer(verify=Verify.NONE),
        executor="imported",
        number=imported.requested,
        concurrency=imported.concurrency,
        size=_object_bytes(imported),
        network_rate=network_rate,
    )


def _object_bytes(imported: Imported) -> int | None:
    """Return the size of the objects written, if they all have the same size."""
    if imported.workload != "write":
        return None
    rows = imported.rows
    sizes = {s for s, e in zip(rows.size_bytes, rows.error, strict=True) if e is None}
    size = sizes.pop() if len(sizes) == 1 else 0
    return size if 1 <= size <= MAX_PARTS * MAX_PART_BYTES else None


def outcomes(imported: Imported, run_id: str) -> Iterator[Outcome]:
    """Yield an outcome per function call, with or without a result, in the order of indices."""
    rows = imported.rows
    function = rows.column("function")
    order = np.lexsort((rows.column("end_ns"), rows.column("start_ns"), function))
    calls = {call.index: call for call in imported.calls}
    borders = np.searchsorted(function[order], np.arange(imported.requested + 1))
    for index in range(imported.requested):
        if index in calls:
            yield _outcome(calls[index], rows, order[borders[index] : borders[index + 1]], run_id)
        else:
            lost = Lost(index=index, launch=0, cause=imported.lost[index])
            yield Outcome(submitted_ns=ABSENT, collected_ns=ABSENT, result=lost)


def _outcome(call: FunctionCall, rows: ImportedRows, of_call: Ints, run_id: str) -> Outcome:
    start_ns = int(rows.column("start_ns")[of_call].min())
    end_ns = int(rows.column("end_ns")[of_call].max())
    start_ns = start_ns if call.start_ns is None else min(call.start_ns, start_ns)
    end_ns = end_ns if call.end_ns is None else max(call.end_ns, end_ns)
    record = InvocationRecord(
        run_id=run_id,
        index=call.index,
        launch=0,
        worker_id=call.worker_id,
        cold_start=call.cold_start,
        version="",
        python="",
        start_ns=start_ns,
        end_ns=end_ns,
        wall_start_ns=start_ns,
        wall_end_ns=end_ns,
        cpu_user_s=0.0,
        cpu_sys_s=0.0,
        max_rss_bytes=0,
        **_tables(rows, of_call),
    )
    return Outcome(submitted_ns=call.submitted_ns, collected_ns=call.collected_ns, result=record)


def _tables(rows: ImportedRows, of_call: Ints) -> dict[str, Any]:
    """Return operations with an attempt each, and the mean rates of successful operations."""
    number = np.arange(len(of_call))
    error = [rows.error[row] for row in of_call]
    good = np.array([code is None for code in error], dtype=bool)
    start_ns, end_ns = rows.column("start_ns")[of_call], rows.column("end_ns")[of_call]
    # For a failed operation, the file has the planned bytes and not the transferred bytes.
    moved = np.where(good, rows.column("size_bytes")[of_call], 0)
    kinds = [KINDS[place] for place in rows.column("kind")[of_call].tolist()]
    both = {
        "start_ns": start_ns.tolist(),
        "end_ns": end_ns.tolist(),
        "bytes": moved.tolist(),
        "error": error,
    }
    operations = {
        "index": number.tolist(),
        "kind": kinds,
        "key": [rows.key[row] for row in of_call],
        "size": None,
        "warmup": [bool(value) for value in rows.column("warmup")[of_call].tolist()],
        "count": rows.column("count")[of_call].tolist(),
        "first_byte_ns": _or_none(rows.column("first_byte_ns")[of_call]),
        "last_byte_sent_ns": _or_none(rows.column("last_byte_ns")[of_call]),
        "verified_bytes": 0,
        "bad_bytes": 0,
        "bad_ranges": 0,
        "payload_ns": 0,
    }
    attempts = {
        "operation": number.tolist(),
        "request": [kind.value for kind in kinds],
        "part": 0,
        "number": 0,
        "wait_ns": 0,
        "status": None,
        "detail": [rows.detail[row] for row in of_call],
        "request_id": None,
        "host_id": None,
        "remote": None,
        "reused": False,
    }
    steps = {
        "operation": number[good].tolist(),
        "step_ns": (end_ns - start_ns)[good].tolist(),
        "step_bytes": moved[good].tolist(),
    }
    return {
        "operations": _rows(OperationRecord, operations | both),
        "attempts": _rows(Attempt, attempts | both),
        "steps": _rows(Step, steps),
    }


def _or_none(column: Ints) -> list[int | None]:
    return [None if value == ABSENT else value for value in column.tolist()]


def _rows(row_type: type, columns: Mapping[str, Any]) -> Rows[Any]:
    """Return rows of columns; a value other than a list is repeated, or is the default."""
    count = max(len(column) for column in columns.values() if isinstance(column, list))
    values = {f.name: columns.get(f.name, f.default) for f in fields(row_type)}
    lists = {n: v if isinstance(v, list) else [v] * count for n, v in values.items()}
    return Rows(row_type, lists)


def import_run(
    file: str | PathLike[str],
    directory: Path,
    hints: Mapping[str, Any],
    *,
    tool: str | None = None,
    network_rate: float | None = None,
    on_notes: Callable[[Iterable[str]], object] = lambda _: None,
    detail: bool = True,
) -> Run:
    """Write a run directory with the results in a file, and return the run.

    Parameters
    ----------
    file
        The results.
    directory
        The new run directory.
    hints
        Values of ``Hints``.
    tool
        Name of the importer; None to detect the format.
    network_rate
        Rate of the network, as in ``JobSpec``.
    on_notes
        Called with notes about the results before anything is written.
    detail
        Same as for ``load_run``.

    Raises
    ------
    UsageError, PluginError, ArchiveError
        Same as for ``read_results`` and ``save``.
    """
    imported = read_results(Path(file), Hints(**hints), name=tool)
    on_notes(imported.notes)
    save(imported, directory, network_rate=network_rate)
    # Do not keep two copies of the operations in memory, which may be millions.
    del imported
    return load_run(directory, detail=detail)
