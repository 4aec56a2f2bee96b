"""A copy of the repository from which something is taken away, with an installation of its own."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.house.measures import PACKAGE, REPOSITORY

_COPIED: Final = ("serverless_bench", "tests", "docs", "examples", "requirements", "benchmarks")
_FILES: Final = ("pyproject.toml", "README.md", "LICENSE", "CONTRIBUTING.md", "Makefile")
_TABLES: Final = (
    "pyproject.toml",
    *(path.relative_to(REPOSITORY).as_posix() for path in PACKAGE.glob("*/__init__.py")),
    "serverless_bench/__init__.py",
    "serverless_bench/cli/main.py",
    "serverless_bench/job/workload.py",
)
"""Files with tables of what there is, by name."""
_PATIENCE_S: Final = 1800


@dataclass(frozen=True, slots=True)
class Scratch:
    """A scratch copy.

    Parameters
    ----------
    root
        Its folder.
    """

    root: Path

    @property
    def environment(self) -> Mapping[str, str]:
        """Environment of a process that imports this copy, and sees its entry points."""
        paths = (self.root / "site", self.root)
        return {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "SBENCH_STORE_DIR": str(self.root / "store"),
        }

    def remove(self, paths: Iterable[str], table_lines: str) -> None:
        """Delete files or folders, and the lines of tables that match a pattern.

        Parameters
        ----------
        paths
            From the repository's root.
        table_lines
            Regular expression; a line of a table in which it is found goes.
        """
        for path in paths:
            place = self.root / path
            if place.is_dir():
                shutil.rmtree(place)
            else:
                place.unlink()
        for name in _TABLES:
            table = self.root / name
            if table.exists():
                lines = table.read_text("utf-8").splitlines(keepends=True)
                kept = [line for line in lines if not re.search(table_lines, line)]
                table.write_text("".join(kept), "utf-8")

    def install(self) -> None:
        """Write the metadata of this copy: entry points are read from there."""
        install = ("uv", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation")
        self.run("-m", *install, "--python", sys.executable, "--target", "site", ".")
        # The copy itself is on the path: tests look beside the package.
        shutil.rmtree(self.root / "site" / "serverless_bench")

    def run(self, *arguments: str) -> str:
        """Run Python in this copy and return what it printed; fail if its exit code is not 0."""
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.root,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, f"{arguments}: {(done.stdout + done.stderr)[-6000:]}"
        return done.stdout


def scratch_copy(root: Path) -> Scratch:
    """Copy the repository without what git ignores."""
    skipped = shutil.ignore_patterns("__pycache__", "*.pyc")
    for name in _COPIED:
        shutil.copytree(REPOSITORY / name, root / name, ignore=skipped)
    for name in _FILES:
        shutil.copy(REPOSITORY / name, root / name)
    return Scratch(root)
