"""A run on disk: written while it happens, readable at any moment after.

A run directory holds::

    run.json        job, provenance and schema version, fsynced before the first function
    ledger.txt      every key that the run may create, fsynced before the first function:
                    nothing else is ever deleted
    records.jsonl   one line per outcome, appended as it arrives, and a last line that
                    says that the driver came to an end
    keys.txt        keys of the objects written, one per line, appended as they arrive;
                    of a run that reads, the keys that it was given

What is launched again (a wave) adds its keys to the ledger and a line of its own to the
records, before its first function; a driver that goes on with a run begins with a line of
its own.

A line that is cut off is skipped and counted, so killing the driver costs only what had
not arrived. Loading turns lines into columns and makes no object per row: a million
operations would take 1.8 GiB as objects.

A record comes before its keys: who is killed in between leaves a record that counts and
keys that are not listed, and whoever goes on with the run adds them.

Schema history
--------------
1
    First version.
"""

import errno
import fcntl
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Final, Self

import numpy as np
import orjson
from numpy.typing import NDArray

from serverless_bench.errors import ArchiveError
from serverless_bench.job.keys import hash_key
from serverless_bench.job.spec import OWN_FUNCTION, JobSpec, OperationKind
from serverless_bench.rundir.reader import LinesReader, with_status
from serverless_bench.rundir.record import InvocationRecord, Outcome
from serverless_bench.rundir.tables import Frames, Table, to_frame

SCHEMA: Final = 1

_TAIL_BYTES: Final = 1 << 20

_WRITING: Final = frozenset({OperationKind.WRITE_ARRAY, OperationKind.APPEND_ARRAY})
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
    the driver's and the worker's instants, and what the worker used."""
    operations: Table
    attempts: Table
    steps: Table
    bad_ranges: Table
    """With ``found_key``: the key of the object whose bytes were there, if the run knows it."""
    ended: bool
    """Whether the driver came to an end; False while it runs, and if it was killed."""
    waves: tuple[Mapping[str, Any], ...] = ()
    """What was launched again: ``number``, ``created_ns`` (driver's clock) and ``count`` of
    each wave after the first launch. A function's ``attempt`` is the number of its wave."""
    down: tuple[tuple[int, int], ...] = ()
    """When no driver was at work on an unfinished run, on the driver's clock: from the last
    sign of one until the next one resumed the run."""
    probes: tuple[tuple[int, int, int], ...] = ()
    """The driver's own requests for the store's time: sent and received on the driver's
    clock, in ns, and the ``Date`` of the answer in seconds."""
    usages: Table = field(default_factory=dict)
    """What libraries used during operations that were watched; empty if none was."""
    overdue: Table
    """What was due in an open loop and never begun, as runs of evenly spaced instants."""
    says_overdue: bool = True
    """Whether its records say so at all: those of older versions did not."""
    requests: Mapping[str, int] | None = None
    """Billed requests that the driver made to find records, by kind; None if these came by
    themselves."""
    store_requests: Mapping[str, int] | None = None
    """Billed requests of the driver in the target's bucket, by kind: looks at its clock, and
    the gate, which it deletes at the end. None if it made none, or they were not counted."""
    drivers_told: bool = True
    """Whether all drivers that worked on it came to their end, at which they say what they had
    asked for; False while one is at work."""
    gate: Mapping[str, Any] | None = None
    """How the gate opened; see ``coordinator.Coordinator.report``. None without a gate."""
    skipped_lines: int
    """Lines that could not be read."""

    def __repr__(self) -> str:
        state = "" if self.ended else ", not ended"
        job = f"{self.job.workload}, {self.job.invocations} functions"
        return f"<Run {self.path}: {job}, {len(self.operations['bytes'])} operations{state}>"

    def frames(self) -> Frames:
        """Return the tables as tidy pandas frames."""
        functions = to_frame(self.functions)
        functions.index.name = "function"
        return Frames(
            functions=functions,
            operations=to_frame(self.operations),
            attempts=to_frame(self.attempts),
            progress=to_frame(self.steps),
            usages=to_frame(self.usages),
        )

    def keys(self) -> list[str]:
        """Return the keys of the objects that the run wrote, or was given to read."""
        return _lines(self.path / "keys.txt")

    def ledger(self) -> list[str]:
        """Return every key that the run may have created."""
        return _lines(self.path / "ledger.txt")


class Archive:
    """Writes one run directory; use it as a context manager.

    Parameters
    ----------
    path
        The run directory; made if it does not exist, refused if it holds a run.
    header
        What ``run.json`` holds besides the schema version; None to go on with a run whose
        driver has ended, or has died.
    ledger
        Every key that the run may create.
    keys
        Keys that the run is given to read.

    Raises
    ------
    ArchiveError
        If the directory cannot be written, or another driver works on its run.
    """

    def __init__(
        self,
        path: Path,
        *,
        header: Mapping[str, Any] | None = None,
        ledger: Iterable[str] = (),
        keys: Sequence[str] = (),
    ) -> None:
        self.path = path
        self.failure: OSError | None = None
        """Why records could not be saved; None as long as they can."""
        self._unsaved: list[bytes] = []
        self.closing: dict[str, Any] = {}
        """What the last line says besides that the driver came to its end."""
        try:
            if header is None:
                self._go_on()
            else:
                self._create(header, ledger, keys)
        except FileExistsError:
            raise ArchiveError(
                f"{path} already holds a run", hint="choose another `name` or `run_dir`"
            ) from None
        except OSError as exc:
            raise ArchiveError(
                f"cannot write the run directory {path}: {exc.strerror}",
                hint="choose another `run_dir`, or make room",
            ) from exc

    def _create(
        self, header: Mapping[str, Any], ledger: Iterable[str], keys: Sequence[str]
    ) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        _write_durably(self.path / "ledger.txt", "".join(f"{key}\n" for key in ledger).encode())
        with (self.path / "run.json").open("xb") as file:
            file.write(orjson.dumps({"schema": SCHEMA, **header}, option=orjson.OPT_INDENT_2))
            file.flush()
            os.fsync(file.fileno())
        self._open()
        self._keys.write("".join(f"{key}\n" for key in keys).encode())

    def _go_on(self) -> None:
        _read_header(self.path)
        self._open()
        for name in ("ledger.txt", "records.jsonl", "keys.txt"):
            _cut_half_a_line(self.path / name)
        self._add_missing_keys()

    def _add_missing_keys(self) -> None:
        """Add the keys of records whose driver was killed before it added them itself."""
        there = set(_lines(self.path / "keys.txt"))
        for record in _records(self.path / "records.jsonl"):
            missing = [key for key in readable(record) if key not in there]
            there.update(missing)
            self._keys.write("".join(f"{key}\n" for key in missing).encode())

    def _open(self) -> None:
        self._records: BinaryIO = (self.path / "records.jsonl").open("ab", buffering=0)
        _hold(self._records, self.path)
        self._keys: BinaryIO = (self.path / "keys.txt").open("ab", buffering=0)

    def resumed(self, now_ns: int) -> None:
        """Note that a driver goes on with the run from now on, on its own clock."""
        self._append(self._records, orjson.dumps({"resumed": {"resumed_ns": now_ns}}) + b"\n")

    def begin_wave(self, number: int, created_ns: int, ledger: Iterable[str], count: int) -> None:
        """Note, durably, what is about to be launched again.

        Parameters
        ----------
        number, created_ns, count
            As in ``Run.waves``.
        ledger
            Every key that the wave may create.

        Raises
        ------
        ArchiveError
            If the disk does not take it: nothing must be launched then.
        """
        try:
            with (self.path / "ledger.txt").open("ab") as file:
                file.write("".join(f"{key}\n" for key in ledger).encode())
                file.flush()
                os.fsync(file.fileno())
        except OSError as exc:
            raise ArchiveError(
                f"cannot write the ledger of {self.path}: {exc.strerror}", hint="make room"
            ) from exc
        wave = {"number": number, "created_ns": created_ns, "count": count}
        self._append(self._records, orjson.dumps({"wave": wave}) + b"\n")
        if self.failure is None:
            os.fsync(self._records.fileno())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        end = {"saved": not self._unsaved, **self.closing}
        self._append(self._records, orjson.dumps({"end": end}) + b"\n")
        for file in (self._records, self._keys):
            if self.failure is None:
                os.fsync(file.fileno())
            file.close()

    @property
    def unsaved(self) -> int:
        """Lines that are in memory only."""
        return len(self._unsaved)

    def append(self, outcome: Outcome) -> None:
        """Save one outcome; what does not fit on the disk is kept in memory."""
        self._append(self._records, orjson.dumps(outcome.to_json()) + b"\n")
        result = outcome.result
        if isinstance(result, InvocationRecord):
            keys = "".join(f"{key}\n" for key in readable(result))
            self._append(self._keys, keys.encode())

    def load(self) -> Run:
        """Return the run so far, with what could not be saved."""
        return _load(self.path, self._unsaved, detail=True)

    def _append(self, file: BinaryIO, line: bytes) -> None:
        if self.failure is None:
            size = file.seek(0, os.SEEK_END) if file.seekable() else 0
            try:
                written = file.write(line)
                if written != len(line):
                    # The disk took a part; the next write says why it took no more.
                    file.write(line[written:])
            except OSError as exc:
                if exc.errno not in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
                    raise
                self.failure = exc
                # Half a line would be skipped anyway; a device cannot be cut.
                with suppress(OSError):
                    os.ftruncate(file.fileno(), size)
            else:
                return
        if file is self._records:
            self._unsaved.append(line)


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
        If it is no run directory, or was written by a newer version.

    Examples
    --------
    >>> sbench.load_run(written.path).job.workload
    'write'
    """
    return _load(Path(path), [], detail=detail)


def _load(path: Path, unsaved: Sequence[bytes], *, detail: bool) -> Run:
    header = _read_header(path)
    try:
        job = JobSpec.from_json(header["job"])
        run_id, created_ns = str(header["run_id"]), int(header["created_ns"])
        provenance = dict(header["provenance"])
    except (KeyError, TypeError, ValueError) as exc:
        raise ArchiveError(
            f"{path / 'run.json'} does not describe a run: {type(exc).__name__}: {exc}"
        ) from exc
    # A block of the user's own has its name where an object has its key.
    skip = _DETAIL - {"key"} if job.workload == OWN_FUNCTION else _DETAIL
    reader = LinesReader(job.invocations, frozenset() if detail else skip)
    try:
        with (path / "records.jsonl").open("rb") as lines:
            reader.read(lines)
    except FileNotFoundError:
        pass  # killed before the first function: a run of which nothing is known
    reader.read(unsaved)
    tables = {name: table.finish() for name, table in reader.tables.items()}
    bad_ranges = tables["bad_ranges"]
    bad_ranges["found_key"] = _names(bad_ranges["found_key_hash"], path)
    return Run(
        path=path,
        run_id=run_id,
        created_ns=created_ns,
        job=job,
        provenance=provenance,
        functions=with_status(reader.functions.finish(), job.invocations),
        **tables,
        ended=reader.ended,
        waves=tuple(reader.waves),
        down=tuple(reader.down),
        probes=_probes(reader.end),
        requests=reader.end.get("requests"),
        store_requests=reader.end.get("store_requests"),
        gate=reader.end.get("gate"),
        drivers_told=reader.ended and not reader.was_killed,
        says_overdue=reader.says_overdue,
        skipped_lines=reader.skipped,
    )


def _records(path: Path) -> Iterator[InvocationRecord]:
    """Yield the records of a run; lines that are not readable are left out, as in a report."""
    with path.open("rb") as lines:
        for line in lines:
            with suppress(AttributeError, KeyError, TypeError, ValueError):
                data = orjson.loads(line).get("record")
                if data is not None:
                    yield InvocationRecord.from_json(data)


def readable(record: InvocationRecord) -> list[str]:
    """Return the keys of the objects that an invocation has left as their keys say.

    Those that were deleted or overwritten with other bytes are no good to a reader.
    """
    written: dict[str, bool] = {}
    for op in record.operations:
        if op.kind is OperationKind.DELETE:
            written[op.key] = False
        elif op.kind is OperationKind.DELETE_MANY:
            # Its record names the first of the keys alone.
            written = dict.fromkeys(written, False)
        elif op.kind is OperationKind.PUT:
            # Once written it is there, even if it could not be written again.
            good = op.error is None or written.get(op.key, False)
            written[op.key] = good and not op.generation
    return [*(key for key, good in written.items() if good), *_whole_arrays(record)]


def _whole_arrays(record: InvocationRecord) -> Iterator[str]:
    """Yield the keys of arrays that were written to their end, without a gap."""
    reach: dict[str, int] = {}
    for op in record.operations:
        if op.kind in _WRITING and op.error is None and op.offset <= reach.get(op.key, 0):
            reach[op.key] = max(reach.get(op.key, 0), op.offset + op.bytes)
    sizes = {op.key: op.size for op in record.operations}
    yield from (key for key, end in reach.items() if end == sizes[key])


def _probes(end: Mapping[str, Any]) -> tuple[tuple[int, int, int], ...]:
    try:
        return tuple((int(s), int(r), int(d)) for s, r, d in end.get("probes", ()))
    except (TypeError, ValueError):
        return ()


def _names(hashes: NDArray[Any], path: Path) -> NDArray[Any]:
    """Return whose bytes were found, as far as they belong to this run's own keys."""
    names = {}
    if len(hashes):
        known = (*_lines(path / "keys.txt"), *_lines(path / "ledger.txt"))
        names = {f"{hash_key(key):016x}": key for key in known}
    found = np.empty(len(hashes), dtype=object)
    found[:] = [names.get(digits) for digits in hashes]
    return found


def _read_header(path: Path) -> dict[str, Any]:
    try:
        header = orjson.loads((path / "run.json").read_bytes())
        schema = header["schema"]
    except (FileNotFoundError, NotADirectoryError):
        raise ArchiveError(
            f"{path} is not a run directory: it has no run.json",
            hint="name a directory that sbench write or sbench read made",
        ) from None
    except OSError as exc:
        raise ArchiveError(f"cannot read {path / 'run.json'}: {exc.strerror}") from exc
    except (ValueError, KeyError, TypeError) as exc:
        raise ArchiveError(f"{path / 'run.json'} is damaged: {exc}") from exc
    if not isinstance(schema, int) or schema > SCHEMA:
        raise ArchiveError(
            f"{path} was written by a newer sbench (schema {schema}, this one reads {SCHEMA})",
            hint="upgrade serverless-bench",
        )
    return dict(header)


def refuse_if_held(path: Path) -> None:
    """Return if no driver works on the run in ``path``.

    Raises
    ------
    ArchiveError
        If one does, or the directory is not ours to write to.
    """
    try:
        with (path / "records.jsonl").open("ab") as records:
            _hold(records, path)
    except OSError as exc:
        raise ArchiveError(f"cannot write {path / 'records.jsonl'}: {exc.strerror}") from exc


def _hold(file: BinaryIO, path: Path) -> None:
    """Make this process the only one that writes to a run, as long as ``file`` is open.

    Raises
    ------
    ArchiveError
        If another process does.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ArchiveError(
            f"another sbench works on the run in {path}", hint="wait for it, or end it"
        ) from None


def _cut_half_a_line(path: Path) -> None:
    """Cut what was written after the last whole line: half a key is nobody's key."""
    with path.open("r+b") as file:
        end = file.seek(0, os.SEEK_END)
        while end:
            begin = max(0, end - _TAIL_BYTES)
            file.seek(begin)
            line_end = file.read(end - begin).rfind(b"\n")
            if line_end >= 0:
                end = begin + line_end + 1
                break
            end = begin
        file.truncate(end)


def _write_durably(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _lines(path: Path) -> list[str]:
    try:
        # What stands behind the last line break was cut off: half a key is nobody's key.
        return [line for line in path.read_text(encoding="utf-8").split("\n")[:-1] if line]
    except FileNotFoundError:
        return []
