"""Files of the current folder that the user has declared trustworthy, as in direnv.

A file is identified by path and digest: other files, and the same file after a
change, are not trusted. The text is stored too, except values whose names suggest a secret, so that
the user can see the changes later.
"""

import fcntl
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Final

from serverless_bench.errors import ArchiveError
from serverless_bench.process.private import own_directory, private_draft, read_private

LITHOPS: Final = ".lithops_config"
_LIST: Final = "trusted.json"
_MOST_BYTES: Final = 1 << 26
_HIDDEN: Final = (
    r"(?im)^([ \t]{0,40}[\w\"'-]{0,40}"
    r"(?:secret|password|token|credential|(?:access|api|private)[_-]?key)"
    r"[\w\"'-]{0,40}[ \t]{0,40}[:=]).*$"
)
"""Matches a line with only a secret; a line with other content must stay visible."""

Trusted = dict[str, dict[str, str]]
"""``digest`` and ``text`` of each file, by its path."""


def trusted() -> Trusted:
    """Return the files that the user trusts; none if another user may have written the list."""
    try:
        files = json.loads(read_private(_folder() / _LIST, _MOST_BYTES) or "{}")
        return {str(path): {"digest": f["digest"], "text": f["text"]} for path, f in files.items()}
    except (ValueError, TypeError, KeyError, AttributeError):
        return {}


def doubt(path: Path, text: str) -> str:
    """Return the reason for not trusting a file with this text; empty if it is trusted."""
    entry = trusted().get(_name(path))
    if entry is None:
        return "it is not trusted"
    return "" if entry["digest"] == _digest(text) else "it has changed since it was trusted"


def changes(path: Path, text: str) -> list[str]:
    """Return the lines that differ from the trusted text, with ``+`` or ``-`` in front."""
    from difflib import unified_diff  # noqa: PLC0415 - all commands ask whether a file is trusted

    before = trusted().get(_name(path), {"text": ""})["text"]
    lines = unified_diff(before.splitlines(), _shown(text).splitlines(), n=0, lineterm="")
    # The first two lines name the files.
    return [line for line in islice(lines, 2, None) if not line.startswith("@@")]


def trust(path: Path, text: str) -> None:
    """Trust a file as long as it has this text.

    Raises
    ------
    ArchiveError, StoreError
        If the list cannot be stored, or others may write to its directory.
    """
    with _changing() as files:
        files[_name(path)] = {"digest": _digest(text), "text": _shown(text)}


def forget(path: Path) -> bool:
    """Stop trusting a file; return whether it was trusted.

    Raises
    ------
    ArchiveError, StoreError
        As ``trust``.
    """
    with _changing() as files:
        return files.pop(_name(path), None) is not None


@contextmanager
def _changing() -> Iterator[Trusted]:
    """Yield the list, and store it after the block; a lock excludes other processes."""
    folder = _folder()
    try:
        with (own_directory(folder) / f"{_LIST}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            files = trusted()
            yield files
            with private_draft(folder / _LIST, json.dumps(files).encode()) as draft:
                draft.replace(folder / _LIST)
    except OSError as exc:
        raise ArchiveError(
            f"cannot store the list of trusted files in {folder}: {exc.strerror}"
        ) from exc


def _folder() -> Path:
    import platformdirs  # noqa: PLC0415 - slow to load

    return platformdirs.user_state_path("sbench")


def _name(path: Path) -> str:
    # Links are not followed: the destination is trusted under its real path only.
    return str(path.parent.resolve() / path.name)


def _digest(text: str) -> str:
    import hashlib  # noqa: PLC0415 - loads OpenSSL, which files without trust do not need

    return hashlib.sha256(text.encode()).hexdigest()


def _shown(text: str) -> str:
    return re.sub(_HIDDEN, r"\1 ***", text)
