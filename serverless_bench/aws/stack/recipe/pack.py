"""Make of an installed folder what a function needs: ``pack.py FOLDER RUNTIME [UV]``.

``sam build`` installs ``requirements/function.txt`` into FOLDER before. Here go the parts
of those packages that no function uses; in come those modules of ``serverless_bench``
that the handler can reach, and the bytecode of everything. Without bytecode every cold
start would compile 300 modules: Lambda's code folder cannot be written to, so it is
never kept. RUNTIME is Lambda's name for a Python, as ``python3.13``; UV fetches that Python
where there is none.

This file has to be readable by Python 3.9, which is what ``python3`` is on macOS.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PACKAGE = "serverless_bench"
SOURCE = Path(__file__).resolve().parents[2] / PACKAGE
ROOTS = (
    *("worker.handler", "clients.wire", "workloads.function", "workloads.mixed"),
    *("workloads.noop", "workloads.read", "workloads.write"),
)
"""What is imported by name: the entry point, and the plugins that need no more libraries."""
USELESS = (
    # cffi's compiler; at run time cryptography needs the backend module alone.
    *("cffi", "pycparser"),
    # The descriptions of 400 services: signing needs none of them.
    *("botocore/data", "botocore/docs", "dateutil/zoneinfo"),
    # Scripts, type stubs, and what only an installer reads.
    *("bin", ".lock", "*.dist-info", "**/*.pyi", "**/py.typed"),
)
OLDEST = (3, 11)
"""The oldest Python that can read the package's own modules."""


def main(folder: Path, runtime: str, uv: str = "uv") -> int:
    """Pack with this Python, or with the runtime's if this one is too old."""
    python = find_python(runtime, uv)
    if sys.version_info >= OLDEST:
        fill(folder, runtime, python)
        return 0
    if python is not None:
        return subprocess.run([*python, __file__, folder, runtime, uv], check=False).returncode
    oldest = ".".join(map(str, OLDEST))
    sys.stderr.write(
        f"pack.py needs Python {oldest} or later, and there is no {runtime}: install one, or uv,"
        " which fetches it\n"
    )
    return 1


def fill(folder: Path, runtime: str, python: Sequence[str] | None) -> None:
    """Prune ``folder``, copy the package into it and compile both with ``python``."""
    for pattern in USELESS:
        for path in list(folder.glob(pattern)):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
    for path in sorted(reachable()):
        to = folder / PACKAGE / path.relative_to(SOURCE)
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, to)
    if python is None:
        sys.stderr.write(f"no {runtime} here: without its bytecode cold starts are slower\n")
        return
    # Lambda runs what it is given: nothing has to be compared with the source's time stamp.
    compiling = ["compileall", "-q", "--invalidation-mode", "unchecked-hash"]
    subprocess.run([*python, "-m", *compiling, "-s", folder, "-p", "/var/task", folder], check=True)


def reachable() -> set[Path]:
    """Return every file of the package that the roots import, at once or later."""
    found: set[Path] = set()
    waiting = [f"{PACKAGE}.{name}" for name in ROOTS]
    while waiting:
        name = waiting.pop()
        path = file_of(name)
        if path is None or path in found:
            continue
        found.add(path)
        waiting.append(name.rpartition(".")[0])
        waiting.extend(imports_of(ast.parse(path.read_bytes())))
    return found


def file_of(module: str) -> Path | None:
    """Return the file of one of our modules; None for what is none."""
    head, *rest = module.split(".")
    stem = SOURCE.joinpath(*rest)
    files = [stem / "__init__.py", stem.with_suffix(".py")] if head == PACKAGE else []
    return next((path for path in files if path.is_file()), None)


def imports_of(tree: ast.AST) -> Iterator[str]:
    """Yield what a module imports, and what only a type checker would not."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        yield from imports_of(node)


def find_python(runtime: str, uv: str) -> Sequence[str] | None:
    """Return how to start a Python of the version that ``runtime`` names, or None."""
    version = runtime.removeprefix("python")
    # Without a network this is over at once; the zip works without bytecode, too.
    environment = {"UV_HTTP_RETRIES": "0", **os.environ}
    told = f"import sys; print('python%d.%d' % sys.version_info[:2] == {runtime!r})"
    for python in (
        [sys.executable],
        [runtime],
        [uv, "run", "--no-project", "--python", version, "python"],
    ):
        if shutil.which(python[0]) is None:
            continue
        done = subprocess.run(
            [*python, "-c", told], capture_output=True, text=True, check=False, env=environment
        )
        if done.stdout.strip() == "True":
            return python
    return None


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:]))
