"""``sbench localstack`` as a process of its own."""

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

COMMAND = [sys.executable, "-m", "serverless_bench", "localstack"]


@dataclass(frozen=True)
class Running:
    """A LocalStack that answers."""

    environment: Mapping[str, str]
    """Variables for its clients."""
    process: subprocess.Popen[str]

    @property
    def url(self) -> str:
        return self.environment["AWS_ENDPOINT_URL"]


@contextmanager
def running_localstack(
    environment: Mapping[str, str] | None = None, flags: Sequence[str | Path] = ()
) -> Iterator[Running]:
    """Run LocalStack for the length of a block; installing it may take a minute."""
    process = subprocess.Popen(
        [*COMMAND, *map(str, flags)],
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    first, exports = process.stdout.readline(), process.stdout.readline()
    try:
        assert first.startswith("LocalStack "), process.communicate()
        words = shlex.split(exports)[1:]
        yield Running(dict(word.split("=", 1) for word in words), process)
    finally:
        process.terminate()
        _, err = process.communicate()
    assert process.returncode in {0, -signal.SIGKILL}
    assert not err or err.startswith("installing LocalStack "), err
