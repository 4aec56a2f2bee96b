"""Lock a run for a single command, and record the deletion of its objects in advance."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

import orjson

from serverless_bench.base.clock import monotonic_ns, sleep
from serverless_bench.base.errors import ArchiveError
from serverless_bench.base.units import NS_PER_S
from serverless_bench.rundir.files import open_file, record_lines, write_all
from serverless_bench.rundir.listing import RECORDS, as_argument

_LOCKED_NS: Final = NS_PER_S
_LOCK_TICK_S: Final = 0.02


@contextmanager
def locked(path: Path) -> Iterator[BinaryIO]:
    """Exclude other drivers and ``sbench clean`` from a run for the duration of a block.

    Yields
    ------
    BinaryIO
        Records file, open for appending.

    Raises
    ------
    ArchiveError
        If another command uses the run, or the directory is not writable.
    """
    try:
        file = open_file(path / RECORDS, "ab", buffering=0)
    except OSError as exc:
        raise ArchiveError(f"cannot write {path / RECORDS}: {exc.strerror}") from exc
    with file:
        take_lock(file, path)
        yield file


def note_cleaning(file: BinaryIO, path: Path, now_ns: int) -> None:
    """Durably record that the deletion of a run's objects starts.

    Raises
    ------
    ArchiveError
        If the line cannot be written; the caller must not delete objects then.
    """
    line = orjson.dumps({"cleaning": {"began_ns": now_ns}}) + b"\n"
    try:
        # Start a new line if the last line is truncated.
        write_all(file, line if _ends_whole(path / RECORDS) else b"\n" + line)
        os.fsync(file.fileno())
    except OSError as exc:
        raise ArchiveError(
            f"cannot note in {path / RECORDS} that deletion starts: {exc.strerror}",
            hint="make room; nothing was deleted",
        ) from exc


def refuse_cleaned(path: Path) -> None:
    """Reject a run if ``sbench clean`` has deleted or is deleting its objects.

    Raises
    ------
    ArchiveError
        If ``sbench clean`` has recorded that it starts.
    """
    with suppress(FileNotFoundError), open_file(path / RECORDS, buffering=1 << 20) as file:
        if any(line.startswith(b'{"cleaning":') for line in record_lines(file)):
            raise ArchiveError(
                f"the objects of {path} are deleted, or are being deleted: sbench demo and series"
                " delete theirs at once, sbench clean those of any run",
                hint="sbench write makes some that stay;"
                f" sbench clean {as_argument(path)} deletes any that remain",
            )


def take_lock(file: BinaryIO, path: Path) -> None:
    """Acquire the exclusive right to write to a run, for as long as ``file`` is open.

    Raises
    ------
    ArchiveError
        If another process has it.
    """
    # A process that a killed driver was about to start keeps the driver's files open until it
    # executes its program.
    deadline_ns = monotonic_ns() + _LOCKED_NS
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if monotonic_ns() > deadline_ns:
                raise ArchiveError(
                    f"another sbench process uses the run in {path}", hint="wait for it, or stop it"
                ) from None
            sleep(_LOCK_TICK_S)
        else:
            return


def _ends_whole(path: Path) -> bool:
    """Return whether a file is empty or ends with a newline."""
    with open_file(path) as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - 1, 0))
        return file.read() in {b"", b"\n"}
