"""Find the modules of the package that a function needs, in a clone or in the folder of a stack.

``python -m serverless_bench.features.aws.stack.source FOLDER [CLIENT]`` copies them into FOLDER: a
step of the recipe, which runs without the libraries of the package.
"""

import ast
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from serverless_bench.base.plugins import Registry
from serverless_bench.clients import CLIENTS
from serverless_bench.job.abilities import ThroughLibrary
from serverless_bench.job.workload import WORKLOADS, workload_of

PACKAGE: Final = Path(__file__).parents[3]
_OF_FUNCTIONS: Final = ("policies", "races", "sessions")
"""Families of plugins that a function may load."""


def _modules(places: Iterable[str]) -> list[str]:
    """Return the modules in places of plugins, below the package."""
    return [place.partition(":")[0].partition(".")[2] for place in places]


_ROOTS: Final = (
    *("features.remote.handler", "clients.wire"),
    *_modules(
        WORKLOADS.builtin[name]
        for name in WORKLOADS
        if not isinstance(workload_of(name), ThroughLibrary)
    ),
    *_modules(at for family in _OF_FUNCTIONS for at in Registry[Any](family, {}).builtin.values()),
)
"""Modules that are imported by name: the entry point, plugins without a library, and policies."""


def copy_source(folder: Path, *more: str, clients: Iterable[str] = ()) -> None:
    """Copy the modules that a function imports into a folder for ``sys.path``.

    Parameters
    ----------
    folder
        Created if it does not exist.
    more
        Additional modules of the package to copy, with all their imports.
    clients
        Clients of the function besides the thin one.
    """
    for path in _reachable(*_ROOTS, *more, *_modules(map(CLIENTS.builtin.__getitem__, clients))):
        to = folder / path.relative_to(PACKAGE.parent)
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, to)


def _reachable(*roots: str) -> set[Path]:
    """Return the files of the package that modules import directly or indirectly."""
    files: set[Path] = set()
    waiting = [f"{PACKAGE.name}.{name}" for name in roots]
    while waiting:
        name = waiting.pop()
        path = _file_of(name)
        if path and path not in files:
            files.add(path)
            waiting.append(name.rpartition(".")[0])
            waiting.extend(_imports_of(ast.parse(path.read_bytes())))
    return files


def _file_of(module: str) -> Path | None:
    """Return the file of a module of the package; None for other names."""
    head, *rest = module.split(".")
    stem = PACKAGE.joinpath(*rest)
    files = [stem / "__init__.py", stem.with_suffix(".py")] if head == PACKAGE.name else []
    return next((path for path in files if path.is_file()), None)


def _imports_of(tree: ast.AST) -> Iterator[str]:
    """Yield the names that a module imports, except those for type checkers."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (node.module, *(f"{node.module}.{alias.name}" for alias in node.names))
        elif not isinstance(node, ast.If) or ast.unparse(node.test) != "TYPE_CHECKING":
            yield from _imports_of(node)


if __name__ == "__main__":
    copy_source(Path(sys.argv[1]), clients=sys.argv[2:])
