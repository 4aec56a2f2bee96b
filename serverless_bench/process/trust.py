"""Files of the current folder that the user has said to trust, as direnv keeps them.

A file is known by its path and the digest of its text: another one, or the same file once it has
changed, is not trusted. Its text is kept, too, but for values whose names say that they are
secret, so that the user can be shown what changed.
"""

import fcntl
import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import unified_diff
from itertools import islice
from pathlib import Path
from typing import Final

import platformdirs

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
"""Line of a secret; one that says something else besides is not, or it could hide that."""

Trusted = dict[str, dict[str, str]]
"""``digest`` and ``text`` of each file, by its path."""


def trusted() -> Trusted:
    """Return the files that the user trusts; none if somebody else may have written the list."""
    try:
        files = json.loads(read_private(_folder() / _LIST, _MOST_BYTES) or "{}")
        return {str(path): {"digest": f["digest"], "text": f["text"]} for path, f in files.items()}
    except (ValueError, TypeError, KeyError, AttributeError):
        return {}


def doubt(path: Path, text: str) -> str:
    """Return why a file with this text is not trusted; empty if it is."""
    known = trusted().get(_name(path))
    if known is None:
        return "it is not trusted"
    return "" if known["digest"] == _digest(text) else "it has changed since it was trusted"


def changes(path: Path, text: str) -> list[str]:
    """Return the lines that differ from the text that was trusted, with ``+`` or ``-`` before."""
    before = trusted().get(_name(path), {"text": ""})["text"]
    lines = unified_diff(before.splitlines(), _shown(text).splitlines(), n=0, lineterm="")
    # The first two name the files.
    return [line for line in islice(lines, 2, None) if not line.startswith("@@")]


def trust(path: Path, text: str) -> None:
    """Trust a file as long as it has this text.

    Raises
    ------
    ArchiveError, StoreError
        If the list cannot be kept, or others may write to its directory.
    """
    with _changing() as files:
        files[_name(path)] = {"digest": _digest(text), "text": _shown(text)}


def forget(path: Path) -> bool:
    """Trust a file no more; return whether it was trusted.

    Raises
    ------
    ArchiveError, StoreError
        As ``trust``.
    """
    with _changing() as files:
        return files.pop(_name(path), None) is not None


@contextmanager
def _changing() -> Iterator[Trusted]:
    """Yield the list, and replace it when the block ends; one process does so at a time."""
    folder = _folder()
    try:
        with (own_directory(folder) / f"{_LIST}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            files = trusted()
            yield files
            with private_draft(folder / _LIST, json.dumps(files).encode()) as draft:
                draft.replace(folder / _LIST)
    except OSError as exc:
        raise ArchiveError(f"cannot keep what you trust in {folder}: {exc.strerror}") from exc


def _folder() -> Path:
    return platformdirs.user_state_path("sbench")


def _name(path: Path) -> str:
    # A link is not followed: the file that it leads to was trusted where that one lies.
    return str(path.parent.resolve() / path.name)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _shown(text: str) -> str:
    return re.sub(_HIDDEN, r"\1 ***", text)
