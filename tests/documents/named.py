"""Files, modules and functions that documents name, and whether they exist."""

import re
from collections.abc import Iterator
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from docs.make_site import complete
from tests.documents.quoted import BLOCK, ROOT

FOREIGN: Final = frozenset({"os_benchmark.py", "s3_benchmark.py"})
"""Files of other tools."""
FOLDERS: Final = (
    *(".ci", ".github", "benchmarks", "docs", "examples", "notebooks"),
    *("requirements", "serverless_bench", "tests"),
)
"""Beginnings of paths from the root."""
_PACKAGE: Final = ROOT / "serverless_bench"
_PATH: Final = re.compile(r"[\w.*-]+(/[\w.*-]+)*/?")
_DOTTED: Final = re.compile(r"(?<![\w/.-])(?:serverless_bench|tests)(?:\.\w+)+")
_PLACEHOLDER: Final = re.compile(r"\b(FAMILY|NAME|NNNN|ROOM)\b")


def rooms() -> list[str]:
    """Return the names of the package's folders."""
    return sorted(path.parent.name for path in _PACKAGE.glob("*/__init__.py"))


def paths(page: Path) -> Iterator[str]:
    """Yield texts in backticks that look like paths of this repository."""
    first = {*FOLDERS, *rooms()}
    for span in re.findall(r"`([^`\s]+)`", BLOCK.sub("", complete(page))):
        is_ours = span.partition("/")[0] in first if "/" in span else span.endswith(".py")
        if is_ours and _PATH.fullmatch(span) and span not in FOREIGN:
            yield span


def exists(name: str, page: Path) -> bool:
    """Tell whether a path exists: from the root, in the package, or beside the page.

    A file that is named without its folder may be anywhere.
    """
    pattern = _PLACEHOLDER.sub("*", name)
    if "/" not in pattern:
        return any(next((ROOT / at).rglob(pattern), None) for at in FOLDERS)
    pattern = pattern.rstrip("/")
    return any(next(at.glob(pattern), None) for at in (ROOT, _PACKAGE, page.parent))


def dotted(page: Path) -> Iterator[str]:
    """Yield every name that begins with that of the package, or of the tests.

    Except groups of entry points, which have such names, too, but cannot be imported.
    """
    text = complete(page).replace('entry-points."serverless_bench.', "")
    return (name for name in _DOTTED.findall(text) if not _PLACEHOLDER.search(name))


def names_something(name: str) -> bool:
    """Tell whether a dotted name is a module, or an attribute of one, or of a class in one."""
    module, attributes = name, list[str]()
    while _spec(module) is None:
        module, _, attribute = module.rpartition(".")
        attributes.insert(0, attribute)
    found: object = import_module(module)
    return all((found := getattr(found, attribute, None)) is not None for attribute in attributes)


def _spec(module: str) -> ModuleSpec | None:
    try:
        return find_spec(module)
    except ModuleNotFoundError:
        return None
