"""A changed copy of the repository, with an installation of its own."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.house.measures import NAME, PACKAGE, REPOSITORY
from tests.house.removed import SCRATCH

_MADE: Final = shutil.ignore_patterns(
    *(
        ".git",
        ".venv*",
        ".aws-sam",
        ".*cache",
        ".dmypy.json",
        ".hypothesis",
        "dist",
        "mutants",
        "sbench-*",
    )
)
"""Environments, caches, and output of the Makefile and the command. Compiled modules are copied:
changed files are compiled again.
"""
TABLES: Final = (
    "pyproject.toml",
    *(path.relative_to(REPOSITORY).as_posix() for path in PACKAGE.glob("*/__init__.py")),
    "serverless_bench/__init__.py",
    "serverless_bench/cli/main.py",
    "serverless_bench/job/workload.py",
)
"""Files with tables of members, by name."""
_MYPY: Final = f"""
import sys
# An editable installation is of the repository: what this copy lacks must not be found there.
sys.path[:] = [path for path in sys.path if path != {str(REPOSITORY)!r}]
from mypy.__main__ import console_entry
sys.argv = ["mypy", {NAME!r}, "--exclude", "/tests/"]
console_entry()
"""
_PATIENCE_S: Final = 1800


@dataclass(frozen=True, slots=True)
class Scratch:
    """A scratch copy.

    Parameters
    ----------
    root
        Its folder.
    removed
        Names of removed features, and of their commands, plugins and settings.
    """

    root: Path
    removed: frozenset[str] = frozenset()

    @property
    def environment(self) -> Mapping[str, str]:
        """Environment of a process that imports this copy, and sees its entry points."""
        paths = (self.root / "site", self.root)
        return {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "SBENCH_STORE_DIR": str(self.root / "store"),
            # Hypothesis draws the same examples again, and an outer make must not affect this one.
            "CI": "1",
            "MAKEFLAGS": "",
            SCRATCH: " ".join(sorted(self.removed)),
        }

    def remove(self, paths: Iterable[str], table_lines: str) -> None:
        """Delete files or folders, and the lines of tables that match a pattern.

        Parameters
        ----------
        paths
            Paths from the repository's root.
        table_lines
            Regular expression; matching lines of tables are deleted.
        """
        for path in paths:
            place = self.root / path
            if place.is_dir():
                shutil.rmtree(place)
            else:
                place.unlink()
        for name in TABLES:
            table = self.root / name
            if table.exists():
                lines = table.read_text("utf-8").splitlines(keepends=True)
                kept = [line for line in lines if not re.search(table_lines, line)]
                table.write_text("".join(kept), "utf-8")

    def insert(self, path: str, before: str, lines: str) -> None:
        """Write lines into a file, before the only place that begins as ``before`` does."""
        self.replace(path, before, lines + before)

    def replace(self, path: str, old: str, new: str) -> None:
        """Replace the only occurrence of a text in a file."""
        place = self.root / path
        text = place.read_text("utf-8")
        assert text.count(old) == 1, (path, old)
        place.write_text(text.replace(old, new), "utf-8")

    def changed(self, folder: str) -> set[str]:
        """Return the files of a folder that are not as they are in the repository."""
        paths = {
            path.relative_to(self.root)
            for path in (self.root / folder).rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }
        return {
            path.as_posix()
            for path in paths
            if not (REPOSITORY / path).is_file()
            or (REPOSITORY / path).read_bytes() != (self.root / path).read_bytes()
        }

    def install(self) -> None:
        """Write the metadata of this copy, which contain the entry points."""
        install = ("uv", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation")
        self.run("-m", *install, "--python", sys.executable, "--target", "site", ".")
        # The copy itself is on the path: tests look beside the package.
        shutil.rmtree(self.root / "site" / NAME)

    def check_types(self) -> None:
        """Check that no type and no import of the package is missing; its tests are left out.

        The cache of `make types` saves checking libraries, and unchanged modules.
        """
        cache = REPOSITORY / ".mypy_cache"
        # A log beside a database: mypy is writing it now.
        if cache.is_dir() and not [*cache.rglob("*-wal")]:
            shutil.copytree(cache, self.root / cache.name)
        self.run("-c", _MYPY)

    def make(self, *targets: str) -> None:
        """Have the Makefile make something, by the tools of this environment."""
        self._call("make", "-o", ".venv/dev", f"BIN={Path(sys.executable).parent}", *targets)

    def test(self, *paths: str) -> None:
        """Check that tests pass in this copy, with few examples for random ones."""
        how = ("-q", "-n", "0", "-p", "no:cacheprovider", "--hypothesis-profile=mutants")
        self.run("-m", "pytest", *how, *paths)

    def run(self, *arguments: str, code: int = 0) -> str:
        """Run Python in this copy and return its output; fail if its exit code is another."""
        return self._call(sys.executable, *arguments, code=code)

    def _call(self, *command: str, code: int = 0) -> str:
        done = subprocess.run(
            command,
            cwd=self.root,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            check=False,
        )
        assert done.returncode == code, f"{command}: {(done.stdout + done.stderr)[-6000:]}"
        return done.stdout


def scratch_copy(root: Path, removed: Iterable[str] = ()) -> Scratch:
    """Copy the repository into a folder, without generated files."""
    shutil.copytree(REPOSITORY, root, ignore=_MADE, dirs_exist_ok=True)
    return Scratch(root, frozenset(removed))
