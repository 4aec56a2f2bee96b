"""Files named by a user: regular files of limited size, and TOML in them.

Such a file may come from another person. A pipe or a device would block, a file without an end
would fill the memory, and on a maliciously constructed document ``tomllib`` raises unexpected
errors, or never returns.
"""

import errno
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BufferedReader
from math import isfinite
from pathlib import Path
from typing import Any, Final

from serverless_bench.base.errors import UsageError

MAX_TEXT_BYTES: Final = 1 << 20
"""Largest configuration, or other file written by hand."""
_MAX_DEPTH: Final = 16
"""Deepest nesting of tables and lists; an experiment file has five levels."""
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
