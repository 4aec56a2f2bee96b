"""Run ``sbench`` as a user does: its streams and its exit code, in this process or its own.

A process of its own costs a second of imports. It is for properties of a process: signals,
its end, and its remaining children; and for code that cannot share this one (Lithops' settings
belong to the process, and a library has one store per process).
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from serverless_bench.cli.main import main
from serverless_bench.clients.aws_credentials import forget_credentials
from serverless_bench.worker import invocation
from tests.commands.processes import PATIENCE_S
from tests.stores.servers import credentials

Call = Callable[..., tuple[int, str, str]]
"""Takes arguments; returns exit code, standard output and errors."""
COMMAND = [sys.executable, "-m", "serverless_bench"]


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The report: the last line of standard output."""
        report: dict[str, Any] = json.loads(self.out.splitlines()[-1])
        return report


@dataclass(frozen=True)
class Sbench:
    """The command in a directory and an environment of its own, but in this process."""

    directory: Path
    environment: Mapping[str, str]

    def __call__(self, *arguments: str | Path | int, **environment: str) -> Done:
        assert threading.current_thread() is threading.main_thread(), "see Apart"
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            with (
                contextlib.chdir(self.directory),
                credentials({**self.environment, **environment}),
                _handlers(),
                _modules(self.directory),
                _streams(out, err),
            ):
                # As in a new process: nothing is warm.
                invocation.forget_clients()
                forget_credentials()
                invocation._generators.clear()
                code = main([*map(str, arguments)])
            return _done(code, _text(out), _text(err))

    @property
    def apart(self) -> "Apart":
        """The same command, in a process of its own."""
        return Apart(self.directory, self.environment)


@dataclass(frozen=True)
class Apart(Sbench):
    """The command in a process of its own; threads may share it."""

    def __call__(self, *arguments: str | Path | int, **environment: str) -> Done:
        done = subprocess.run(
            [*COMMAND, *map(str, arguments)],
            cwd=self.directory,
            env={**os.environ, **self.environment, **environment},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        return _done(done.returncode, done.stdout, done.stderr)

    def start(self, *arguments: str | Path | int) -> "subprocess.Popen[str]":
        """Start the command and return immediately; it ends with the test at the latest."""
        process = subprocess.Popen(
            [*COMMAND, *map(str, arguments)],
            cwd=self.directory,
            env={**os.environ, **self.environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        _started.append(process)
        return process


_started: "list[subprocess.Popen[str]]" = []


def end_started() -> None:
    """End started commands that still run, for example if a test fails half-way."""
    while _started:
        with _started.pop() as process:
            process.kill()


def _done(code: int, out: str, err: str) -> Done:
    assert "Traceback" not in err, err
    return Done(code, out, err)


@contextmanager
def _handlers() -> Iterator[None]:
    """Put back the handlers of the signals that the command handles."""
    numbers = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
    before = [(number, signal.getsignal(number)) for number in numbers]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)


@contextmanager
def _modules(directory: Path) -> Iterator[None]:
    """Forget the modules of the directory: another test may have others of these names."""
    before = set(sys.modules)
    try:
        yield
    finally:
        for name in set(sys.modules) - before:
            if Path(getattr(sys.modules[name], "__file__", None) or os.devnull).is_relative_to(
                directory
            ):
                del sys.modules[name]


@contextmanager
def _streams(out: IO[bytes], err: IO[bytes]) -> Iterator[None]:
    """Redirect standard output and errors to files: ours, and those of new child processes."""
    with (
        Path(os.devnull).open("rb") as nothing,
        _stream(0, nothing, "stdin", "r"),
        _stream(1, out, "stdout", "w"),
        _stream(2, err, "stderr", "w"),
    ):
        yield


@contextmanager
def _stream(number: int, file: IO[bytes], name: str, mode: str) -> Iterator[None]:
    before, kept = getattr(sys, name), os.dup(number)
    os.dup2(file.fileno(), number)
    with os.fdopen(number, mode, encoding="utf-8", closefd=False) as stream:
        setattr(sys, name, stream)
        try:
            yield
        finally:
            setattr(sys, name, before)
    os.dup2(kept, number)
    os.close(kept)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()
