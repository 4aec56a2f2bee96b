"""Directories and files that no other user of this machine can read, or has made for us."""

import os
import secrets
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from serverless_bench.errors import StoreError

_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_MOST_BYTES: Final = 80
"""Of a directory and a prefix; a socket's path has at most 103 (macOS) or 107 (Linux, unix(7))."""
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH


def own_directory(path: Path) -> Path:
    """Return a directory of this user's, made for this user alone if there is none.

    One that is there may be read by others if its owner wants that, but never written: who can
    write to it can put a link, a socket or a program of theirs in the place of ours.

    Raises
    ------
    StoreError
        If it, or the link that leads to it, is another user's, or others may write to it.
    OSError
        If it cannot be made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)
    own = os.getuid()
    # The link itself first: where it leads is its owner's choice.
    if path.lstat().st_uid != own or path.stat().st_uid != own:
        raise StoreError(
            f"{path} belongs to another user", hint="name a directory of your own, or remove it"
        )
    if path.stat().st_mode & _OTHERS_WRITE:
        raise StoreError(f"other users may write to {path}", hint=f"chmod go-w {path}")
    return path


def read_private(path: Path, most_bytes: int) -> bytes | None:
    """Return what a file holds; None unless it is a file that this user alone can read and write.

    A link is not followed, and no more than ``most_bytes`` are read.
    """
    with suppress(OSError):
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(file, "rb") as reading:
            about = os.fstat(file)
            if (
                stat.S_ISREG(about.st_mode)
                and not about.st_mode & _OTHERS
                and about.st_uid == os.geteuid()
            ):
                return reading.read(most_bytes)
    return None


@contextmanager
def private_draft(path: Path, data: bytes) -> Iterator[Path]:
    """Yield a new file beside another one, to be renamed or linked to it, with all of ``data``.

    This user alone can read and write it. Unless the block renames it, it is deleted.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
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
    """Return a new directory under a name that nobody could foresee, for this user alone.

    It lies in ``XDG_RUNTIME_DIR``, in memory, where that is this user's own, else among the
    temporary directories; and in ``/tmp`` where paths in those would be too long for a socket's.
    """
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    wanted = (*([runtime] if _is_private(runtime) else []), tempfile.gettempdir())
    short = (one for one in wanted if len(os.fsencode(one)) + len(prefix) <= _MOST_BYTES)
    return Path(tempfile.mkdtemp(prefix=prefix, dir=next(short, "/tmp")))  # noqa: S108 - see above


def _is_private(directory: str) -> bool:
    try:
        found = os.lstat(directory)
    except OSError:
        return False
    return (
        Path(directory).is_absolute()
        and stat.S_ISDIR(found.st_mode)
        and found.st_uid == os.getuid()
        and not found.st_mode & _OTHERS
    )
