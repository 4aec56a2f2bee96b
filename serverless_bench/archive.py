"""A run on disk: written while it happens, readable at any moment after.

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

Schema history
--------------
1
    First version.
"""

import errno
import os
from array import array
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Final, Self, get_type_hints

import numpy as np
import orjson
from numpy.typing import NDArray

from serverless_bench.columns import ABSENT, Frames, Table, to_frame
from serverless_bench.errors import ArchiveError
from serverless_bench.keystream import hash_key
from serverless_bench.record import TABLES, InvocationRecord, Outcome
from serverless_bench.spec import JobSpec, OperationKind

SCHEMA: Final = 1

_DETAIL: Final = frozenset({"detail", "host_id", "key", "python", "remote", "request_id"})
"""Text that differs from row to row; a report does without."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Run:
    """A saved run, finished or not.

    Each table but ``functions`` has the columns of its record type in ``record``, and
    ``function``, the row of ``functions`` that its row belongs to.
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
    probes: tuple[tuple[int, int, int], ...] = ()
    """The driver's own requests for the store's time: sent and received on the driver's
    clock, in ns, and the ``Date`` of the answer in seconds."""
    gate: Mapping[str, Any] | None = None
    """How the gate opened; see ``attendant.Attendant.report``. None without a gate."""
    skipped_lines: int
    """Lines that could not be read."""

    def frames(self) -> Frames:
        """Return the tables as tidy pandas frames."""
        functions = to_frame(self.functions)
        functions.index.name = "function"
        return Frames(
            functions=functions,
            operations=to_frame(self.operations),
            attempts=to_frame(self.attempts),
            progress=to_frame(self.steps),
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
        What ``run.json`` holds besides the schema version.
    ledger
        Every key that the run may create.
    keys
        Keys that the run is given to read.

    Raises
    ------
    ArchiveError
        If the directory cannot be written.
    """

    def __init__(
        self,
        path: Path,
        *,
        header: Mapping[str, Any],
        ledger: Iterable[str],
        keys: Sequence[str] = (),
    ) -> None:
        self.path = path
        self.failure: OSError | None = None
        """Why records could not be saved; None as long as they can."""
        self._unsaved: list[bytes] = []
        self.closing: dict[str, Any] = {}
        """What the last line says besides that the driver came to its end."""
        try:
            path.mkdir(parents=True, exist_ok=True)
            _write_durably(path / "ledger.txt", "".join(f"{key}\n" for key in ledger).encode())
            with (path / "run.json").open("xb") as file:
                file.write(orjson.dumps({"schema": SCHEMA, **header}, option=orjson.OPT_INDENT_2))
                file.flush()
                os.fsync(file.fileno())
            self._records: BinaryIO = (path / "records.jsonl").open("ab", buffering=0)
            self._keys: BinaryIO = (path / "keys.txt").open("ab", buffering=0)
            self._keys.write("".join(f"{key}\n" for key in keys).encode())
        except FileExistsError:
            raise ArchiveError(
                f"{path} already holds a run", hint="choose another --name or --run-dir"
            ) from None
        except OSError as exc:
            raise ArchiveError(
                f"cannot write the run directory {path}: {exc.strerror}",
                hint="choose another --run-dir, or make room",
            ) from exc

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
            puts = (op for op in result.operations if op.kind is OperationKind.PUT)
            # Once each: with a duration an invocation writes its objects again and again.
            written = dict.fromkeys(op.key for op in puts if op.error is None)
            keys = "".join(f"{key}\n" for key in written)
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
    reader = _Reader(job.invocations, frozenset() if detail else _DETAIL)
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
        functions=_with_status(reader.functions.finish(), job.invocations),
        **tables,
        ended=reader.end is not None,
        probes=_probes(reader.end or {}),
        gate=(reader.end or {}).get("gate"),
        skipped_lines=reader.skipped,
    )


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


class _Builder:
    """Columns that grow; the types come from the fields of a record type."""

    def __init__(self, columns: Mapping[str, object], skip: frozenset[str]) -> None:
        self._ints = {n: array("q") for n, t in columns.items() if t in _INTEGERS}
        self._floats = {n: array("d") for n, t in columns.items() if t is float}
        known = {*self._ints, *self._floats, *skip}
        self._texts: dict[str, list[Any]] = {n: [] for n in columns if n not in known}
        self._same: dict[Any, Any] = {}

    def convert(self, columns: Mapping[str, list[Any]]) -> dict[str, Any]:
        """Return ``columns`` ready for ``extend``, or raise before anything has changed."""
        ready: dict[str, Any] = {}
        for name in self._ints:
            values = columns[name]
            if None in values:
                values = [ABSENT if value is None else value for value in values]
            ready[name] = array("q", values)
        for name in self._floats:
            ready[name] = array("d", columns[name])
        for name in self._texts:
            # One object per distinct text: "put" stands in every row.
            ready[name] = [self._same.setdefault(text, text) for text in columns[name]]
        return ready

    def extend(self, ready: Mapping[str, Any]) -> None:
        for columns in (self._ints, self._floats, self._texts):
            for name, column in columns.items():
                column.extend(ready[name])

    def finish(self) -> Table:
        table: Table = {n: np.frombuffer(c, dtype=np.int64) for n, c in self._ints.items()}
        table |= {n: np.frombuffer(c, dtype=np.float64) for n, c in self._floats.items()}
        for name, texts in self._texts.items():
            table[name] = np.empty(len(texts), dtype=object)
            table[name][:] = texts
        return table


_INTEGERS: Final = frozenset({int, int | None, bool})

_FUNCTION_COLUMNS: Final[Mapping[str, object]] = {
    "submitted_ns": int,
    "collected_ns": int,
    "lost": bool,
    **{f.name: get_type_hints(InvocationRecord)[f.name] for f in fields(InvocationRecord)},
}


_NEWER: Final = {
    name: [(f.name, f.default) for f in fields(row_type) if f.default is not MISSING]
    for name, row_type in TABLES.items()
}
"""Columns that may be absent, and what stands for them then."""


class _Reader:
    """Turns the lines of ``records.jsonl`` into tables."""

    def __init__(self, planned: int, skip: frozenset[str]) -> None:
        self._planned = planned
        columns = {n: t for n, t in _FUNCTION_COLUMNS.items() if n not in TABLES}
        self.functions = _Builder(columns, skip)
        self.tables = {
            name: _Builder(
                {"function": int, **get_type_hints(row_type)},
                # Bad ranges are few, and what they say is what a report is for.
                frozenset() if name == "bad_ranges" else skip,
            )
            for name, row_type in TABLES.items()
        }
        self._columns = columns
        self._rows = 0
        self.end: Mapping[str, Any] | None = None
        self.skipped = 0

    def read(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            try:
                self._take(orjson.loads(line))
            except (ValueError, KeyError, TypeError):
                self.skipped += 1

    def _take(self, data: Mapping[str, Any]) -> None:
        if "end" in data:
            self.end = dict(data["end"])
            return
        record = data.get("record")
        tables = {} if record is None else {n: _completed(n, record[n]) for n in TABLES}
        row: dict[str, Any] = dict.fromkeys(self._columns)
        row |= {"cpu_user_s": 0.0, "cpu_sys_s": 0.0, "max_rss_bytes": 0, "cold_start": 0}
        row |= {"submitted_ns": data["submitted_ns"], "collected_ns": data["collected_ns"]}
        if record is None:
            lost = data["lost"]
            row |= {"lost": 1, "index": lost["index"], "attempt": lost["attempt"]}
            row["error"] = lost["cause"]
        else:
            row |= {name: record[name] for name in row if name in record} | {"lost": 0}
            row["error"] = record["error"] or _first_error(tables["operations"]["error"])
        if not 0 <= row["index"] < self._planned:
            raise ValueError("no invocation of this run")
        _check_numbers(tables)
        for columns in tables.values():
            lengths = {len(column) for column in columns.values()}
            if len(lengths) != 1:
                raise ValueError("columns of unequal length")
            columns["function"] = [self._rows] * lengths.pop()
        ready = {name: self.tables[name].convert(columns) for name, columns in tables.items()}
        self.functions.extend(self.functions.convert({n: [v] for n, v in row.items()}))
        for name, columns in ready.items():
            self.tables[name].extend(columns)
        self._rows += 1


def _completed(name: str, columns: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """Return a table with the columns that its version of sbench did not know yet."""
    count = len(next(iter(columns.values()), ()))
    return {column: [default] * count for column, default in _NEWER[name]} | dict(columns)


def _check_numbers(tables: Mapping[str, Mapping[str, list[Any]]]) -> None:
    """Refuse a record whose rows do not fit together; ``reduce`` relies on it."""
    if not tables:
        return
    count = len(tables["operations"]["index"])
    if tables["operations"]["index"] != list(range(count)):
        raise ValueError("operations are not numbered from 0")
    for name in ("attempts", "steps", "bad_ranges"):
        numbers = tables[name]["operation"]
        if numbers and not 0 <= min(numbers) <= max(numbers) < count:
            raise ValueError(f"{name} of no operation")


def _first_error(errors: Sequence[str | None]) -> str | None:
    return next((error for error in errors if error), None)


def _with_status(received: Table, planned: int) -> Table:
    """Give every planned invocation one row that counts, and name the others duplicates.

    Of several records of one index the first that is ok counts, else the first. A loss
    counts only if no record came after all; an index without any line is lost, too.
    """
    count = len(received["index"])
    failed = np.array([error is not None for error in received["error"]], dtype=bool)
    lost = received.pop("lost").astype(bool)
    order = np.lexsort((np.arange(count), failed, lost, received["index"]))
    index = received["index"][order]
    is_first = np.ones(count, dtype=bool)
    is_first[1:] = index[1:] != index[:-1]
    status = np.empty(count, dtype=object)
    status[:] = "ok"
    status[failed] = "failed"
    status[lost] = "lost"
    extra = order[~is_first]
    status[extra] = "duplicate"
    status[lost & (status == "duplicate")] = "superseded"
    missing = np.setdiff1d(np.arange(planned), received["index"])
    table = {name: _padded(column, len(missing)) for name, column in received.items()}
    table["status"] = _padded(status, len(missing))
    if len(missing):
        table["index"][count:] = missing
        table["status"][count:] = "lost"
        table["error"][count:] = "no record: the driver ended before it arrived"
    return table


def _padded(column: NDArray[Any], count: int) -> NDArray[Any]:
    if column.dtype == object:
        return np.concatenate([column, np.full(count, None, dtype=object)])
    absent = 0 if column.dtype == np.float64 else ABSENT
    return np.concatenate([column, np.full(count, absent, dtype=column.dtype)])


def _write_durably(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _lines(path: Path) -> list[str]:
    try:
        return [line for line in path.read_text(encoding="utf-8").split("\n") if line]
    except FileNotFoundError:
        return []
