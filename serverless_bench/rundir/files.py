"""Open the files of a run directory safely: only regular files in the directory itself.

A run directory may come from another user. A symbolic link in place of a file would redirect
reads and writes to its target, opening a FIFO would block, and a device may have side effects.
The number of lines is not limited, but the length of a line is.

A single command at a time writes to a run, and notes in advance that it deletes its objects.
"""

import errno
import fcntl
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

import orjson

from serverless_bench.base.clock import monotonic_ns, sleep
from serverless_bench.base.errors import ArchiveError
from serverless_bench.base.units import NS_PER_S
from serverless_bench.job.keys import MAX_KEY_BYTES
from serverless_bench.rundir.listing import RECORDS, as_argument

_FLAGS: Final = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
"""Flags: do not follow links, do not block on a FIFO, and do not acquire a terminal."""
_KINDS: Final = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
STREAMS: Final = ("/dev/", "/proc/self/fd/")
"""Prefixes of paths to open files of this process, such as ``/dev/stdout``."""
_PIECE: Final = 1 << 20
_MAX_LINE_BYTES: Final = 1 << 28
"""Size limit of a record: some hundred thousand operations."""
_AT_ONCE: Final = 1 << 16


def open_file(path: Path, mode: str = "rb", *, buffering: int = -1) -> BinaryIO:
    """Open a regular file.

    Parameters
    ----------
    path
        The file; a run directory itself may be a link.
    mode, buffering
        As for ``open``, for bytes.

    Raises
    ------
    ArchiveError
        If it is not a regular file, or is opened for writing and has another hard link.
    OSError
        See ``open``.
    """
    # Opening a device may have side effects, so check the type first.
    with suppress(FileNotFoundError):
        _check(path, path.lstat(), "r" not in mode or "+" in mode)
    try:
        file = open(path, mode, buffering, opener=_open)  # noqa: SIM115 - `_check` comes first
    except OSError as exc:
        if exc.errno != errno.ELOOP:
            raise
        raise _no_file(path, stat.S_IFLNK) from None
    try:
        _check(path, os.fstat(file.fileno()), "r" not in mode or "+" in mode)
    except ArchiveError:
        file.close()
        raise
    return cast("BinaryIO", file)


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Yield a file that replaces ``path`` once it is written completely.

    The old file remains unchanged until then, and if the block fails.

    Raises
    ------
    ArchiveError
        If ``path`` exists and is not a regular file.
    OSError
        If the file cannot be written.
    """
    if str(path).startswith(STREAMS):
        with path.open("wb") as file:
            yield file
        return
    with suppress(FileNotFoundError):
        _check(path, path.lstat(), writing=False)
    beside = path.with_name(f".sbench-{os.urandom(8).hex()}")
    try:
        with cast("Any", open(beside, "xb", opener=_open)) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        sync_directory(path.parent)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def write_key_file(path: Path, keys: Iterable[str]) -> None:
    """Write one key per line, PyWren's format of 2016."""
    with replacing(path) as file:
        file.write("".join(f"{key}\n" for key in keys).encode())


def write_all(file: BinaryIO, data: bytes) -> None:
    """Write all data to an unbuffered file; the error of a short write occurs on the next write."""
    while data:
        data = data[file.write(data) :]


def make_directories(path: Path) -> None:
    """Create a directory and its missing parents durably, so that they survive a power failure."""
    missing = [directory for directory in (path, *path.parents) if not directory.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for directory in missing:
        sync_directory(directory.parent)


def sync_directory(path: Path) -> None:
    """Sync the entries of a directory to disk, because syncing a file does not do that.

    Linux, fsync(2): "Calling fsync() does not necessarily ensure that the entry in the directory
    containing the file has also reached disk."
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as exc:
        # File systems that do not support it, such as some network file systems, return EINVAL.
        if exc.errno != errno.EINVAL:
            raise
    finally:
        os.close(descriptor)


def _open(path: str, flags: int) -> int:
    return os.open(path, flags | _FLAGS, 0o666)


def _check(path: Path, status: os.stat_result, writing: bool) -> None:  # noqa: FBT001 - as asked
    if not stat.S_ISREG(status.st_mode):
        raise _no_file(path, stat.S_IFMT(status.st_mode))
    if writing and status.st_nlink > 1:
        raise ArchiveError(
            f"{path} has another hard link: writing to it would change a file elsewhere",
            hint="copy the run directory, for example with cp -r, and use the copy",
        )


def _no_file(path: Path, kind: int) -> ArchiveError:
    return ArchiveError(
        f"{path} is {_KINDS.get(kind, 'of an unknown type')}, not a regular file",
        hint="sbench only uses files inside the run directory: copy the file there",
    )


def read_lines(path: Path) -> list[str]:
    """Return the keys in a file, one per line; an empty list if the file does not exist.

    Raises
    ------
    ArchiveError
        If it cannot be read, or a line is not a valid key.
    """
    try:
        with open_file(path) as file:
            data = b"".join(_pieces(path, file))
    except FileNotFoundError:
        return []
    except OSError as exc:
        raise ArchiveError(f"cannot read {path}: {exc.strerror}") from exc
    # Text after the last newline was truncated and could match another object's key.
    whole = data[: data.rfind(b"\n") + 1]
    try:
        lines = whole.decode().split("\n")[:-1]
    except UnicodeDecodeError as exc:
        raise _wrong(path, whole.count(b"\n", 0, exc.start), "is not UTF-8") from None
    for begin in range(0, len(lines), _AT_ONCE):
        _check_keys(path, lines[begin : begin + _AT_ONCE], begin)
    return [line for line in lines if line]


def record_lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a records file; truncate a line that is too long or has null bytes."""
    while piece := file.readline(_PIECE):
        if len(piece) < _PIECE or piece.endswith(b"\n"):
            yield piece
            continue
        pieces, size = [piece], len(piece)
        while not piece.endswith(b"\n") and (piece := file.readline(_PIECE)):
            if b"\0" in piece:
                # A sparse region of any length; JSON does not contain null bytes.
                yield b"\0"
                return
            size += len(piece)
            if size <= _MAX_LINE_BYTES:
                pieces.append(piece)
        yield b"".join(pieces)


def _pieces(path: Path, file: BinaryIO) -> Iterator[bytes]:
    number = 0
    while piece := file.read(_PIECE):
        if b"\0" in piece:
            raise _wrong(path, number + piece.count(b"\n", 0, piece.index(b"\0")), "is not text")
        number += piece.count(b"\n")
        yield piece


def _check_keys(path: Path, lines: list[str], first: int) -> None:
    if "".join(lines).replace("\t", "").isprintable() and max(map(len, lines)) <= MAX_KEY_BYTES:
        return
    for number, line in enumerate(lines, first):
        # A size may follow a tab.
        if not line.replace("\t", "").isprintable():
            raise _wrong(path, number, f"has characters that cannot be printed: {line[:80]!r}")
        if len(line) > MAX_KEY_BYTES:
            raise _wrong(
                path, number, f"has {len(line)} characters; a key has at most {MAX_KEY_BYTES}"
            )


def _wrong(path: Path, number: int, problem: str) -> ArchiveError:
    return ArchiveError(
        f"{path}, line {number + 1} {problem}",
        hint="write one key per line, as sbench does; remove lines added by other programs",
    )


@contextmanager
def failing(problem: str, *, hint: str = "") -> Iterator[None]:
    """Convert an error of the file system to a problem and its reason, in one line.

    Raises
    ------
    ArchiveError
        If the block raises an ``OSError``.
    """
    try:
        yield
    except OSError as exc:
        raise ArchiveError(f"{problem}: {exc.strerror}", hint=hint) from exc


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
    with failing(f"cannot write {path / RECORDS}"):
        file = open_file(path / RECORDS, "ab", buffering=0)
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
    with failing(
        f"cannot note in {path / RECORDS} that deletion starts",
        hint="make room; nothing was deleted",
    ):
        # Start a new line if the last line is truncated.
        write_all(file, line if _ends_whole(path / RECORDS) else b"\n" + line)
        os.fsync(file.fileno())


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
