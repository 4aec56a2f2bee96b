"""Members of families that a test needs, and those that it says it needs.

Read from its source: commands that it calls, workloads, executors and clients that it names, and
imports. A test says what it needs with ``uses``, or by an import, which skips it in a scratch copy.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from serverless_bench.features import COMMANDS, PLUGINS
from serverless_bench.job.meaning import DECLARED, Options, declared_in
from tests.house.features import FEATURES, removed_with
from tests.house.members import EVERY_CLIENT, EVERY_WORKLOAD, RIGS

CALLING: Final = frozenset({"call", "main", "on_terminal", "sbench", "started"})
"""Functions of tests whose first argument is a command."""
LOOKING: Final = frozenset({"load_of", "open_workload", "workload_of"})
"""Functions whose first argument is a workload."""
FAMILIES: Final[Mapping[str, str]] = {
    "client": "clients",
    "executor": "executors",
    "format": "reporters",
    "workload": "workloads",
}
OPTIONS: Final[Mapping[str, str]] = {
    setting: place.partition(".")[0]
    for name, place in PLUGINS["settings"].items()
    if issubclass(DECLARED.load(name), Options)
    for setting in declared_in(DECLARED.load(name))
}
"""Features of executors and policies by their settings."""
AMBIGUOUS: Final = frozenset({"arch", "function", "memory", "probe"})
"""Settings whose flags other commands have, too."""
LISTS: Final = {"RIGS": RIGS, "EVERY_CLIENT": EVERY_CLIENT, "EVERY_WORKLOAD": EVERY_WORKLOAD}
Function = ast.FunctionDef


def unsaid(path: Path, feature: str | None, loaded: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Yield tests of a file, each with a feature that it needs and does not say.

    Parameters
    ----------
    path
        The file.
    feature
        Feature that it lies in; None for the core.
    loaded
        Features that are imported when the file is loaded.
    """
    tree = ast.parse(path.read_text("utf-8"))
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, Function)}
    of_file = {*loaded, *_guards(tree.body), *([feature] if feature else [])}
    for name, test in functions.items():
        if name.startswith("test"):
            parts = [*_with_helpers(test, functions)]
            imported = {each for part in parts for each in part.imported}
            declared = of_file | _guards(test.decorator_list) | imported
            needed = {each for part in parts for each in part.needed} - declared
            yield from ((name, each) for each in sorted(needed) if not _goes_with(each, declared))


def _goes_with(feature: str, declared: set[str]) -> bool:
    """Tell whether a test is skipped, or removed, if a feature is."""
    return not declared.isdisjoint(_removed_with(feature))


_removed_with = cache(removed_with)


class Part(NamedTuple):
    """A function: names in it, features whose members it names, and features that it imports."""

    names: frozenset[str]
    needed: frozenset[str]
    imported: frozenset[str]


def _with_helpers(test: Function, functions: Mapping[str, Function]) -> Iterator[Part]:
    seen, waiting = {test.name}, [test]
    while waiting:
        yield (part := _part(waiting.pop()))
        new = part.names.intersection(functions) - seen
        seen |= new
        waiting += [functions[name] for name in new]


@cache
def _part(function: Function) -> Part:
    nodes = [*ast.walk(function)]
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    names |= {argument.arg for argument in function.args.args}
    return Part(frozenset(names), frozenset(_needed(nodes)), frozenset(_imported(nodes)))


def _needed(nodes: Sequence[ast.AST]) -> Iterator[str]:
    """Yield the features whose members a function names."""
    asked = {*_compared(nodes)}
    for family, name in _named(nodes):
        place = PLUGINS[family].get(name) if family in PLUGINS else _place(name)
        if place and name not in asked:
            yield place.partition(".")[0]
    yield from (OPTIONS[name] for name in _options(nodes) if name in OPTIONS)


def _options(nodes: Sequence[ast.AST]) -> Iterator[str]:
    """Yield settings of executors and policies: keys of ``options=``, and flags."""
    for node in nodes:
        if isinstance(node, ast.keyword) and node.arg == "options":
            keys = node.value.keys if isinstance(node.value, ast.Dict) else ()
            yield from _texts(keys)
        elif isinstance(node, ast.Call | ast.List | ast.Tuple):
            words = node.args if isinstance(node, ast.Call) else node.elts
            for flag in _texts(words):
                if flag.startswith("--") and (name := flag[2:].replace("-", "_")) not in AMBIGUOUS:
                    yield name


def _place(command: str) -> str | None:
    return COMMANDS[command].place if command in COMMANDS else None


def _named(nodes: Sequence[ast.AST]) -> Iterator[tuple[str, str]]:
    """Yield families and names of members that a function names."""
    family = {**dict.fromkeys(CALLING, "commands"), **dict.fromkeys(LOOKING, "workloads")}
    for node in nodes:
        if isinstance(node, ast.Call):
            called = getattr(node.func, "id", getattr(node.func, "attr", ""))
            if called in family:
                yield from ((family[called], text) for text in _texts(_first(node.args)))
            named = [(keyword.arg, keyword.value) for keyword in node.keywords]
            yield from _pairs(named)
            yield from _flags(node.args)
        elif isinstance(node, ast.List | ast.Tuple):
            yield from _flags(node.elts)
        elif isinstance(node, ast.Dict):
            keys = (text for key in node.keys for text in [*_texts([key]), ""][:1])
            yield from _pairs([*zip(keys, node.values, strict=True)])


def _first(arguments: Sequence[ast.expr]) -> Sequence[ast.expr]:
    first = arguments[:1]
    return first[0].elts[:1] if first and isinstance(first[0], ast.List | ast.Tuple) else first


def _flags(words: Sequence[ast.expr]) -> Iterator[tuple[str, str]]:
    for flag, value in pairwise(words):
        yield from _pairs([(text.removeprefix("--"), value) for text in _texts([flag])])


def _pairs(pairs: Sequence[tuple[str | None, ast.expr]]) -> Iterator[tuple[str, str]]:
    for key, value in pairs:
        if key is not None and key in FAMILIES:
            yield from ((FAMILIES[key], text) for text in _texts([value]))


def _texts(nodes: Sequence[ast.expr | None]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _compared(nodes: Sequence[ast.AST]) -> Iterator[str]:
    """Yield members that a function asks for, as in ``"check" in COMMANDS``."""
    for node in nodes:
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            yield from _texts([node.left])


def _imported(nodes: Sequence[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{FEATURES}."):
            yield str(node.module).split(".")[2]


def _guards(nodes: Sequence[ast.AST]) -> set[str]:
    """Return the features of the members that ``uses`` names, in decorators or in a file's mark."""
    marks = [node for node in nodes if isinstance(node, ast.expr | ast.Assign)]
    calls = [node for mark in marks for node in ast.walk(mark) if isinstance(node, ast.Call)]
    members = [
        member
        for call in calls
        if getattr(call.func, "id", "") == "uses"
        for argument in call.args
        for member in (*_texts([argument]), *_listed(argument))
    ]
    return {_feature_of(*member.split()) for member in members}


def _listed(argument: ast.expr) -> Sequence[str]:
    name = ast.unparse(argument.value) if isinstance(argument, ast.Starred) else ""
    return LISTS.get(name, ())


def _feature_of(family: str, name: str) -> str:
    place = PLUGINS[FAMILIES[family]].get(name, "") if family in FAMILIES else name
    return place.partition(".")[0]
