"""Private directories and files, which other users of this machine can neither read nor prepare."""

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from serverless_bench.base.errors import StoreError

_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_MOST_BYTES: Final = 80
"""Longest directory plus prefix; a socket's path has at most 103 (macOS) or 107 bytes (Linux,
unix(7))."""
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH


def own_directory(path: Path) -> Path:
    """Return a directory that belongs to this user, creating it for this user only if necessary.

    An existing directory may be readable by others if its owner wants that, but not writable: with
    write access, others could replace a file of sbench with their link, socket or program.

    Raises
    ------
    StoreError
        If it, or the link that leads to it, belongs to another user, or others may write to it.
    OSError
        If it cannot be created.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)
    own = os.getuid()
    # Check the link itself as well: its owner chooses the destination.
    if path.lstat().st_uid != own or path.stat().st_uid != own:
        raise StoreError(
            f"{path} belongs to another user", hint="choose another directory, or remove it"
        )
    if path.stat().st_mode & _OTHERS_WRITE:
        raise StoreError(f"other users may write to {path}", hint=f"chmod go-w {path}")
    return path


def read_private(path: Path, most_bytes: int) -> bytes | None:
    """Return the content of a file; None unless only this user can read and write it.

    Links are not followed, and at most ``most_bytes`` are read.
    """
    with suppress(OSError):
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(file, "rb") as reading:
            status = os.fstat(file)
            if (
                stat.S_ISREG(status.st_mode)
                and not status.st_mode & _OTHERS
                and status.st_uid == os.geteuid()
            ):
                return reading.read(most_bytes)
    return None


@contextmanager
def private_draft(path: Path, data: bytes) -> Iterator[Path]:
    """Yield a new file with ``data`` next to ``path``, to be renamed or linked to it.

    Only this user can read and write it. Unless the block renames it, it is deleted.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    draft = path.with_name(f"{path.name}.{os.urandom(8).hex()}")
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(file, "wb") as writing:
            writing.write(data)
            writing.flush()
            os.fsync(file)
        yield draft
    finally:
        draft.unlink(missing_ok=True)


def make_private_directory(prefix: str) -> Path:
    """Return a new directory with an unpredictable name, for this user only.

    It is in ``XDG_RUNTIME_DIR``, in memory, if that is private to this user, else among the
    temporary directories, or in ``/tmp`` if paths there would be too long for a socket.
    """
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    wanted = (*([runtime] if _is_private(runtime) else []), tempfile.gettempdir())
    short = (name for name in wanted if len(os.fsencode(name)) + len(prefix) <= _MOST_BYTES)
    return Path(tempfile.mkdtemp(prefix=prefix, dir=next(short, "/tmp")))  # noqa: S108 - see above


def _is_private(directory: str) -> bool:
    try:
        status = os.lstat(directory)
    except OSError:
        return False
    return (
        Path(directory).is_absolute()
        and stat.S_ISDIR(status.st_mode)
        and status.st_uid == os.getuid()
        and not status.st_mode & _OTHERS
    )
