"""Stores without a Python package: built from source once, and kept outside the clone.

They take two and four minutes of a CPU to build, so only ``make full`` and ``make stores``
use them. Their sources are pinned: Go compares each module with its checksum database, cargo with
the lock file in the package.
"""

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import platformdirs

DIRECTORY: Final = Path(
    os.environ.get("TEST_SERVERS_DIR") or platformdirs.user_cache_path("sbench") / "test-servers"
)
"""Their folder: set in the environment, or the user's cache."""


@dataclass(frozen=True)
class Built:
    name: str
    version: str
    tool: str
    """The required build tool."""
    arguments: tuple[str, ...]
    """Arguments of the tool; ``{home}`` is the folder in which ``bin/NAME`` has to be then."""
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def home(self) -> Path:
        return DIRECTORY / f"{self.name}-{self.version}"


VERSITYGW: Final = Built(
    name="versitygw",
    version="1.8.0",
    tool="go",
    arguments=("install", "github.com/versity/versitygw/cmd/versitygw@v1.8.0"),
    environment={"GOBIN": "{home}/bin"},
)
S3S_FS: Final = Built(
    name="s3s-fs",
    version="0.14.1",
    tool="cargo",
    arguments=(
        *("install", "s3s-fs", "--version", "0.14.1", "--features", "binary"),
        *("--locked", "--root", "{home}"),
    ),
)
FAKE_GCS: Final = Built(
    name="fake-gcs-server",
    version="1.56.1",
    tool="go",
    arguments=("install", "github.com/fsouza/fake-gcs-server@v1.56.1"),
    environment={"GOBIN": "{home}/bin"},
)


def program(server: Built) -> Path:
    """Return the server's program, after building it if necessary."""
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    with (DIRECTORY / f"{server.name}.lock").open("w") as lock:
        # Only one of two concurrent tests builds it.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not server.home.exists():
            build(server)
    return server.home / "bin" / server.name


def build(server: Built) -> None:
    """Build a server beside its place, and move it there when it is complete."""
    tool = shutil.which(server.tool)
    assert tool is not None, (
        f"{server.name} is built with {server.tool}: install it, or put the program at"
        f" {server.home / 'bin' / server.name}"
    )
    with tempfile.TemporaryDirectory(dir=DIRECTORY) as scratch:
        home = Path(scratch) / "home"
        home.mkdir()
        done = subprocess.run(
            [tool, *(word.format(home=home) for word in server.arguments)],
            env={
                **os.environ,
                **{name: text.format(home=home) for name, text in server.environment.items()},
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        home.rename(server.home)
