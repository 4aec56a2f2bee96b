"""Run ``sbench`` as a user does: a process, its streams and its exit code."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    """The command in a directory and an environment of its own."""

    directory: Path
    environment: Mapping[str, str]

    def __call__(self, *arguments: str | Path | int, **environment: str) -> Done:
        done = subprocess.run(
            [*COMMAND, *map(str, arguments)],
            cwd=self.directory,
            env={**os.environ, **self.environment, **environment},
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Done(done.returncode, done.stdout, done.stderr)

    def start(self, *arguments: str | Path | int) -> subprocess.Popen[str]:
        """Start the command and return at once."""
        return subprocess.Popen(
            [*COMMAND, *map(str, arguments)],
            cwd=self.directory,
            env={**os.environ, **self.environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
