"""One command at a time works on a run, and whoever deletes its objects notes that first."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

import orjson

from serverless_bench.clock import monotonic_ns, sleep
from serverless_bench.errors import ArchiveError
from serverless_bench.rundir.files import open_file, record_lines, write_all
from serverless_bench.rundir.listing import RECORDS
from serverless_bench.units import NS_PER_S

_LOCKED_NS: Final = NS_PER_S
_LOCK_TICK_S: Final = 0.02


@contextmanager
def locked(path: Path) -> Iterator[BinaryIO]:
    """Keep every other driver and ``clean`` away from a run for the length of a block.

    Yields
    ------
    BinaryIO
        The records, to be appended to.

    Raises
    ------
    ArchiveError
        If another command works on the run, or the directory cannot be written.
    """
    try:
        file = open_file(path / RECORDS, "ab", buffering=0)
    except OSError as exc:
        raise ArchiveError(f"cannot write {path / RECORDS}: {exc.strerror}") from exc
    with file:
        take_lock(file, path)
        yield file


def note_cleaning(file: BinaryIO, path: Path, now_ns: int) -> None:
    """Note durably that the objects of a run are deleted from now on.

    Raises
    ------
    ArchiveError
        If the disk does not take it: nothing may be deleted then.
    """
    line = orjson.dumps({"cleaning": {"began_ns": now_ns}}) + b"\n"
    try:
        # After a line that was cut off another one begins.
        write_all(file, line if _ends_whole(path / RECORDS) else b"\n" + line)
        os.fsync(file.fileno())
    except OSError as exc:
        raise ArchiveError(
            f"cannot note in {path / RECORDS} that its objects are deleted: {exc.strerror}",
            hint="make room; nothing was deleted",
        ) from exc


def refuse_cleaned(path: Path) -> None:
    """Refuse a run whose objects are deleted, or were.

    Raises
    ------
    ArchiveError
        If ``sbench clean`` has noted that it begins.
    """
    with suppress(FileNotFoundError), open_file(path / RECORDS, buffering=1 << 20) as file:
        if any(line.startswith(b'{"cleaning":') for line in record_lines(file)):
            raise ArchiveError(
                f"sbench clean has begun to delete the objects of {path}",
                hint=f"sbench clean {path} deletes what is left; then begin a new run",
            )


def take_lock(file: BinaryIO, path: Path) -> None:
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


def _ends_whole(path: Path) -> bool:
    """Tell whether a file ends with a line break, or has no bytes."""
    with open_file(path) as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - 1, 0))
        return file.read() in {b"", b"\n"}
