"""A folder that ``sam build`` and ``sam deploy`` make a stack of: template, recipe and code.

Nothing in it points to this installation: it can be copied to the machine that deploys.
"""

import ast
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from serverless_bench.aws.stack.template import DEFAULT_ARCHITECTURES, DEFAULT_RUNTIME, template
from serverless_bench.errors import UsageError
from serverless_bench.job.workload import WORKLOADS, open_workload

_TEMPLATE: Final = "template.yaml"
_SETTINGS: Final = "samconfig.toml"
_FUNCTION: Final = "function"
"""Everything else that is written, and replaced the next time."""
_HERE: Final = Path(__file__).parent
_PACKAGE: Final = _HERE.parents[1]
_ROOTS: Final = (
    *("worker.handler", "clients.wire"),
    *(
        place.partition(":")[0].partition(".")[2]
        for name, place in WORKLOADS.builtin.items()
        if not open_workload(name).not_deployed
    ),
)
"""What is imported by name: the entry point, and the plugins that need no more libraries."""
_MACHINES: Final = {"arm64": "aarch64", "x86_64": "x86_64"}
"""uv's names of processors, by Lambda's."""


def write_folder(
    folder: Path,
    text: str | None = None,
    arch: Sequence[str] = DEFAULT_ARCHITECTURES,
    *,
    runtime: str = DEFAULT_RUNTIME,
) -> None:
    """Write all that a stack is made of; what an earlier call wrote is replaced.

    Parameters
    ----------
    folder
        Where to; it is made if need be. SAM's settings that are there are kept.
    text
        The template; the one without parameters if it is not given.
    arch, runtime
        What its functions are for.

    Raises
    ------
    UsageError
        If the folder has files of somebody else, or cannot be written.
    """
    text = text or template()
    code = folder / _FUNCTION / "code" / _PACKAGE.name
    try:
        _check(folder)
        folder.mkdir(parents=True, exist_ok=True)
        # First: it is the mark of a folder that may be written again.
        (folder / _TEMPLATE).write_text(text, encoding="utf-8")
        if (folder / _FUNCTION).exists():
            shutil.rmtree(folder / _FUNCTION)
        for path in reachable():
            to = code / path.relative_to(_PACKAGE)
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, to)
        recipe = folder / _FUNCTION / "recipe"
        shutil.copytree(_HERE / "recipe", recipe, ignore=shutil.ignore_patterns("__pycache__"))
        for name in arch:
            place = folder / _FUNCTION / f"{runtime}-{name}"
            place.mkdir()
            (place / "platform").write_text(_platform(runtime, name), encoding="utf-8")
        if not (folder / _SETTINGS).exists():
            shutil.copyfile(_HERE / _SETTINGS, folder / _SETTINGS)
    except OSError as exc:
        raise UsageError(
            f"cannot write {folder}: {exc.strerror or exc}", hint="name another folder"
        ) from exc


def _check(folder: Path) -> None:
    """Refuse a folder that has anything but what was written by us: some of it is deleted."""
    if not folder.is_dir() or not any(folder.iterdir()):
        return
    mark = template().split(" --", 1)[0]
    path = folder / _TEMPLATE
    if not (path.is_file() and path.read_bytes().startswith(mark.encode())):
        raise UsageError(
            f"{folder} has other files than those of a stack", hint="name a new folder"
        )


def _platform(runtime: str, arch: str) -> str:
    """Return what uv needs to be told to install for a function."""
    version = runtime.removeprefix("python")
    return f"--python-version {version} --python-platform {_MACHINES[arch]}-manylinux2014\n"


def reachable() -> set[Path]:
    """Return every file of the package that a function imports, at once or later."""
    found: set[Path] = set()
    waiting = [f"{_PACKAGE.name}.{name}" for name in _ROOTS]
    while waiting:
        name = waiting.pop()
        path = _file_of(name)
        if path is None or path in found:
            continue
        found.add(path)
        waiting.append(name.rpartition(".")[0])
        waiting.extend(_imports_of(ast.parse(path.read_bytes())))
    return found


def _file_of(module: str) -> Path | None:
    """Return the file of one of our modules; None for what is none."""
    head, *rest = module.split(".")
    stem = _PACKAGE.joinpath(*rest)
    files = [stem / "__init__.py", stem.with_suffix(".py")] if head == _PACKAGE.name else []
    return next((path for path in files if path.is_file()), None)


def _imports_of(tree: ast.AST) -> Iterator[str]:
    """Yield what a module imports, and what only a type checker would not."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        yield from _imports_of(node)
