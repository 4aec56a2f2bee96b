"""Write a run directory during the run; it is readable at any later time (``run``).

A relaunch (a wave) appends its keys to the ledger and a line to the records before its first
function starts. A driver that resumes a run first appends a line as well.

A record is written before its keys. If the driver is killed in between, the record is complete
but its keys are not listed; the driver that resumes the run adds them.
"""

import errno
import mmap
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Final, Self

import orjson

from serverless_bench.base.clock import repeated, wall_ns
from serverless_bench.rundir.digests import (
    DIGEST,
    FILES,
    GrowingDigest,
    digest_of,
    header_digest,
    known_files,
)
from serverless_bench.rundir.files import (
    failing,
    make_directories,
    open_file,
    read_lines,
    refuse_cleaned,
    replacing,
    take_lock,
    write_all,
)
from serverless_bench.rundir.listing import HEADER, KEYS, LEDGER, RECORDS, refuse_used
from serverless_bench.rundir.received import operations_in, readable_keys
from serverless_bench.rundir.record import Outcome
from serverless_bench.rundir.run import SCHEMA, Run, read_header, read_run

_BEAT_S: Final = 1.0
Seal = Callable[[Mapping[str, Any]], Mapping[str, Any]]


class Archive:
    """Write one run directory; use it as a context manager.

    Parameters
    ----------
    path
        The run directory; created if it does not exist, rejected if it has a file of a run.
    header
        Fields of ``run.json`` other than the schema version and the digests; None to resume a
        run whose driver has exited or died.
    ledger
        Every key that the run may create.
    keys
        Keys that the run was given to read.
    seal
        Function that adds the seal of the current user to a stage of the run; see ``digests``.

    Raises
    ------
    ArchiveError
        If the directory is not writable, another driver is active on its run, or the run's
        objects were deleted.
    """

    def __init__(
        self,
        path: Path,
        *,
        header: Mapping[str, Any] | None = None,
        ledger: Iterable[str] = (),
        keys: Sequence[str] = (),
        seal: Seal = dict,
    ) -> None:
        self.path = path
        self.failure: OSError | None = None
        """Error that prevented records from being saved; None so far if all were saved."""
        self._seal = seal
        self._files = ExitStack()
        self._appending = threading.Lock()
        self._unsaved: list[bytes] = []
        self._missing = 0
        self.closing: dict[str, Any] = {}
        """Fields of the last line other than ``saved``, run id and digests."""
        with (
            failing(
                f"cannot write the run directory {path}",
                hint="choose another `run_dir`, or make room",
            ),
            self._files as files,
        ):
            if header is None:
                self._reopen()
            else:
                self._create(header, ledger, keys)
            # Keep the files open until the archive is closed.
            self._files = files.pop_all()

    def _create(
        self, header: Mapping[str, Any], ledger: Iterable[str], keys: Sequence[str]
    ) -> None:
        make_directories(self.path)
        refuse_used(self.path)
        # If multiple drivers start at the same time, only one of them creates this file.
        self._records = self._opened(RECORDS, "xb")
        self._digests = {name: GrowingDigest() for name in (RECORDS, LEDGER, KEYS)}
        self._known = frozenset({RECORDS, LEDGER, KEYS})
        self._run_id = header["run_id"]
        created = [RECORDS]
        try:
            take_lock(self._records, self.path)
            for name, lines in ((LEDGER, ledger), (KEYS, keys)):
                data = _lines(lines)
                with open_file(self.path / name, "xb") as file:
                    created.append(name)
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                self._digests[name].update(data)
            files = {name: self._digests[name].to_json() for name in (LEDGER, KEYS)}
            fields = {"schema": SCHEMA, **header, FILES: files}
            stage = self._seal({**fields, DIGEST: header_digest(fields)})
            with replacing(self.path / HEADER) as file:
                file.write(orjson.dumps(stage, option=orjson.OPT_INDENT_2))
                created.append(HEADER)
            self._keys = self._opened(KEYS, "ab")
        except BaseException:
            # No function has been launched: remove the files so that the name can be reused.
            for name in created:
                (self.path / name).unlink(missing_ok=True)
            raise

    def _opened(self, name: str, mode: str) -> BinaryIO:
        return self._files.enter_context(open_file(self.path / name, mode, buffering=0))

    def _reopen(self) -> None:
        self._run_id = read_header(self.path)["run_id"]
        self._records = self._opened(RECORDS, "ab")
        take_lock(self._records, self.path)
        refuse_cleaned(self.path)
        for name in (LEDGER, RECORDS, KEYS):
            with suppress(FileNotFoundError):
                _cut_partial_line(self.path / name)
        # Files that were changed since keep their earlier digest as the latest.
        self._known = known_files(read_run(self.path, [], detail=False))
        self._digests = {name: digest_of(self.path / name) for name in (RECORDS, LEDGER, KEYS)}
        self._keys = self._opened(KEYS, "ab")
        # A driver may have been killed between saving a record and adding its keys.
        listed_keys = set(read_lines(self.path / KEYS))
        for operations in operations_in(self.path / RECORDS):
            missing = [key for key in readable_keys(operations) if key not in listed_keys]
            listed_keys.update(missing)
            data = _lines(missing)
            write_all(self._keys, data)
            self._digests[KEYS].update(data)

    def resumed(self, now_ns: int) -> None:
        """Record that a driver resumes the run at this time, on its own clock."""
        self._append_line({"resumed": {"resumed_ns": now_ns}})

    def suspended(self, began_ns: int, ended_ns: int) -> None:
        """Record when the driver's machine was suspended, on the driver's clock."""
        self._append_line({"suspended": {"began_ns": began_ns, "ended_ns": ended_ns}})

    def beating(self, started: Callable[[], int]) -> AbstractContextManager[None]:
        """Record every second, while the block runs, that the driver is active.

        A driver that resumes the run of a killed driver learns from these lines how long no driver
        was active, and how many launches were lost because their records did not arrive.

        Parameters
        ----------
        started
            Return the number of functions that the driver has launched.
        """

        def beat() -> None:
            self._append_line({"alive": {"alive_ns": wall_ns(), "started": started()}})

        return repeated(beat, _BEAT_S, name="at work")

    def begin_wave(self, number: int, created_ns: int, ledger: Iterable[str], count: int) -> None:
        """Durably record an upcoming relaunch.

        Parameters
        ----------
        number, created_ns, count
            See ``Run.waves``.
        ledger
            All keys that the wave may create.

        Raises
        ------
        ArchiveError
            If the line cannot be written; the caller must not launch the wave then.
        """
        data = _lines(ledger)
        with failing(f"cannot write the ledger of {self.path}", hint="make room"):
            with open_file(self.path / LEDGER, "ab") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            self._digests[LEDGER].update(data)
            wave = {"number": number, "created_ns": created_ns, "count": count}
            self._append_stage("wave", wave, (LEDGER,))
            if self.failure is not None:
                raise self.failure
            os.fsync(self._records.fileno())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # The digests do not cover lines that could not be saved.
        files = (LEDGER, KEYS, RECORDS) if self.failure is None else ()
        self._append_stage("end", {"saved": not self._unsaved, **self.closing}, files)
        try:
            for file in (self._records, self._keys):
                if self.failure is None:
                    os.fsync(file.fileno())
        except OSError as exc:
            # Some file systems accept data that does not fit and report the error only on fsync.
            self.failure = exc
        self._files.close()

    @property
    def shortfall(self) -> str:
        """Description of the records that could not be saved and the reason; empty if none."""
        if self.failure is None:
            return ""
        full = self.failure.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
        reason = "the disk is full" if full else f"the disk fails ({self.failure.strerror})"
        return f"{reason}: {self._missing} records are not saved in {self.path}"

    def append(self, outcome: Outcome) -> None:
        """Save an outcome; keep it in memory if the disk is full."""
        line = outcome.to_json()
        self._append_line(line)
        self._missing += self.failure is not None
        if "record" in line and (keys := readable_keys(line["record"]["operations"])):
            self._append(self._keys, _lines(keys))

    def load(self) -> Run:
        """Return the current state of the run, including lines that could not be saved."""
        return read_run(self.path, self._unsaved, detail=True)

    def _append_stage(self, name: str, stage: Mapping[str, Any], files: Iterable[str]) -> None:
        """Append the line of a stage with the current digests of the files."""
        states = {name: self._digests[name].to_json() for name in self._known.intersection(files)}
        sealed = self._seal({"run_id": self._run_id, **stage, FILES: states})
        self._append_line({name: sealed})

    def _append_line(self, line: Mapping[str, Any]) -> None:
        self._append(self._records, orjson.dumps(line) + b"\n")

    def _append(self, file: BinaryIO, line: bytes) -> None:
        with self._appending:
            if self.failure is None:
                size = file.seek(0, os.SEEK_END) if file.seekable() else 0
                try:
                    write_all(file, line)
                except OSError as exc:
                    self.failure = exc
                    # A partial line would be skipped anyway; a device cannot be truncated.
                    with suppress(OSError):
                        os.ftruncate(file.fileno(), size)
                else:
                    self._digests[RECORDS if file is self._records else KEYS].update(line)
                    return
            if file is self._records:
                self._unsaved.append(line)


def _cut_partial_line(path: Path) -> None:
    """Remove an incomplete last line: a truncated key could match another object's key."""
    with open_file(path, "r+b") as file:
        if not file.seek(0, os.SEEK_END):
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            end = data.rfind(b"\n") + 1
        file.truncate(end)


def _lines(keys: Iterable[str]) -> bytes:
    return "".join(f"{key}\n" for key in keys).encode()
