"""Credentials that can be recognized, and the search for them: in files and in processes."""

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Final

import psutil

_OWN: Final = token_hex(4)
"""Tests run side by side, and each finds its own."""
SECRETS: Final[Mapping[str, str]] = {
    "AWS_ACCESS_KEY_ID": f"AKIAMARKEDKE{_OWN.upper()}",
    "AWS_SECRET_ACCESS_KEY": f"marked-secret-key-of-forty-charact-{_OWN}",
    "AWS_SESSION_TOKEN": f"marked-session-token-of-temporary-credentials-{_OWN}",
    "AZURE_STORAGE_ACCOUNT_KEY": f"marked-key-of-a-storage-account-{_OWN}",
}
PROXY_PASSWORD: Final = f"marked-proxy-password-{_OWN}"
ENVIRONMENT: Final[Mapping[str, str]] = {
    **SECRETS,
    # Not used: everything is on this machine.
    "HTTPS_PROXY": f"http://someone:{PROXY_PASSWORD}@127.0.0.1:9",
    "NO_PROXY": "127.0.0.1,localhost",
}
MARKS: Final = (*SECRETS.values(), PROXY_PASSWORD)
_TICK_S: Final = 0.05


@dataclass
class Leaks:
    """Credentials that were found in forbidden places."""

    arguments: set[str] = field(default_factory=set)
    """Command lines that had any."""
    holders: set[str] = field(default_factory=set)
    """Command lines of processes that had them in their environment."""
    files: set[str] = field(default_factory=set)


@contextmanager
def watched(folder: Path) -> Iterator[Leaks]:
    """Look at all processes that begin within the block, and at the files in a folder.

    Parameters
    ----------
    folder
        Of all that is written, looked through at the end; temporary files, in ``tmp``, all
        the time.
    """
    leaks, over = Leaks(), threading.Event()
    before = {process.pid for process in psutil.process_iter()}

    def watch() -> None:
        while not over.wait(_TICK_S):
            _look_at_processes(before, leaks)
            leaks.files.update(leaking(folder / "tmp"))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield leaks
    finally:
        over.set()
        thread.join()
        leaks.files.update(leaking(folder))


def leaking(folder: Path) -> Iterator[str]:
    """Yield the files below a folder that have a credential in them."""
    # Files and folders may vanish at any time.
    for path in (Path(where, name) for where, _, names in os.walk(folder) for name in names):
        try:
            data = path.read_bytes() if path.is_file() else b""
        except OSError:
            continue
        if any(mark.encode() in data for mark in MARKS):
            yield str(path.relative_to(folder))


def shown(*texts: str) -> list[str]:
    """Return the credentials that texts contain."""
    return [mark for mark in MARKS if any(mark in text for text in texts)]


def _look_at_processes(before: set[int], leaks: Leaks) -> None:
    for process in psutil.process_iter():
        if process.pid in before:
            continue
        try:
            command, environment = process.cmdline(), process.environ()
        except (psutil.Error, OSError):
            continue
        line = _short(command)
        if shown(*command):
            leaks.arguments.add(line)
        if shown(*environment.values()):
            leaks.holders.add(line)


def _short(command: Sequence[str]) -> str:
    """Return the module that a command line runs, or its program."""
    if "-m" in command:
        return command[command.index("-m") + 1]
    scripts = (one for one in command[1:] if one.endswith(".py"))
    return Path(next(scripts, command[0] if command else "")).name
