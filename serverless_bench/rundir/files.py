"""Files of a run directory: regular ones that lie in it, and nothing that they may stand for.

A run directory may come from somebody else. A link in place of a file would have us read, or
write, whatever it leads to; a FIFO would have us wait, and a device may do anything. Of lines
there are as many as there are, and each is no longer than it may be.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from serverless_bench.errors import ArchiveError
from serverless_bench.job.keys import MAX_KEY_BYTES

_FLAGS: Final = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
"""Follow no link, wait for nobody at the other end, and become no terminal's process."""
_KINDS: Final = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
_STREAMS: Final = ("/dev/", "/proc/self/fd/")
"""Where a process finds its own open files, as in ``/dev/stdout``."""
_PIECE: Final = 1 << 20
_MAX_LINE_BYTES: Final = 1 << 28
"""Of a record: some hundred thousand operations."""
_AT_ONCE: Final = 1 << 16
_HINT: Final = "one line per key, as sbench wrote them; what was put there since has to go"


def open_file(path: Path, mode: str = "rb", *, buffering: int = -1) -> BinaryIO:
    """Open a regular file, which must be there for what it is.

    Parameters
    ----------
    path
        The file; a run directory itself may be a link.
    mode, buffering
        As for ``open``, for bytes.

    Raises
    ------
    ArchiveError
        If it is anything else, as a link, or, to be written to, has a second name elsewhere.
    OSError
        As ``open`` does.
    """
    # A device may do something when it is opened: it is looked at before.
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
    """Yield a file that takes the place of another one when all of it is written.

    Until then the other one is as it was; if the block fails, it stays.

    Raises
    ------
    ArchiveError
        If there is anything but a regular file.
    OSError
        If it cannot be written.
    """
    if str(path).startswith(_STREAMS):
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


def write_all(file: BinaryIO, data: bytes) -> None:
    """Write to a file without a buffer: the disk may take a part, and say why only then."""
    while data:
        data = data[file.write(data) :]


def make_directories(path: Path) -> None:
    """Make a directory and those above it that are missing, so that they survive a power cut."""
    missing = [each for each in (path, *path.parents) if not each.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for each in missing:
        sync_directory(each.parent)


def sync_directory(path: Path) -> None:
    """Write the names in a directory to the disk: syncing a file does not do that.

    Linux, fsync(2): "Calling fsync() does not necessarily ensure that the entry in the directory
    containing the file has also reached disk."
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as exc:
        # File systems without it, as some of network shares, say so by this.
        if exc.errno != errno.EINVAL:
            raise
    finally:
        os.close(descriptor)


def _open(path: str, flags: int) -> int:
    return os.open(path, flags | _FLAGS, 0o666)


def _check(path: Path, found: os.stat_result, writing: bool) -> None:  # noqa: FBT001 - as asked
    if not stat.S_ISREG(found.st_mode):
        raise _no_file(path, stat.S_IFMT(found.st_mode))
    if writing and found.st_nlink > 1:
        raise ArchiveError(
            f"{path} has a second name: what is written here would change a file elsewhere",
            hint="copy the run directory, as with cp -r, and go on with the copy",
        )


def _no_file(path: Path, kind: int) -> ArchiveError:
    return ArchiveError(
        f"{path} is {_KINDS.get(kind, 'of an unknown kind')}, and not a regular file",
        hint="nothing outside of a run directory is read or written: put the file itself there",
    )


def read_lines(path: Path) -> list[str]:
    """Return the keys in a file, one per line; none if there is no such file.

    Raises
    ------
    ArchiveError
        If it cannot be read, or a line cannot be a key.
    """
    try:
        with open_file(path) as file:
            data = b"".join(_pieces(path, file))
    except FileNotFoundError:
        return []
    except OSError as exc:
        raise ArchiveError(f"cannot read {path}: {exc.strerror}") from exc
    # What stands behind the last line break was cut off: half a key is nobody's key.
    whole = data[: data.rfind(b"\n") + 1]
    try:
        lines = whole.decode().split("\n")[:-1]
    except UnicodeDecodeError as exc:
        raise _wrong(path, whole.count(b"\n", 0, exc.start), "is not UTF-8") from None
    for begin in range(0, len(lines), _AT_ONCE):
        _check_keys(path, lines[begin : begin + _AT_ONCE], begin)
    return [line for line in lines if line]


def record_lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of records; of one that is none, as much as shows that."""
    while piece := file.readline(_PIECE):
        if len(piece) < _PIECE or piece.endswith(b"\n"):
            yield piece
            continue
        pieces, size = [piece], len(piece)
        while not piece.endswith(b"\n") and (piece := file.readline(_PIECE)):
            if b"\0" in piece:
                # A hole in the file, which may be of any length: no JSON has such bytes.
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
            raise _wrong(path, number + piece.count(b"\n", 0, piece.index(b"\0")), "is no text")
        number += piece.count(b"\n")
        yield piece


def _check_keys(path: Path, lines: list[str], first: int) -> None:
    if "".join(lines).isprintable() and max(map(len, lines)) <= MAX_KEY_BYTES:
        return
    for number, line in enumerate(lines, first):
        if not line.isprintable():
            raise _wrong(path, number, f"has characters that cannot be printed: {line[:80]!r}")
        if len(line) > MAX_KEY_BYTES:
            raise _wrong(path, number, f"has {len(line)} characters, a key has {MAX_KEY_BYTES}")


def _wrong(path: Path, number: int, problem: str) -> ArchiveError:
    return ArchiveError(f"{path}, line {number + 1} {problem}", hint=_HINT)
