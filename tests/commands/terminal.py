"""A command on a terminal of its own, where somebody types."""

import os
import pty
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tests.commands.command import COMMAND

_OWN_TERMINAL = (
    "import fcntl, os, sys, termios; os.setsid(); fcntl.ioctl(2, termios.TIOCSCTTY, 0);"
    "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
)


def on_terminal(
    directory: Path,
    environment: Mapping[str, str],
    *arguments: str | int,
    prompt: str,
    answer: str,
) -> tuple[int, str, str]:
    """Run ``sbench`` and answer each prompt.

    Returns
    -------
    tuple[int, str, str]
        Its exit code, what it wrote to standard output, and what the terminal showed.
    """
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", _OWN_TERMINAL, *COMMAND[1:], *map(str, arguments)],
        cwd=directory,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "80", **environment},
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
    )
    os.close(theirs)
    shown, answered = "", 0
    # What a terminal says whose other end is closed.
    with suppress(OSError):
        while data := os.read(ours, 1 << 16):
            shown += data.decode()
            while shown.count(prompt) > answered:
                answered += 1
                os.write(ours, f"{answer}\n".encode())
    os.close(ours)
    out, _ = process.communicate()
    return process.returncode, out, shown
