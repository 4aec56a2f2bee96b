"""The core and the features: which code is which, and what each says of the others."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from tests.house.measures import NAME, PACKAGE, REPOSITORY, is_statement, modules, trees

FEATURES: Final = f"{NAME}.features"
TABLE: Final = PACKAGE / "features" / "__init__.py"
"""The table of the features: it names all of them, and no other file of the core does."""


class Import(NamedTuple):
    """A line of a module that leads to a feature."""

    path: str
    line: int
    feature: str


def features() -> list[str]:
    """Return the names of the features: folders below ``features/``."""
    return sorted(path.parent.name for path in TABLE.parent.glob("*/__init__.py"))


def feature_of(path: Path) -> str | None:
    """Return the feature that a module belongs to; None for the core."""
    parts = path.relative_to(PACKAGE).parts
    return parts[1] if parts[0] == "features" and len(parts) > 2 else None


@cache
def imports() -> tuple[Import, ...]:
    """Return every line that leads to a feature from outside of its folder.

    Imports in functions and for type checkers count, and strings that name a module of a feature,
    as an entry point or a command does. The table itself does not.
    """
    found = [
        Import(path.relative_to(REPOSITORY).as_posix(), line, name)
        for path in modules()
        if path != TABLE and _may_name_another(path)
        for line, name in {*_named(ast.parse(path.read_text("utf-8")))}
        if name != feature_of(path)
    ]
    return tuple(sorted(found))


def _may_name_another(path: Path) -> bool:
    """Tell whether the text of a module holds the place of a feature besides its own.

    Every process that collects the tests asks, and would take seconds to parse the package.
    """
    text = path.read_text("utf-8")
    if re.search(rf"\b{NAME} import\b", text) or re.search(rf"{FEATURES}(?!\.\w)", text):
        return True
    return not {*re.findall(rf"{FEATURES}\.(\w+)", text)} <= {feature_of(path)}


def of_the_core() -> list[Import]:
    """Return the lines of the core that lead to a feature."""
    return [line for line in imports() if feature_of(REPOSITORY / line.path) is None]


def removed_with(feature: str) -> frozenset[str]:
    """Return a feature and those that import it, directly or through others."""
    found, waiting = {feature}, [feature]
    while waiting:
        used = waiting.pop()
        users = {feature_of(REPOSITORY / line.path) for line in imports() if line.feature == used}
        new = {user for user in users if user is not None} - found
        found |= new
        waiting += new
    return frozenset(found)


def statements() -> dict[str, int]:
    """Return the number of statements of each feature, docstrings not counted."""
    counts = dict.fromkeys(features(), 0)
    for path, tree in trees().items():
        if (name := feature_of(path)) is not None:
            counts[name] += sum(map(is_statement, ast.walk(tree)))
    return counts


def _named(tree: ast.AST) -> Iterator[tuple[int, str]]:
    names = {*features()}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            modules = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            modules = [node.value] if "\n" not in node.value else []
        else:
            continue
        for module in modules:
            head, _, rest = module.partition(f"{FEATURES}.")
            if not head and (name := rest.split(".")[0].split(":")[0]) in names:
                yield node.lineno, name
