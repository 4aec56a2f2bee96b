"""Read a run directory, finished or not.

A run directory holds::

    run.json        job, provenance and schema version, fsynced before the first function
    ledger.txt      all keys that the run may create, fsynced before the first function;
                    only these keys are ever deleted
    records.jsonl   one line per outcome, appended when it arrives, and a final line
                    written when the driver exits normally
    keys.txt        keys of the objects written, one per line, appended when they arrive;
                    for a run that only reads, the keys that it was given

A truncated line is skipped and counted, so killing the driver only loses the records that had
not arrived. Lines are loaded into columns without creating an object per row: a million
operations would take 1.8 GiB as objects.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import orjson
from numpy.typing import NDArray

from serverless_bench.base.errors import ArchiveError
from serverless_bench.job.keys import hash_key
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.workload import Trait
from serverless_bench.rundir.files import failing, open_file, read_lines, record_lines
from serverless_bench.rundir.listing import DEFAULT_ROOT, HEADER, RECORDS, find_run
from serverless_bench.rundir.planned import plan_of
from serverless_bench.rundir.reader import RecordReader, with_status
from serverless_bench.rundir.schema import Neighbours, Stability, Stopped, WaveLine, check_header
from serverless_bench.rundir.tables import Ints, Table, is_text

SCHEMA: Final = 1
_MAX_HEADER_BYTES: Final = 64 << 20

_DETAIL: Final = frozenset({"detail", "host_id", "key", "python", "remote", "request_id"})
"""Text columns with a different value in most rows; most reports do not need them."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Run:
    """A saved run, finished or not.

    Each table except ``functions`` has the columns of its record type in ``record``, and
    ``function``, the index of the row of ``functions`` that a row belongs to.

    Examples
    --------
    >>> written.operations["bytes"].tolist()
    [1048576, 1048576, 1048576, 1048576]
    """

    path: Path
    run_id: str
    created_ns: int
    """Start time of the run, on the driver's clock."""
    job: JobSpec
    provenance: Mapping[str, Any]
    """Versions, host and settings that the results depend on."""
    functions: Table
    """One row per planned invocation, and one per additional line about it, with ``status``
    (ok, failed or lost; duplicate or superseded for additional lines), ``error`` (reason),
    ``deviation`` (difference between an ok function and its plan), the timestamps of
    driver and worker, and the worker's resource usage."""
    operations: Table
    attempts: Table
    steps: Table
    bad_ranges: Table
    """Includes ``found_key``: key of the object that the bytes belong to, if the run knows it."""
    ended: bool
    """Whether the driver exited normally; False while it is active, and if it was killed."""
    waves: tuple[WaveLine, ...] = ()
    """Relaunches: ``number``, ``created_ns`` (driver's clock) and ``count`` of each wave after
    the first launch. A function's ``launch`` is the number of its wave."""
    downtimes: tuple[tuple[int, int], ...] = ()
    """Periods without an active driver on an unfinished run, on the driver's clock: from the
    last sign of a driver until the next driver resumed the run."""
    suspensions: tuple[tuple[int, int], ...] = ()
    """Periods in which the driver's machine was suspended, on the driver's clock, which keeps
    running."""
    probes: tuple[tuple[int, int, int], ...] = ()
    """Requests by the driver for the store's time: time of sending and of receiving on the
    driver's clock, in ns, and the ``Date`` of the response in seconds."""
    usages: Table = field(default_factory=dict)
    """Resource usage of libraries during monitored operations; empty if none was monitored."""
    accesses: Table = field(default_factory=dict)
    """Reads and writes of shared keys; empty if there are none."""
    dropped: Table
    """Dropped operations of an open loop, as evenly spaced sequences."""
    requests: Mapping[str, int] | None = None
    """Billed requests by the driver for finding records, by kind; None if the functions returned
    their records directly."""
    store_requests: Mapping[str, int] | None = None
    """Billed requests by the driver in the target's bucket, by kind: reads of the store's clock,
    and the barrier, including its deletion. None without such requests."""
    drivers_reported: bool = True
    """Whether all drivers of this run exited normally, and so reported their requests; False
    while a driver is active."""
    killed: tuple[tuple[int, int], ...] = ()
    """Number of functions launched at the last sign, and number of the last wave, of each killed
    driver."""
    barrier: Mapping[str, Any] | None = None
    """Report on the opening of the barrier; see ``coordinator.Coordinator.report``. None without a
    barrier."""
    stability: Stability | None = None
    """Result of ``until_stable``. None without this setting."""
    stopped: Stopped | None = None
    """Signal that ended the latest driver early. None if it ended by itself or was killed."""
    neighbours: Neighbours | None = None
    """Other commands that loaded the embedded store during the run: the maximum number of
    concurrent ``commands``, and ``shared_s``, the duration. None without any, and for other
    stores."""
    limits: Mapping[str, Any] | None = None
    """Limits on concurrent functions: ``asked``, ``effective`` (the resulting concurrency of the
    job), ``quota`` and ``reserved``. None if they were not looked up."""
    probed: Sequence[Mapping[str, Any]] = ()
    """Results of probing the deployed functions before the first launch and on each resume, one
    entry per probe: properties of the function, ``billed_ms``, and the ``requests`` that it made.
    Empty without probes."""
    stages: tuple[Mapping[str, Any], ...] = ()
    """The header and the lines of waves and ends, as stored on disk: the driver's notes on the
    files and their seal; see ``digests``."""
    cleaning_ns: int | None = None
    """Time at which ``sbench clean`` started to delete the objects, on the driver's clock; None if
    it did not."""
    simulated: str | None = None
    """Model that generated the run; None for a run that was executed."""
    skipped_lines: int
    """Number of lines that could not be read."""
    problems: tuple[str, ...] = ()
    """Positions and errors of the first of these lines."""

    def __repr__(self) -> str:
        state = "" if self.simulated is None else f", simulated with {self.simulated}"
        state += "" if self.ended else ", not ended"
        job = f"{self.job.workload}, {self.job.number} functions"
        return f"<Run {self.path}: {job}, {len(self.operations['bytes'])} operations{state}>"

    def operation_rows(self, table: Table) -> Ints:
        """Return the row of ``operations`` that each row of another table belongs to.

        Operations of a record are numbered from 0, and rows are grouped by function.
        """
        first = first_operations(self)
        return np.asarray(first[table["function"]] + table["operation"], dtype=np.int64)

    def keys(self) -> list[str]:
        """Return the keys of the objects that the run wrote or was given to read."""
        return read_lines(self.path / "keys.txt")

    def ledger(self) -> list[str]:
        """Return all keys that the run may have created."""
        return read_lines(self.path / "ledger.txt")


class HasRun(Protocol):
    """A view of a run, with its run in ``run``."""

    @property
    def run(self) -> Run:
        """The run."""


AnyRun = Run | HasRun | str | PathLike[str]
"""A run, a view of it, its directory, or its name in ``sbench-runs``."""


def as_run(given: AnyRun, *, detail: bool = True) -> Run:
    """Return a run; one that is named is loaded as by ``load_run``."""
    if isinstance(given, str | PathLike):
        return load_run(find_run(given, DEFAULT_ROOT), detail=detail)
    return given if isinstance(given, Run) else given.run


def first_operations(run: Run) -> Ints:
    """Return the index in ``operations`` of the first operation of each function."""
    first_rows = run.operations["function"].searchsorted(np.arange(len(run.functions["index"])))
    return np.asarray(first_rows, dtype=np.int64)


def lost_functions(run: Run) -> int:
    """Return the number of functions of a run that are lost or have not returned yet."""
    return int(is_text(run.functions["status"], "lost").sum())


def load_run(path: str | Path, *, detail: bool = True) -> Run:
    """Return the run in a run directory.

    Parameters
    ----------
    path
        The directory.
    detail
        Whether to load keys, request ids and similar text, half the memory of a large run.

    Raises
    ------
    ArchiveError
        If it is not a run directory, or has another schema.

    Examples
    --------
    >>> sbench.load_run(written.path).job.workload
    'write'
    """
    return read_run(Path(path), [], detail=detail)


def read_run(path: Path, unsaved: Sequence[bytes], *, detail: bool) -> Run:
    """Return the run in a directory; ``unsaved`` are record lines that are not in its files."""
    header = read_header(path)
    job = check_header(path / HEADER, header)
    skip = _DETAIL - {"key"} if Trait.REPORTS_KEYS in job.declared.traits else _DETAIL
    plan = plan_of(path, job, header["run_id"])
    reader = RecordReader(job.number, frozenset() if detail else skip, plan)
    records = path / RECORDS
    # If the driver was killed before the first function, there are no records; lines are long.
    with (
        failing(f"cannot read {records}"),
        suppress(FileNotFoundError),
        open_file(records, buffering=1 << 20) as file,
    ):
        reader.read(record_lines(file))
    reader.read(unsaved)
    reader.finish()
    tables = {name: table.finish() for name, table in reader.tables.items()}
    hashes = tables["bad_ranges"]["found_key_hash"]
    tables["bad_ranges"] = {**tables["bad_ranges"], "found_key": _names(hashes, path)}
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
        barrier=reader.end.get("barrier"),
        stability=reader.stability,
        neighbours=reader.neighbours,
        stopped=reader.stopped,
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
    """Return the keys of the run that match the hashes; None for other keys."""
    names = {}
    if len(hashes):
        keys = (*read_lines(path / "keys.txt"), *read_lines(path / "ledger.txt"))
        names = {f"{hash_key(key):016x}": key for key in keys}
    return np.fromiter(map(names.get, hashes), dtype=object, count=len(hashes))


def read_header(path: Path) -> dict[str, Any]:
    """Return the content of ``run.json``.

    Raises
    ------
    ArchiveError
        If it is missing, damaged, or has another schema.
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
        raise ArchiveError(f"{where} is damaged: unknown schema {schema!r:.20}")
    if schema > SCHEMA:
        raise ArchiveError(
            f"{path} was written by a newer sbench (schema {schema!r:.20}, this one reads"
            f" {SCHEMA})",
            hint="upgrade serverless-bench",
        )
    return dict(header)
