"""A run directory, read: finished or not.

A run directory holds::

    run.json        job, provenance and schema version, fsynced before the first function
    ledger.txt      every key that the run may create, fsynced before the first function:
                    nothing else is ever deleted
    records.jsonl   one line per outcome, appended as it arrives, and a last line that
                    says that the driver came to an end
    keys.txt        keys of the objects written, one per line, appended as they arrive;
                    of a run that reads, the keys that it was given

A line that is cut off is skipped and counted, so killing the driver costs only what had
not arrived. Loading turns lines into columns and makes no object per row: a million
operations would take 1.8 GiB as objects.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import orjson
from numpy.typing import NDArray

from serverless_bench.errors import ArchiveError
from serverless_bench.job.keys import hash_key
from serverless_bench.job.spec import JobSpec
from serverless_bench.rundir.files import open_file, read_lines, record_lines
from serverless_bench.rundir.listing import HEADER, RECORDS
from serverless_bench.rundir.planned import plan_of
from serverless_bench.rundir.reader import RecordReader, with_status
from serverless_bench.rundir.schema import Neighbours, Stability, WaveLine, check_header
from serverless_bench.rundir.tables import Frames, Ints, Table, is_text, to_frame

SCHEMA: Final = 1
_MAX_HEADER_BYTES: Final = 64 << 20

_DETAIL: Final = frozenset({"detail", "host_id", "key", "python", "remote", "request_id"})
"""Text that differs from row to row; a report does without."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Run:
    """A saved run, finished or not.

    Each table but ``functions`` has the columns of its record type in ``record``, and
    ``function``, the row of ``functions`` that its row belongs to.

    Examples
    --------
    >>> written.frames().operations["bytes"].tolist()
    [1048576, 1048576, 1048576, 1048576]
    """

    path: Path
    run_id: str
    created_ns: int
    """When the run began, on the driver's clock."""
    job: JobSpec
    provenance: Mapping[str, Any]
    """Versions, host and settings that the figures depend on."""
    functions: Table
    """One row per planned invocation, and one per further line about it, with ``status``
    (ok, failed or lost; duplicate or superseded for the further ones), ``error`` (why),
    ``deviation`` (how one that is ok differs from its plan), the driver's and the worker's
    instants, and what the worker used."""
    operations: Table
    attempts: Table
    steps: Table
    bad_ranges: Table
    """With ``found_key``: the key of the object whose bytes were there, if the run knows it."""
    ended: bool
    """Whether the driver came to an end; False while it runs, and if it was killed."""
    waves: tuple[WaveLine, ...] = ()
    """What was launched again: ``number``, ``created_ns`` (driver's clock) and ``count`` of
    each wave after the first launch. A function's ``launch`` is the number of its wave."""
    downtimes: tuple[tuple[int, int], ...] = ()
    """When no driver was at work on an unfinished run, on the driver's clock: from the last
    sign of one until the next one resumed the run."""
    suspensions: tuple[tuple[int, int], ...] = ()
    """When the driver's machine was suspended, on the driver's clock, which goes on."""
    probes: tuple[tuple[int, int, int], ...] = ()
    """The driver's own requests for the store's time: sent and received on the driver's
    clock, in ns, and the ``Date`` of the answer in seconds."""
    usages: Table = field(default_factory=dict)
    """What libraries used during operations that were watched; empty if none was."""
    accesses: Table = field(default_factory=dict)
    """Reads and writes of keys that functions share; empty if there are none."""
    overdue: Table
    """What was due in an open loop and never begun, as runs of evenly spaced instants."""
    requests: Mapping[str, int] | None = None
    """Billed requests that the driver made to find records, by kind; None if these came by
    themselves."""
    store_requests: Mapping[str, int] | None = None
    """Billed requests of the driver in the target's bucket, by kind: looks at its clock, and
    the gate, which it deletes at the end. None if it made none."""
    drivers_reported: bool = True
    """Whether all drivers that worked on it came to their end, at which they report their
    requests; False while one is at work."""
    killed: tuple[tuple[int, int], ...] = ()
    """Of each driver that did not come to its end: how many functions it had launched at its last
    sign, and the number of its last wave."""
    gate: Mapping[str, Any] | None = None
    """How the gate opened; see ``coordinator.Coordinator.report``. None without a gate."""
    stability: Stability | None = None
    """How it went with ``until_stable``. None without."""
    neighbours: Neighbours | None = None
    """Other commands that loaded the embedded store during the run: the most ``commands`` at
    once, and ``shared_s``, for how long. None if there were none, and of other stores."""
    limits: Mapping[str, Any] | None = None
    """What bounded the functions that were alive at once: ``asked``, ``effective`` (which is the
    job's concurrency then), ``quota`` and ``reserved``. None where nobody asked."""
    probed: Sequence[Mapping[str, Any]] = ()
    """What the deployed functions said before anything was launched, and each time that the run
    was gone on with, one each: what they are, ``billed_ms`` and the ``requests`` that they
    made. Empty if they were not asked."""
    stages: tuple[Mapping[str, Any], ...] = ()
    """The header and the lines of waves and ends, as they are on disk: what the driver noted of
    the files, and the seal on that; see ``digests``."""
    cleaning_ns: int | None = None
    """When ``sbench clean`` began to delete its objects, on the driver's clock; None if it has
    not."""
    simulated: str | None = None
    """The model that made it up; None for a run that happened."""
    skipped_lines: int
    """Lines that could not be read."""
    problems: tuple[str, ...] = ()
    """Where the first of these are, and what is wrong with them."""

    def __repr__(self) -> str:
        state = "" if self.simulated is None else f", simulated with {self.simulated}"
        state += "" if self.ended else ", not ended"
        job = f"{self.job.workload}, {self.job.number} functions"
        return f"<Run {self.path}: {job}, {len(self.operations['bytes'])} operations{state}>"

    def frames(self) -> Frames:
        """Return the tables as tidy pandas frames."""
        return Frames(
            functions=to_frame(self.functions).rename_axis("function"),
            operations=to_frame(self.operations),
            attempts=to_frame(self.attempts),
            progress=to_frame(self.steps),
            usages=to_frame(self.usages),
        )

    def operation_rows(self, table: Table) -> Ints:
        """Return the row of ``operations`` that each row of another table belongs to.

        Operations of a record are numbered from 0, and rows come function by function.
        """
        first = first_operations(self)
        return np.asarray(first[table["function"]] + table["operation"], dtype=np.int64)

    def keys(self) -> list[str]:
        """Return the keys of the objects that the run wrote, or was given to read."""
        return read_lines(self.path / "keys.txt")

    def ledger(self) -> list[str]:
        """Return every key that the run may have created."""
        return read_lines(self.path / "ledger.txt")


def first_operations(run: Run) -> Ints:
    """Return the row of ``operations`` at which each function's begin."""
    function = run.operations["function"]
    found = function.searchsorted(np.arange(len(run.functions["index"])))
    return np.asarray(found, dtype=np.int64)


def lost_functions(run: Run) -> int:
    """Return how many functions of a run are lost, or have not come back yet."""
    return int(is_text(run.functions["status"], "lost").sum())


def load_run(path: str | Path, *, detail: bool = True) -> Run:
    """Return the run in a run directory.

    Parameters
    ----------
    path
        The directory.
    detail
        Whether to load keys, request ids and the like, half of a large run's memory.

    Raises
    ------
    ArchiveError
        If it is no run directory, or of another schema.

    Examples
    --------
    >>> sbench.load_run(written.path).job.workload
    'write'
    """
    return read_run(Path(path), [], detail=detail)


def read_run(path: Path, unsaved: Sequence[bytes], *, detail: bool) -> Run:
    """Return the run in a directory, with further lines of records that are in no file."""
    header = read_header(path)
    job = check_header(path / HEADER, header)
    # A block of the user's own has its name where an object has its key.
    skip = _DETAIL - {"key"} if job.declared.runs_code else _DETAIL
    plan = plan_of(path, job, header["run_id"])
    reader = RecordReader(job.number, frozenset() if detail else skip, plan)
    records = path / RECORDS
    try:
        # Its lines are long.
        with open_file(records, buffering=1 << 20) as file:
            reader.read(record_lines(file))
    except FileNotFoundError:
        # It was killed before the first function: nothing is known of it.
        pass
    except OSError as exc:
        raise ArchiveError(f"cannot read {records}: {exc.strerror}") from exc
    reader.read(unsaved)
    reader.finish()
    tables = {name: table.finish() for name, table in reader.tables.items()}
    found = tables["bad_ranges"]["found_key_hash"]
    tables["bad_ranges"] = {**tables["bad_ranges"], "found_key": _names(found, path)}
    return Run(
        path=path,
        run_id=header["run_id"],
        created_ns=header["created_ns"],
        job=job,
        provenance=header["provenance"],
        functions=with_status(reader.functions.finish(), job.number),
        **tables,
        ended=reader.ended,
        waves=tuple(reader.waves),
        downtimes=tuple(reader.downtimes),
        suspensions=tuple(reader.suspensions),
        probes=tuple(map(tuple, reader.end.get("probes", ()))),
        requests=reader.end.get("requests"),
        store_requests=reader.end.get("store_requests"),
        gate=reader.end.get("gate"),
        stability=reader.stability,
        neighbours=reader.neighbours,
        limits=header.get("limits"),
        stages=(header, *reader.stages),
        cleaning_ns=reader.cleaning_ns,
        simulated=header.get("simulated"),
        probed=(
            *(header.get("probe") or {}).get("functions", ()),
            *reader.end.get("probed", ()),
        ),
        drivers_reported=not reader.killed,
        killed=tuple(reader.killed),
        skipped_lines=reader.skipped,
        problems=tuple(reader.problems),
    )


def _names(hashes: NDArray[Any], path: Path) -> NDArray[Any]:
    """Return whose bytes were found, as far as they belong to this run's own keys."""
    names = {}
    if len(hashes):
        known = (*read_lines(path / "keys.txt"), *read_lines(path / "ledger.txt"))
        names = {f"{hash_key(key):016x}": key for key in known}
    return np.fromiter(map(names.get, hashes), dtype=object, count=len(hashes))


def read_header(path: Path) -> dict[str, Any]:
    """Return what ``run.json`` holds.

    Raises
    ------
    ArchiveError
        If it is missing or damaged, or of another schema.
    """
    where = path / HEADER
    try:
        with open_file(where) as file:
            text = file.read(_MAX_HEADER_BYTES + 1)
        if len(text) > _MAX_HEADER_BYTES:
            raise ArchiveError(f"{where} has more than {_MAX_HEADER_BYTES >> 20} MiB")
        header = orjson.loads(text)
        schema = header["schema"]
    except (FileNotFoundError, NotADirectoryError):
        raise ArchiveError(
            f"{path} is not a run directory: it has no run.json",
            hint="name a directory that sbench write or sbench read made",
        ) from None
    except OSError as exc:
        raise ArchiveError(f"cannot read {where}: {exc.strerror}") from exc
    except (ValueError, KeyError, TypeError) as exc:
        raise ArchiveError(f"{where} is damaged: {exc}") from exc
    if type(schema) is not int or schema < SCHEMA:
        raise ArchiveError(f"{where} is damaged: there is no schema {schema!r:.20}")
    if schema > SCHEMA:
        raise ArchiveError(
            f"{path} was written by a newer sbench (schema {schema!r:.20}, this one reads"
            f" {SCHEMA})",
            hint="upgrade serverless-bench",
        )
    return dict(header)
