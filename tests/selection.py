"""Which tests a change needs.

    python -m tests.selection         # what `make test` leaves out, and why
    python -m tests.selection unit    # files for `make fast`, on one line
    python -m tests.selection timing  # files with tests that judge by time

Changed are the files that differ from the last landed commit: the one that the variable ``LANDED``
names, otherwise the file ``.ci/landed``. A test marked ``on_change`` runs if one of them lies below
a path of its mark, or is imported by the test: modules of tests are followed, and of features among
its paths; those of the core are not, because they lead to everything. A feature's integration tests
have the mark without writing it, for the folder of the feature. In doubt everything runs: without
history, without a landed commit, and if a file changed that every test depends on.
"""

import ast
import os
import subprocess
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
EVERYTHING: Final = ("conftest.py", "pyproject.toml", "requirements")
"""Files and folders that every test depends on."""
PARTS: Final = {
    "launching functions": tuple(
        f"serverless_bench/{name}"
        for name in ("driver", "executors", "features/remote", "worker/runner.py")
    ),
    "python": (
        *("serverless_bench/__init__.py", "serverless_bench/features/__init__.py"),
        *(f"serverless_bench/{name}" for name in ("driver", "job", "metrics", "report")),
        # Workloads of examples.
        *(f"serverless_bench/features/{name}" for name in ("array", "parquet", "shuffle")),
    ),
    "running a job": tuple(
        f"serverless_bench/{name}"
        for name in (
            *("base", "cli", "clients", "driver", "executors", "job", "payload", "rundir"),
            *("stores", "worker", "workloads", "features/custom", "features/remote"),
        )
    ),
}
"""Folders and files of the package by what they take part in, for marks."""
FEATURES: Final = "serverless_bench/features/"
DOCUMENTS: Final = ("docs", "examples", "notebooks")
"""Folders of which no unit test depends on, but for those that import from them.

Pages of the package count as pages of docs/.
"""


@dataclass(frozen=True, slots=True)
class Change:
    """Files that differ from a landed commit.

    Parameters
    ----------
    files
        Their paths from the root.
    since
        The commit.
    """

    files: frozenset[str]
    since: str

    def below(self, paths: Collection[str]) -> str | None:
        """Return a changed file that is one of some paths, or lies below one."""
        places = tuple(f"{path.rstrip('/')}/" for path in paths)
        return next((f for f in sorted(self.files) if f"{f}/".startswith(places)), None)


@cache
def change(root: Path = ROOT) -> Change | str:
    """Return what changed since the last landed commit, or why that is not known."""
    named = root / ".ci" / "landed"
    since = os.environ.get("LANDED") or (named.read_text("utf-8") if named.exists() else "")
    if not since.strip():
        return "no landed commit is named"
    try:
        # A commit that is not part of this history says nothing about it.
        _git(root, "merge-base", "--is-ancestor", since.strip(), "HEAD")
        changed = _git(root, "diff", "--name-only", "--no-renames", "-z", since.strip())
        new = _git(root, "ls-files", "--others", "--exclude-standard", "-z")
    except (OSError, subprocess.CalledProcessError):
        return "there is no history"
    return Change(frozenset(map(_place, filter(None, (changed + new).split("\0")))), since.strip())


def _place(file: str) -> str:
    return f"docs/{file}" if file.startswith("serverless_bench/") and file.endswith(".md") else file


def _git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def files_of_tests(root: Path = ROOT) -> list[Path]:
    """Return the files with tests: those in ``tests/``, and those in folders of features."""
    features = root.glob("serverless_bench/features/*/tests")
    return sorted(p for at in (root / "tests", *features) for p in at.rglob("test_*.py"))


def is_unit(path: Path) -> bool:
    """Tell whether a file has unit tests: of a feature, those outside of ``tests/integration/``."""
    return "unit" in path.parts or ("features" in path.parts and "integration" not in path.parts)


def implied(test: Path, root: Path = ROOT) -> tuple[str, ...]:
    """Return the paths of the mark that a feature's integration test has without writing it."""
    parts = test.relative_to(root).parts
    is_of_a_feature = parts[1:2] == ("features",) and "integration" in parts
    return ("/".join(parts[:3]),) if is_of_a_feature else ()


def _is_of_tests(name: str) -> bool:
    return "tests" in name.split("/")[:-1]


def reason(test: Path, paths: Collection[str], changed: Change | str, root: Path = ROOT) -> str:
    """Return why a test with the mark ``on_change(*paths)`` runs; empty if it does not."""
    if isinstance(changed, str):
        return changed
    paths = [part for path in paths for part in PARTS.get(path, (path,))]
    if file := changed.below(EVERYTHING) or changed.below(paths):
        return f"{file} changed"
    used = needed(test, paths, root)
    return next((f"{f} changed" for f in sorted(changed.files) if f in used), "")


def needed(test: Path, followed: Collection[str], root: Path = ROOT) -> frozenset[str]:
    """Return the files that a module of tests needs: what it and others of tests import, in turn.

    Parameters
    ----------
    test
        The module.
    followed
        Folders; modules of features among them are followed, too.
    root
        Folder of the repository, which names begin at.
    """
    found: set[str] = set()
    waiting = [test.relative_to(root).as_posix()]
    places = tuple(f"{path}/" for path in followed if path.startswith(FEATURES))
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            if _is_of_tests(name) or name.startswith(places):
                waiting += imported(root / name, root)
    return frozenset(found)


@cache
def imported(path: Path, root: Path) -> Sequence[str]:
    """Return the files of the repository that a module imports, now or later."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    files = {file for name in names if (file := _file(name, root))}
    if path.name.startswith("test_"):
        parents = (folder / "conftest.py" for folder in path.parents if root in folder.parents)
        files |= {p.relative_to(root).as_posix() for p in parents if p.exists()}
    return sorted(files)


def _file(module: str, root: Path) -> str | None:
    """Return the file of a module of the repository; None for a name in one, and for others."""
    base = root.joinpath(*module.split("."))
    files = (base.with_suffix(".py"), base / "__init__.py")
    return next((f.relative_to(root).as_posix() for f in files if f.is_file()), None)


def marked(root: Path = ROOT) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """Yield the test files with marks ``on_change``, and the paths of all their marks."""
    for path in files_of_tests(root):
        paths = [*implied(path, root)]
        if "on_change" in (text := path.read_text("utf-8")):
            calls = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Call)]
            marks = [call for call in calls if ast.unparse(call.func).endswith("mark.on_change")]
            arguments = [argument for mark in marks for argument in mark.args]
            paths += [str(ast.literal_eval(argument)) for argument in arguments]
        if paths:
            yield path, tuple(dict.fromkeys(paths))


def unit_tests(changed: Change | str, root: Path = ROOT) -> list[str]:
    """Return the files with the unit tests of changed modules, for ``make fast``.

    These are tests that import a changed file, or import a module that does; all in doubt.
    """
    every = {p.relative_to(root).as_posix(): p for p in files_of_tests(root) if is_unit(p)}
    if isinstance(changed, str) or changed.below(EVERYTHING):
        return [*every]
    files = {f for f in changed.files if not f.startswith(tuple(f"{at}/" for at in DOCUMENTS))}
    package = {f for f in files if f.startswith("serverless_bench/") and not _is_of_tests(f)}
    if any(not f.endswith(".py") for f in package):
        return [*every]  # data, whose users no import shows
    chosen = []
    for name, path in every.items():
        direct = needed(path, (), root)
        second = {i for f in direct if f not in package for i in imported(root / f, root)}
        if not files.isdisjoint(direct | second):
            chosen.append(name)
    return chosen


def timing_tests(root: Path = ROOT) -> list[str]:
    """Return the files with tests that judge by time: loading all others would take as long."""
    judging = filter(judges_by_time, files_of_tests(root))
    return [path.relative_to(root).as_posix() for path in judging]


def judges_by_time(path: Path) -> bool:
    """Tell whether a file may have tests with the mark, without loading it."""
    return "pytest.mark.timing" in path.read_text("utf-8")


def main(arguments: Sequence[str]) -> None:
    """Print the selection."""
    changed = change()
    if list(arguments) == ["timing"]:
        sys.stdout.write(" ".join(timing_tests()) + "\n")
        return
    if list(arguments) == ["unit"]:
        sys.stdout.write(" ".join(unit_tests(changed)) + "\n")
        return
    if isinstance(changed, str):
        sys.stdout.write(f"all tests run: {changed}\n")
        return
    for path, paths in marked():
        why = reason(path, paths, changed)
        name = path.relative_to(ROOT)
        left = f"left out, neither {' nor '.join(paths)} nor an import of it changed"
        sys.stdout.write(f"{name}: {f'tests of a part run, {why}' if why else left}\n")
    sys.stdout.write(f"({len(changed.files)} files changed since {changed.since:.12})\n")


if __name__ == "__main__":
    main(sys.argv[1:])
