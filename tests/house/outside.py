"""Lines of the core that only one feature needs, by symbol.

    python -m tests.house.outside

A definition of the core counts for a feature if every mention of its name lies in the folder of
that feature, in another definition that counts, or in itself: without the feature nothing would
use it. Names are compared as text, so a name that is defined twice counts for nobody.
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from tests.house.features import feature_of, features
from tests.house.measures import PACKAGE, trees

_WORD: Final = re.compile(r"[A-Za-z_]\w*")
_LONGEST_NAME: Final = 60
"""Longer texts without blanks name nothing."""


class Definition(NamedTuple):
    """A function, class, constant or field of the core."""

    name: str
    path: Path
    first: int
    last: int

    def holds(self, path: Path, line: int) -> bool:
        """Tell whether a line belongs to the definition."""
        return path == self.path and self.first <= line <= self.last


def lines_outside() -> Mapping[str, int]:
    """Return the number of lines of the core that only a feature needs, by feature."""
    return {name: sum(d.last - d.first + 1 for d in needed_by(name)) for name in features()}


def needed_by(feature: str) -> list[Definition]:
    """Return the definitions of the core that only a feature needs."""
    found: list[Definition] = []

    def goes(path: Path, line: int) -> bool:
        return feature_of(path) == feature or any(d.holds(path, line) for d in found)

    waiting = {*_mentioned_by()[feature]} & _definitions().keys()
    while waiting:
        name = waiting.pop()
        definition = _definitions()[name]
        others = (at for at in _mentions()[name] if not definition.holds(*at))
        if definition not in found and all(goes(*at) for at in others):
            found.append(definition)
            waiting |= _names_in(definition) & _definitions().keys()
    # A method of a class that goes is counted with it.
    return [d for d in found if not any(o != d and o.holds(d.path, d.first) for o in found)]


def _names_in(definition: Definition) -> set[str]:
    named = _names_of(definition.path)
    return {name for name, line in named if definition.holds(definition.path, line)}


@cache
def _mentions() -> Mapping[str, list[tuple[Path, int]]]:
    found = defaultdict(list)
    for path in trees():
        for name, line in _names_of(path):
            found[name].append((path, line))
    return found


@cache
def _mentioned_by() -> Mapping[str, set[str]]:
    """Return the names that each feature mentions."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for path in trees():
        if (feature := feature_of(path)) is not None:
            found[feature] |= {name for name, _ in _names_of(path)}
    return found


@cache
def _names_of(path: Path) -> list[tuple[str, int]]:
    return [*_names(trees()[path])]


def _names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute):
            yield node.attr, node.end_lineno or node.lineno
        elif isinstance(node, ast.alias):
            yield node.name.rpartition(".")[2], node.lineno
        elif isinstance(node, ast.arg | ast.keyword) and node.arg:
            yield node.arg, node.lineno
        elif isinstance(node, ast.Constant) and _may_name(node.value):
            yield from ((word, node.lineno) for word in _WORD.findall(str(node.value)))


def _may_name(value: object) -> bool:
    return isinstance(value, str) and len(value) < _LONGEST_NAME and not re.search(r"\s", value)


@cache
def _definitions() -> Mapping[str, Definition]:
    """Return the definitions of the core by name, but for names that are defined twice."""
    found = defaultdict(list)
    for path, tree in trees().items():
        if feature_of(path) is None:
            for definition in _defined_in(tree, path):
                found[definition.name].append(definition)
    return {
        name: same[0]
        for name, same in found.items()
        if len(same) == 1 and not name.startswith("__")
    }


def _defined_in(tree: ast.Module, path: Path) -> Iterator[Definition]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            yield Definition(node.name, path, first, node.end_lineno or first)
        if isinstance(node, ast.Module | ast.ClassDef):
            for statement in node.body:
                yield from _assigned_in(statement, path)


def _assigned_in(statement: ast.stmt, path: Path) -> Iterator[Definition]:
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    else:
        return
    last = statement.end_lineno or statement.lineno
    names = [target.id for target in targets if isinstance(target, ast.Name)]
    yield from (Definition(name, path, statement.lineno, last) for name in names)


if __name__ == "__main__":
    for feature, lines in lines_outside().items():
        sys.stdout.write(f"{feature}: {lines} lines\n")
        for path, first, last, name in sorted((d[1], *d[2:], d[0]) for d in needed_by(feature)):
            place = path.relative_to(PACKAGE)
            sys.stdout.write(f"    {last - first + 1} {place}:{first} {name}\n")
