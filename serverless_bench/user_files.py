"""Files that a user names: regular ones, of a bounded size, and TOML in them.

What is in such a file may be somebody else's. A pipe or a device would be waited for, a
file without an end would fill the memory, and ``tomllib`` ends with other errors than its
own, or not at all, where a document is made to be hard to read.
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

from serverless_bench.errors import UsageError

MAX_TEXT_BYTES: Final = 1 << 20
"""Of a file that somebody writes by hand, or a configuration."""
_MAX_DEPTH: Final = 16
"""Tables and lists in one another; an experiment file has five."""
_MAX_CHARACTERS: Final = 16_384
"""Of one text in a file."""
_TOO_DEEP: Final = f"more than {_MAX_DEPTH} tables and lists stand in one another"
_INT64: Final = 1 << 63
_LONG_KEY: Final = re.compile(
    rf"""(?<![A-Za-z0-9_-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){{{_MAX_DEPTH}}}""",
    re.ASCII,
)
"""``tomllib`` takes time by the square of the parts of a key."""


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
        If it cannot be, or is no regular file; nobody waits for the other end of a pipe.
    """
    if "\0" in str(path):
        raise OSError(errno.EINVAL, "no file has a NUL in its name")
    # A device may do something when it is opened: it is looked at before.
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
        As of ``open_regular``, or if it has more bytes than that.
    UnicodeDecodeError
        If it is not UTF-8.
    """
    with open_regular(path) as file:
        data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise OSError(errno.EFBIG, f"it has more than {most_bytes >> 10} KiB")
    return data.decode().replace("\r\n", "\n")


def read_toml(path: Path, what: str = "", *, hint: str = "") -> dict[str, Any]:
    """Return what a TOML file says.

    Parameters
    ----------
    path
        The file.
    what
        What it is, for the message.
    hint
        What to do if it cannot be read.

    Raises
    ------
    UsageError
        If it cannot be read, or ``parse_toml`` does not take it.
    """
    with refusing(path, what, hint=hint):
        return parse_toml(read_text(path))


@contextmanager
def refusing(path: Path, what: str = "", *, hint: str = "") -> Iterator[None]:
    """Turn the errors of ``read_text`` and ``parse_toml`` into one line; see ``read_toml``.

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
    """Return in words why a file could not be read."""
    if isinstance(error, UnicodeDecodeError):
        return f"it is not text: byte {error.start} is not UTF-8"
    return str(error.strerror or error) if isinstance(error, OSError) else str(error)


def parse_toml(text: str) -> dict[str, Any]:
    """Return what a text says in TOML.

    Raises
    ------
    ValueError
        If it is no TOML, or has a value that none of our files can have: nested deeply, an
        integer that 64 bits do not hold, a number that is none, or a very long text.
    """
    import tomllib  # noqa: PLC0415 - most commands read no TOML

    if match := _LONG_KEY.search(text):
        line = text.count("\n", 0, match.start()) + 1
        raise ValueError(f"line {line}: a key has {_MAX_DEPTH} parts and more")
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    except ValueError as exc:
        # Python reads no integer of more than 4,300 digits.
        raise ValueError(f"it has a number that cannot be: {exc}") from exc
    _check(data, "", 0)
    return data


def _check(value: object, where: str, depth: int) -> None:
    """Refuse what ``parse_toml`` says."""
    if depth > _MAX_DEPTH:
        raise ValueError(_TOO_DEEP)
    if isinstance(value, Mapping):
        for key, one in value.items():
            _check(key, where, depth)
            _check(one, f"{where}.{key}" if where else key, depth + 1)
    elif isinstance(value, list):
        for one in value:
            _check(one, where, depth + 1)
    elif problem := _problem(value):
        raise ValueError(f"{where or 'a key at the top'} {problem}")


def _problem(value: object) -> str:
    """Return what a single value is that none may be; empty if nothing is wrong with it."""
    if isinstance(value, str) and len(value) > _MAX_CHARACTERS:
        return f"has {len(value)} characters, at most {_MAX_CHARACTERS} go"
    if isinstance(value, int) and not -_INT64 <= value < _INT64:
        return f"is a number of {value.bit_length()} bits, at most 64 go"
    if isinstance(value, float) and not isfinite(value):
        return f"is {value}, which is no number"
    return ""
