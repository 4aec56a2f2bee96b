"""Tests that wait or measure: a busy machine could change their result.

``python -m tests.waiting [PATH ...]`` prints their node identifiers, and ``--files`` their files,
to be tried ten times beside busy loops. A test is one if its code reaches, by names, fixtures and
helpers of tests, a module of ``WAITS``, or one of the package that is among ``RUNS`` or
imports one of ``STARTS``. In doubt it is one; a class is one if any of its tests is.
"""

import ast
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from tests.selection import files_of_tests

ROOT: Final = Path(__file__).parents[1]
STARTS: Final = frozenset(
    {
        "asyncio", "concurrent.futures", "http.server", "multiprocessing", "select", "selectors",
        "signal", "socket", "socketserver", "subprocess",
    }
)  # fmt: skip
"""Processes, pools of threads, and connections."""
WAITS: Final = STARTS | {
    "fcntl", "psutil", "pty", "ssl", "threading", "time", "serverless_bench.base.clock",
}  # fmt: skip
RUNS: Final = ("serverless_bench.driver.run", "serverless_bench.features.testing")
"""Modules of the package that start the others."""


@cache
def _source(module: str) -> Path | None:
    path = module.replace(".", "/")
    found = (ROOT / f"{path}.py", ROOT / path / "__init__.py")
    return next((one for one in found if one.exists()), None)


class _Module:
    """Definitions of a file by name, and the module and the name of each import."""

    def __init__(self, path: Path) -> None:
        tree = ast.parse(path.read_bytes())
        self.defined = dict[str, list[ast.stmt]]()
        self.imported = dict[str, tuple[str, str]]()
        for node in tree.body:
            for name in _named(node):
                self.defined.setdefault(name, []).append(node)
        for one in ast.walk(tree):
            if isinstance(one, ast.Import):
                for each in one.names:
                    self.imported[each.asname or each.name.partition(".")[0]] = (each.name, "")
            elif isinstance(one, ast.ImportFrom):
                for each in one.names:
                    self.imported[each.asname or each.name] = (one.module or "", each.name)


def _named(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [each.id for each in targets if isinstance(each, ast.Name)]


_module = cache(_Module)


@cache
def _is_awaited(module: str, name: str) -> bool:
    """Tell whether an import is of something to wait for, or of a module of ours that has it."""
    path = _source(f"{module}.{name}") or _source(module)
    ours = path is not None and module.startswith("serverless_bench")
    inside = _module(path).imported.values() if path and ours else ()
    return (
        not {module, f"{module}.{name}"}.isdisjoint(WAITS)
        or module.startswith(RUNS)
        or any(not {origin, f"{origin}.{what}"}.isdisjoint(STARTS) for origin, what in inside)
    )


@cache
def _used(node: ast.AST) -> frozenset[str]:
    """Return the names in a definition, also of its fixtures."""
    every = [*ast.walk(node)]
    names = {one.id for one in every if isinstance(one, ast.Name)}
    names |= {one.arg for one in every if isinstance(one, ast.arg)}
    return frozenset(names | {str(o.value) for o in every if isinstance(o, ast.Constant)})


@cache
def _shared(path: Path) -> list[Path]:
    """Return the files of fixtures for a file, nearest first."""
    return [d / "conftest.py" for d in path.parents if (d / "conftest.py").exists()]


@cache
def _meant(path: Path, name: str) -> list[tuple[Path, ast.AST]]:
    """Return the definitions that a name in a file may mean, in this file or in other tests."""
    if name in _module(path).imported:
        origin, what = _module(path).imported[name]
        source = _source(f"{origin}.{what}") or _source(origin)
        if source is None or "tests" not in origin.split("."):
            return []
        found = _module(source).defined
        # Of an imported module any definition may be meant.
        return [(source, n) for key in ([what] if what in found else found) for n in found[key]]
    source = next((one for one in (path, *_shared(path)) if name in _module(one).defined), path)
    return [(source, node) for node in _module(source).defined.get(name, ())]


_known: Final = dict[ast.AST, bool]()


def waits(path: Path, node: ast.AST) -> bool:
    """Tell whether a definition in a file leads to something to wait for."""
    seen, left = set[ast.AST](), [(path, node)]
    while left:
        where, what = left.pop()
        imports = _module(where).imported
        if _known.get(what) or any(
            _is_awaited(*imports[name]) for name in _used(what) if name in imports
        ):
            _known[node] = _known[what] = True
            return True
        if what not in seen and what not in _known:
            left += [each for name in _used(what) for each in _meant(where, name)]
        seen.add(what)
    _known.update(dict.fromkeys(seen, False))
    return False


def _is_automatic(node: ast.AST) -> bool:
    found = (each for one in getattr(node, "decorator_list", ()) for each in ast.walk(one))
    return any(isinstance(each, ast.keyword) and each.arg == "autouse" for each in found)


def waiting(path: Path) -> Iterator[str]:
    """Yield the node identifiers of the tests of a file that wait."""
    defined = _module(path).defined
    always = [node for nodes in defined.values() for node in nodes if _is_automatic(node)]
    for name, nodes in defined.items():
        is_test = name.startswith("Test" if isinstance(nodes[-1], ast.ClassDef) else "test_")
        if is_test and any(waits(path, each) for each in (nodes[-1], *always)):
            yield f"{path.relative_to(ROOT)}::{name}"


def main(arguments: Sequence[str]) -> None:
    """Print the tests that wait in these files and folders, or everywhere."""
    given = [ROOT / each for each in arguments if each != "--files"]
    chosen = {f for g in given for f in ([g] if g.is_file() else g.rglob("test_*.py"))}
    files = sorted(chosen) if given else files_of_tests()
    found = [name for path in files for name in waiting(path)]
    names = dict.fromkeys(n.partition("::")[0] for n in found) if "--files" in arguments else found
    sys.stdout.writelines(f"{name}\n" for name in names)


if __name__ == "__main__":
    main(sys.argv[1:])
