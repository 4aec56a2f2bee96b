"""A command on a terminal of its own, with typed input."""

import codecs
import os
import pty
import subprocess
import sys
import termios
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
        Its exit code, its standard output, and the terminal's text.
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
    # A read may end within a letter.
    decoder = codecs.getincrementaldecoder("utf-8")()
    shown, answered = "", 0
    # A terminal with a closed other end raises this.
    with suppress(OSError):
        while data := os.read(ours, 1 << 16):
            shown += decoder.decode(data)
            while shown.count(prompt) > answered:
                answered += 1
                os.write(ours, f"{answer}\n".encode())
    os.close(ours)
    out, _ = process.communicate()
    return process.returncode, out, shown


def on_a_terminal(
    directory: Path,
    *words: str,
    columns: int = 80,
    typed: str = "",
    environment: Mapping[str, str] | None = None,
) -> tuple[int, str]:
    """Return the exit code of a command, and all that it wrote to its terminal."""
    driver, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, (24, columns))
    # The terminal has the size, not the variables that pytest's workers have.
    values = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES"}}
    variables = {**values, "TERM": "xterm-256color", **(environment or {})}
    process = subprocess.Popen(
        [*COMMAND, *words],
        cwd=directory,
        env=variables,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
    )
    os.close(terminal)
    os.write(driver, typed.encode())
    reported = b""
    # A terminal with a closed other end raises this.
    with suppress(OSError):
        while piece := os.read(driver, 1 << 12):
            reported += piece
    os.close(driver)
    return process.wait(), reported.decode().replace("\r\n", "\n")
