"""A run directory, written while the run happens, and readable at any moment after (``run``).

What is launched again (a wave) adds its keys to the ledger and a line of its own to the
records, before its first function; a driver that goes on with a run begins with a line of
its own.

A record comes before its keys: who is killed in between leaves a record that counts and
keys that are not listed, and whoever goes on with the run adds them.
"""

import errno
import fcntl
import mmap
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Final, Self, get_type_hints

import orjson

from serverless_bench.clock import monotonic_ns, sleep
from serverless_bench.errors import ArchiveError
from serverless_bench.job.operations import OperationKind
from serverless_bench.rundir.columns import BlockStore, TableBuilder
from serverless_bench.rundir.files import open_file, replacing
from serverless_bench.rundir.lines import read_lines, record_lines
from serverless_bench.rundir.listing import HEADER
from serverless_bench.rundir.record import InvocationRecord, OperationRecord, Outcome
from serverless_bench.rundir.rows import Columns, to_columns
from serverless_bench.rundir.run import SCHEMA, Run, read_header, read_run
from serverless_bench.units import NS_PER_S

_WRITING: Final = frozenset({OperationKind.WRITE_ARRAY, OperationKind.APPEND_ARRAY})
_CHANGING: Final = _WRITING | {
    OperationKind.DELETE,
    OperationKind.DELETE_MANY,
    OperationKind.PUT,
}
"""Kinds that decide which keys are good to read."""
_LOCKED_NS: Final = NS_PER_S
_LOCK_TICK_S: Final = 0.02


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
        self._most: int | None = None
        """Keys that a wave may add to the ledger of a run that another driver began."""
        self._missing = 0
        self.closing: dict[str, Any] = {}
        """What the last line says besides that the driver came to its end."""
        try:
            if header is None:
                self._reopen()
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
        self._refuse_run()
        self._open()
        try:
            # Another driver may have had the lock before us.
            self._refuse_run()
        except FileExistsError:
            self._close()
            raise
        try:
            with replacing(self.path / "ledger.txt") as file:
                file.write(_lines(ledger))
            _write_all(self._keys, _lines(keys))
            about = orjson.dumps({"schema": SCHEMA, **header}, option=orjson.OPT_INDENT_2)
            with replacing(self.path / HEADER) as file:
                file.write(about)
        except BaseException:
            # Nothing was launched: this is no run, and its name is free again.
            self._close()
            for name in (HEADER, "keys.txt", "ledger.txt", "records.jsonl"):
                (self.path / name).unlink(missing_ok=True)
            raise

    def _refuse_run(self) -> None:
        if os.path.lexists(self.path / HEADER):
            raise FileExistsError

    def _reopen(self) -> None:
        read_header(self.path)
        self._open()
        for name in ("ledger.txt", "records.jsonl", "keys.txt"):
            _cut_partial_line(self.path / name)
        self._most = len(read_lines(self.path / "ledger.txt"))
        # Some records' driver may have been killed before it added their keys itself.
        there = set(read_lines(self.path / "keys.txt"))
        for operations in _operations(self.path / "records.jsonl"):
            missing = [key for key in readable_keys(operations) if key not in there]
            there.update(missing)
            _write_all(self._keys, _lines(missing))

    def _open(self) -> None:
        self._records: BinaryIO = open_file(self.path / "records.jsonl", "ab", buffering=0)
        try:
            _lock(self._records, self.path)
        except BaseException:
            self._records.close()
            raise
        self._keys: BinaryIO = open_file(self.path / "keys.txt", "ab", buffering=0)

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
        keys = list(ledger if self._most is None else islice(ledger, self._most + 1))
        if self._most is not None and len(keys) > self._most:
            raise ArchiveError(
                f"{self.path / HEADER} asks for more objects than {self._most}, which is what"
                f" {self.path / 'ledger.txt'} has",
                hint="it was changed, or another version began the run: nothing is launched",
            )
        try:
            _write_durably(self.path / "ledger.txt", "ab", _lines(keys))
            wave = {"number": number, "created_ns": created_ns, "count": count}
            self._append(self._records, orjson.dumps({"wave": wave}) + b"\n")
            if self.failure is not None:
                raise self.failure
            os.fsync(self._records.fileno())
        except OSError as exc:
            raise ArchiveError(
                f"cannot write the ledger of {self.path}: {exc.strerror}", hint="make room"
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
        try:
            for file in (self._records, self._keys):
                if self.failure is None:
                    os.fsync(file.fileno())
        except OSError as exc:
            # Some disks take what does not fit, and say so only now.
            self.failure = exc
        self._close()

    def _close(self) -> None:
        self._records.close()
        self._keys.close()

    @property
    def unsaved(self) -> int:
        """Lines that are in memory only."""
        return len(self._unsaved)

    @property
    def shortfall(self) -> str:
        """What could not be saved, and why; empty if everything is."""
        if self.failure is None:
            return ""
        full = self.failure.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
        why = "the disk is full" if full else f"the disk fails ({self.failure.strerror})"
        return f"{why}: {self._missing} records are not saved in {self.path}"

    def append(self, outcome: Outcome) -> None:
        """Save one outcome; what does not fit on the disk is kept in memory."""
        line = outcome.to_json()
        self._append(self._records, orjson.dumps(line) + b"\n")
        self._missing += self.failure is not None
        if "record" in line and (keys := readable_keys(line["record"]["operations"])):
            self._append(self._keys, _lines(keys))

    def load(self) -> Run:
        """Return the run so far, with what could not be saved."""
        return read_run(self.path, self._unsaved, detail=True)

    def _append(self, file: BinaryIO, line: bytes) -> None:
        if self.failure is None:
            size = file.seek(0, os.SEEK_END) if file.seekable() else 0
            try:
                _write_all(file, line)
            except OSError as exc:
                self.failure = exc
                # Half a line would be skipped anyway; a device cannot be cut.
                with suppress(OSError):
                    os.ftruncate(file.fileno(), size)
            else:
                return
        if file is self._records:
            self._unsaved.append(line)


def _operations(path: Path) -> Iterator[Columns]:
    """Yield the operations of each record; lines that are not readable are left out."""
    checking = TableBuilder(
        "record.operations", get_type_hints(OperationRecord), frozenset(), BlockStore()
    )
    with open_file(path) as file:
        for line in record_lines(file):
            with suppress(AttributeError, KeyError, TypeError, ValueError):
                record = InvocationRecord.from_json(orjson.loads(line)["record"])
                columns = to_columns(OperationRecord, record.operations)
                checking.convert(columns)
                yield columns


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


def refuse_if_locked(path: Path) -> None:
    """Return if no driver works on the run in ``path``.

    Raises
    ------
    ArchiveError
        If one does, or the directory is not ours to write to.
    """
    try:
        with open_file(path / "records.jsonl", "ab") as records:
            _lock(records, path)
    except OSError as exc:
        raise ArchiveError(f"cannot write {path / 'records.jsonl'}: {exc.strerror}") from exc


def _lock(file: BinaryIO, path: Path) -> None:
    """Make this process the only one that writes to a run, as long as ``file`` is open.

    Raises
    ------
    ArchiveError
        If another process does.
    """
    # A process that a driver was about to start when it was killed holds the driver's files
    # until its own program runs.
    until_ns = monotonic_ns() + _LOCKED_NS
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if monotonic_ns() > until_ns:
                raise ArchiveError(
                    f"another sbench works on the run in {path}", hint="wait for it, or end it"
                ) from None
            sleep(_LOCK_TICK_S)
        else:
            return


def _cut_partial_line(path: Path) -> None:
    """Cut what was written after the last whole line: half a key is nobody's key."""
    with open_file(path, "r+b") as file:
        if not file.seek(0, os.SEEK_END):
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            end = data.rfind(b"\n") + 1
        file.truncate(end)


def _lines(keys: Iterable[str]) -> bytes:
    return "".join(f"{key}\n" for key in keys).encode()


def _write_all(file: BinaryIO, data: bytes) -> None:
    """Write to a file without a buffer: the disk may take a part, and say why only then."""
    while data:
        data = data[file.write(data) :]


def _write_durably(path: Path, mode: str, data: bytes) -> None:
    with open_file(path, mode) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
