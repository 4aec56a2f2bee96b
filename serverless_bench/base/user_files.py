"""Files named by a user: regular files of limited size, and TOML in them.

Such a file may come from another person. A pipe or a device would block, a file without an end
would fill the memory, and on a maliciously constructed document ``tomllib`` raises unexpected
errors, or never returns.

Private directories and files are those that other users of this machine can neither read nor
prepare.
"""

import errno
import fcntl
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from io import BufferedReader
from math import isfinite
from pathlib import Path
from typing import Any, Final

from serverless_bench.base.errors import StoreError, UsageError

MAX_TEXT_BYTES: Final = 1 << 20
"""Largest configuration, or other file written by hand."""
_LOCK: Final = "lock"
_MAX_DEPTH: Final = 16
"""Deepest nesting of tables and lists; a study file has five levels."""
_MAX_CHARACTERS: Final = 16_384
"""Longest text in a file."""
_TOO_DEEP: Final = f"tables and lists are nested more than {_MAX_DEPTH} levels deep"
_INT64: Final = 1 << 63
_LONG_KEY: Final = re.compile(
    rf"""(?<![A-Za-z0-9_-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){{{_MAX_DEPTH}}}""",
    re.ASCII,
)
"""The time of ``tomllib`` grows with the square of the number of parts of a key."""


def config_folder() -> Path:
    """Return the folder of the user's own configuration of sbench, which need not be there."""
    # Unlike pathlib's, this function does without a home, and with one that must not be entered.
    home = os.path.expanduser("~/.config")  # noqa: PTH111
    return Path(os.environ.get("XDG_CONFIG_HOME") or home, "sbench")


def open_regular(path: Path) -> BufferedReader:
    """Open a file to read its bytes.

    Raises
    ------
    OSError
        If it cannot be opened, or is not a regular file; a pipe does not block.
    """
    if "\0" in str(path):
        raise OSError(errno.EINVAL, "the name of a file cannot contain NUL")
    # Check before opening: opening a device may have side effects.
    if stat.S_ISREG(path.stat().st_mode):
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return os.fdopen(descriptor, "rb")
        os.close(descriptor)
    raise OSError(errno.EINVAL, "it is not a regular file")


def read_text(path: Path, *, most_bytes: int = MAX_TEXT_BYTES) -> str:
    """Return the text of a file.

    Raises
    ------
    OSError
        As ``open_regular``, or if the file is larger than ``most_bytes``.
    UnicodeDecodeError
        If it is not UTF-8.
    """
    with open_regular(path) as file:
        data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise OSError(errno.EFBIG, f"it has more than {most_bytes >> 10} KiB")
    return data.decode().replace("\r\n", "\n")


def read_toml(path: Path, what: str, *, hint: str = "") -> dict[str, Any]:
    """Return the contents of a TOML file.

    Parameters
    ----------
    path
        The file.
    what
        Description of the file, for the message.
    hint
        Hint for the user if it cannot be read.

    Raises
    ------
    UsageError
        If it cannot be read, or is rejected by ``parse_toml``.
    """
    with refusing(path, what, hint=hint):
        return parse_toml(read_text(path))


@contextmanager
def refusing(path: Path, what: str = "", *, hint: str = "") -> Iterator[None]:
    """Convert the errors of ``read_text`` and ``parse_toml`` to one line; see ``read_toml``.

    Raises
    ------
    UsageError
        If the block cannot read the file.
    """
    try:
        yield
    except (OSError, ValueError) as exc:
        name = f"{what} {path}".lstrip()
        raise UsageError(f"cannot read {name}: {reason(exc)}", hint=hint) from exc


def reason(error: OSError | ValueError) -> str:
    """Return the reason for a failed read, in words."""
    if isinstance(error, UnicodeDecodeError):
        return f"it is not text: byte {error.start} is not UTF-8"
    return str(error.strerror or error) if isinstance(error, OSError) else str(error)


def parse_toml(text: str) -> dict[str, Any]:
    """Return the contents of a TOML document.

    Raises
    ------
    ValueError
        If it is not TOML, or has a value that no file of sbench needs: deep nesting, an integer of
        more than 64 bits, an infinite or undefined number, or a very long text.
    """
    import tomllib

    if match := _LONG_KEY.search(text):
        line = text.count("\n", 0, match.start()) + 1
        raise ValueError(f"line {line}: a key has more than {_MAX_DEPTH} parts")
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    except ValueError as exc:
        # Python does not convert integers of more than 4,300 digits.
        raise ValueError(f"it has an invalid number: {exc}") from exc
    _check(data, "", 0)
    return data


def _check(value: object, where: str, depth: int) -> None:
    """Raise the errors that ``parse_toml`` describes."""
    if depth > _MAX_DEPTH:
        raise ValueError(_TOO_DEEP)
    if isinstance(value, Mapping):
        for key, item in value.items():
            _check(key, where, depth)
            _check(item, f"{where}.{key}" if where else key, depth + 1)
    elif isinstance(value, list):
        for item in value:
            _check(item, where, depth + 1)
    elif problem := _problem(value):
        raise ValueError(f"{where or 'a key at the top'} {problem}")


def _problem(value: object) -> str:
    """Return the problem of a single value; empty if there is none."""
    if isinstance(value, str) and len(value) > _MAX_CHARACTERS:
        return f"has {len(value)} characters, at most {_MAX_CHARACTERS} allowed"
    if isinstance(value, int) and not -_INT64 <= value < _INT64:
        return f"is a number of {value.bit_length()} bits, at most 64 allowed"
    if isinstance(value, float) and not isfinite(value):
        return f"is {value}, which is not a number"
    return ""


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
    import tempfile

    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    wanted = (*([runtime] if _is_private(runtime) else []), tempfile.gettempdir())
    short = (name for name in wanted if len(os.fsencode(name)) + len(prefix) <= _MOST_BYTES)
    return Path(tempfile.mkdtemp(prefix=prefix, dir=next(short, "/tmp")))  # noqa: S108 - see above


@contextmanager
def held_directory(directory: Path, prefix: str) -> Iterator[Path]:
    """Delete a directory after the block, or in a later call if this process is killed.

    Parameters
    ----------
    directory
        A new directory.
    prefix
        Beginning of its name, and of the names of other such directories beside it.
    """
    import shutil

    for other in directory.parent.glob(f"{prefix}*"):
        _sweep(other)
    try:
        with (directory / "new").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            # From now on, the directory is deleted as soon as nobody holds the lock.
            (directory / "new").rename(directory / _LOCK)
            yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _sweep(directory: Path) -> None:
    """Delete a directory left by a process that was killed."""
    import shutil

    with suppress(OSError):
        # Skip directories of other users: their lock could be a link to a file of this user.
        if directory.lstat().st_uid == os.getuid():
            with (directory / _LOCK).open("r+") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(directory, ignore_errors=True)


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
