"""A run directory, written while the run happens, and readable at any moment after (``run``).

What is launched again (a wave) adds its keys to the ledger and a line of its own to the
records, before its first function; a driver that goes on with a run begins with a line of
its own.

A record comes before its keys: who is killed in between leaves a record that counts and
keys that are not listed, and whoever goes on with the run adds them.
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

from serverless_bench.clock import repeated, wall_ns
from serverless_bench.errors import ArchiveError
from serverless_bench.rundir.digests import (
    DIGEST,
    FILES,
    GrowingDigest,
    digest_of,
    header_digest,
    known_files,
)
from serverless_bench.rundir.files import (
    make_directories,
    open_file,
    read_lines,
    replacing,
    write_all,
)
from serverless_bench.rundir.listing import HEADER, KEYS, LEDGER, RECORDS
from serverless_bench.rundir.lock import refuse_cleaned, take_lock
from serverless_bench.rundir.record import Outcome
from serverless_bench.rundir.run import SCHEMA, Run, read_header, read_run
from serverless_bench.rundir.written_keys import operations_in, readable_keys

RUN_FILES: Final = (HEADER, LEDGER, KEYS, RECORDS, "figure.png")
"""Files that a run, or ``sbench demo``, writes to its directory."""
_BEAT_S: Final = 1.0
Seal = Callable[[Mapping[str, Any]], Mapping[str, Any]]


class Archive:
    """Writes one run directory; use it as a context manager.

    Parameters
    ----------
    path
        The run directory; made if it does not exist, refused if it holds a file of a run.
    header
        What ``run.json`` holds besides the schema version and digests; None to go on with a
        run whose driver has ended, or has died.
    ledger
        Every key that the run may create.
    keys
        Keys that the run is given to read.
    seal
        Returns a stage of the run with the seal of the user who made it; see ``digests``.

    Raises
    ------
    ArchiveError
        If the directory cannot be written, another driver works on its run, or the run's
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
        """Why records could not be saved; None as long as they can."""
        self._seal = seal
        self._files = ExitStack()
        self._appending = threading.Lock()
        self._unsaved: list[bytes] = []
        self._missing = 0
        self.closing: dict[str, Any] = {}
        """What the last line says besides that the driver came to its end."""
        try:
            with self._files as files:
                if header is None:
                    self._reopen()
                else:
                    self._create(header, ledger, keys)
                # They stay open until this archive ends.
                self._files = files.pop_all()
        except FileExistsError:
            holds = "a run" if os.path.lexists(path / HEADER) else "files with names of a run's"
            raise ArchiveError(
                f"{path} already holds {holds}",
                hint="choose another `name` or `run_dir`",
            ) from None
        except OSError as exc:
            raise ArchiveError(
                f"cannot write the run directory {path}: {exc.strerror}",
                hint="choose another `run_dir`, or make room",
            ) from exc

    def _create(
        self, header: Mapping[str, Any], ledger: Iterable[str], keys: Sequence[str]
    ) -> None:
        make_directories(self.path)
        if any(os.path.lexists(self.path / name) for name in RUN_FILES):
            raise FileExistsError
        # Of several drivers that come at once, one makes this file.
        self._records = self._opened(RECORDS, "xb")
        self._digests = {name: GrowingDigest() for name in (RECORDS, LEDGER, KEYS)}
        self._known = frozenset({RECORDS, LEDGER, KEYS})
        self._run_id = header["run_id"]
        made = [RECORDS]
        try:
            take_lock(self._records, self.path)
            for name, lines in ((LEDGER, ledger), (KEYS, keys)):
                data = _lines(lines)
                with open_file(self.path / name, "xb") as file:
                    made.append(name)
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                self._digests[name].update(data)
            files = {name: self._digests[name].to_json() for name in (LEDGER, KEYS)}
            fields = {"schema": SCHEMA, **header, FILES: files}
            stage = self._seal({**fields, DIGEST: header_digest(fields)})
            with replacing(self.path / HEADER) as file:
                file.write(orjson.dumps(stage, option=orjson.OPT_INDENT_2))
                made.append(HEADER)
            self._keys = self._opened(KEYS, "ab")
        except BaseException:
            # Nothing was launched: this is no run, and its name is free again.
            for name in made:
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
        # What was changed since is not vouched for: the earlier digests stay the latest.
        self._known = known_files(read_run(self.path, [], detail=False))
        self._digests = {name: digest_of(self.path / name) for name in (RECORDS, LEDGER, KEYS)}
        self._keys = self._opened(KEYS, "ab")
        # Some records' driver may have been killed before it added their keys itself.
        there = set(read_lines(self.path / KEYS))
        for operations in operations_in(self.path / RECORDS):
            missing = [key for key in readable_keys(operations) if key not in there]
            there.update(missing)
            data = _lines(missing)
            write_all(self._keys, data)
            self._digests[KEYS].update(data)

    def resumed(self, now_ns: int) -> None:
        """Note that a driver goes on with the run from now on, on its own clock."""
        self._append_line({"resumed": {"resumed_ns": now_ns}})

    def suspended(self, began_ns: int, ended_ns: int) -> None:
        """Note when the driver's machine was suspended, on the driver's clock."""
        self._append_line({"suspended": {"began_ns": began_ns, "ended_ns": ended_ns}})

    def beating(self, started: Callable[[], int]) -> AbstractContextManager[None]:
        """Note every second that the driver is at work, as long as the block runs.

        Whoever goes on with the run of a driver that was killed knows by that how long nobody
        worked, and how many launches died with it: their records never arrived.

        Parameters
        ----------
        started
            Returns how many functions the driver has launched.
        """

        def beat() -> None:
            self._append_line({"alive": {"alive_ns": wall_ns(), "started": started()}})

        return repeated(beat, _BEAT_S, name="at work")

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
        data = _lines(ledger)
        try:
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
        # What could not be saved is not in the files.
        files = (LEDGER, KEYS, RECORDS) if self.failure is None else ()
        self._append_stage("end", {"saved": not self._unsaved, **self.closing}, files)
        try:
            for file in (self._records, self._keys):
                if self.failure is None:
                    os.fsync(file.fileno())
        except OSError as exc:
            # Some disks take what does not fit, and say so only now.
            self.failure = exc
        self._files.close()

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
        self._append_line(line)
        self._missing += self.failure is not None
        if "record" in line and (keys := readable_keys(line["record"]["operations"])):
            self._append(self._keys, _lines(keys))

    def load(self) -> Run:
        """Return the run so far, with what could not be saved."""
        return read_run(self.path, self._unsaved, detail=True)

    def _append_stage(self, name: str, stage: Mapping[str, Any], files: Iterable[str]) -> None:
        """Append the line of a stage, with the digests of files as they are now."""
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
                    # Half a line would be skipped anyway; a device cannot be cut.
                    with suppress(OSError):
                        os.ftruncate(file.fileno(), size)
                else:
                    self._digests[RECORDS if file is self._records else KEYS].update(line)
                    return
            if file is self._records:
                self._unsaved.append(line)


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
