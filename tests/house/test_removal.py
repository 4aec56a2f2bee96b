"""A feature can be removed with its folder and its lines in the tables alone.

Features that import it go with it. `make full` removes each, and checks help, types and tests of
the rest. `make test` checks that no other unit test needs it to be loaded.
"""

import ast
import json
import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from serverless_bench.base.clock import wall_ns
from serverless_bench.base.units import NS_PER_S
from serverless_bench.clients import CLIENTS
from serverless_bench.features import COMMANDS, PLUGINS, PUBLIC
from serverless_bench.job.meaning import DECLARED, declared_in
from serverless_bench.job.workload import WORKLOADS
from tests.house.features import FEATURES, TABLE, features, removed_with
from tests.house.measures import NAME, REPOSITORY
from tests.house.members import EVERY_CLIENT, EVERY_WORKLOAD
from tests.house.needs import unsaid
from tests.house.removed import whole
from tests.house.scratch import Scratch, scratch_copy
from tests.selection import files_of_tests, is_unit

_TABLE: Final = TABLE.relative_to(REPOSITORY).as_posix()
_A_DAY_NS: Final = 24 * 3600 * NS_PER_S
TOGETHER: Final = {
    "+".join(sorted(name for name in removed if removed_with(name) == removed)): removed
    for removed in sorted({*map(removed_with, features())}, key=sorted)
}
"""Features that go together, by those that all others of them import."""
TURNS: Final = 3
"""Nights after which all have had their turn: running all tests of a rest takes minutes."""
HELP: Final = """
from serverless_bench.cli.main import command_names, commands, open_command

def say(command, *words):
    commands.main([*words, "--help"], "sbench", standalone_mode=False)
    for name, inner in getattr(command, "commands", {}).items():
        say(inner, *words, name)

for name in command_names():
    say(open_command(name), name)
"""
"""Prints the help of all commands."""


def _table_lines(name: str) -> str:
    """Return the regular expression of a feature's lines in tables."""
    commands = "|".join(_commands([name]))
    lines = (
        # Places of plugins and of public names, their types, and lists with a line for each.
        *(rf'"{name}\.[\w.]+:', rf'[:,] "{name}\.\w'),
        rf"^ +from serverless_bench\.features\.{name}[. ]",
        rf'^(?:[\w-]+ =)? *"serverless_bench\.features\.{name}\.[^"]+",?$',
        *([rf'^    "({commands})": "'] if commands else []),
        *([rf"^{name} = \[", rf"serverless-bench\[{name}\]"] if name in CLIENTS else []),
    )
    return "|".join(lines)


def _commands(names: Iterable[str]) -> list[str]:
    return [name for name, command in COMMANDS.items() if command.place.split(".")[0] in {*names}]


def _settings(names: Iterable[str]) -> set[str]:
    """Return the settings that these features declare."""
    places = PLUGINS["settings"].items()
    declared = [name for name, place in places if place.partition(".")[0] in {*names}]
    return {setting for name in declared for setting in declared_in(DECLARED.load(name))}


def _parts(names: Iterable[str]) -> set[str]:
    """Return the parts of a report that these features define."""
    places = PLUGINS["parts"].items()
    return {name for name, place in places if place.partition(".")[0] in {*names}}


def _words(names: Iterable[str]) -> set[str]:
    """Return the names by which tests and documents know these features."""
    removed = {*names}
    places = [*PLUGINS.values(), {name: command.place for name, command in COMMANDS.items()}]
    places.append(PUBLIC)
    plugins = {
        name
        for family in places
        for name, place in family.items()
        if place.partition(".")[0] in removed
    }
    return {word.replace("_", "-") for word in {*removed, *plugins, *_settings(removed)}}


def _without(names: Iterable[str], root: Path) -> Scratch:
    scratch = scratch_copy(root, _words(names))
    for name in names:
        scratch.remove([f"serverless_bench/features/{name}"], _table_lines(name))
    return scratch


def _check(scratch: Scratch, removed: Iterable[str]) -> None:
    """See that the command line works, without a word of them, and that no type is missing."""
    scratch.install()
    text = scratch.run("-m", "serverless_bench", "--help")
    assert "Run:" in text
    listed = re.findall(r"^  ([\w-]+) ", text, re.MULTILINE)
    assert not {*listed}.intersection(_commands(removed))
    text = scratch.run("-c", HELP)
    assert not [name for name in removed if f"features/{name}/" in text]
    text = scratch.run("-m", "serverless_bench", "mixed", "--help")
    flags = {f"--{name.replace('_', '-')}" for name in _settings(removed)}
    assert not flags.intersection(re.findall(r"--[\w-]+", text))
    job = ("--number", "2", "--mb", "1", "--run-dir", "runs")
    assert "2 of 2 functions ok" in scratch.run("-m", "serverless_bench", "write", *job)
    report = ("report", "--run-dir", "runs", "--format", "json")
    keys = {*json.loads(scratch.run("-m", "serverless_bench", *report))}
    assert not keys.intersection(_parts(removed))
    table = scratch.run("-c", "from docs.make_settings import table\nprint(table())")
    assert not [name for name in _settings(removed) if f"| `{name}` |" in table]
    index = scratch.run("-c", "from docs.make_site import *\nprint(complete(INDEX))")
    assert not [name for name in removed if f"features/{name}/" in index]
    # All pages, with their tables.
    scratch.run("-c", "from docs.make_site import linked\nprint(*linked())")
    scratch.run("-c", "from importlinter.cli import lint_imports_command as check\ncheck()")
    scratch.check_types()


@pytest.mark.full
def test_the_core_stands_alone(tmp_path: Path) -> None:
    scratch = _without(features(), tmp_path)
    # The block has lost all its lines.
    block = "if TYPE_CHECKING:\n"
    scratch.replace(_TABLE, block, f"{block}    pass\n")
    _check(scratch, features())
    _test(scratch, run=False)


@pytest.mark.full
@pytest.mark.parametrize("which", TOGETHER)
def test_each_feature_can_go(which: str, tmp_path: Path) -> None:
    scratch = _without(TOGETHER[which], tmp_path)
    _check(scratch, TOGETHER[which])
    has_its_turn = ([*TOGETHER].index(which) + wall_ns() // _A_DAY_NS) % TURNS == 0
    _test(scratch, run=has_its_turn)


def _test(scratch: Scratch, *, run: bool) -> None:
    """See that all tests can be loaded; run unit tests, and those of documents."""
    scratch.run("-m", "pytest", "-q", "-m", "", "--collect-only")
    if run:
        quoted = "tests/integration/documents/test_quoted_commands.py"
        files = [path for path in files_of_tests(scratch.root) if is_unit(path)]
        scratch.run("-m", "pytest", "-q", "-x", "-n", "2", quoted, *map(str, files))


def test_no_other_unit_test_needs_a_feature_to_be_loaded() -> None:
    wrong = [
        (path.as_posix(), name)
        for path in (REPOSITORY / "conftest.py", *filter(is_unit, files_of_tests()))
        for name in _loaded(path)
        if _feature(path) not in removed_with(name)
    ]
    assert wrong == []


def test_a_test_says_which_members_it_needs() -> None:
    wrong = [
        (path.relative_to(REPOSITORY).as_posix(), *found)
        for path in files_of_tests()
        for found in unsaid(path, _feature(path), _loaded(path))
    ]
    assert wrong == [], "@uses of tests.house.members"


def _feature(path: Path) -> str | None:
    """Return the feature that a file of tests lies in."""
    parts = path.relative_to(REPOSITORY).parts
    return parts[2] if parts[0] == NAME else None


@cache
def _loaded(path: Path) -> frozenset[str]:
    """Return the features that have to be there for a file of tests to be loaded."""
    found: set[str] = set()
    seen: set[Path] = set()
    waiting = [path]
    while waiting:
        seen.add(at := waiting.pop())
        for name in _imports(at):
            base = REPOSITORY.joinpath(*name.split("."))
            files = {base.with_suffix(".py"), base / "__init__.py"} - seen
            if name.startswith(f"{FEATURES}."):
                found.add(name.split(".")[2])
            if {"docs", "tests"}.intersection(name.split(".")):
                waiting += [file for file in files if file.is_file()]
    return frozenset(found.intersection(features()))


@cache
def _imports(path: Path) -> Sequence[str]:
    """Return the names that a module imports when it is loaded."""
    names: list[str] = []
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names += [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
    return names


@whole
def test_members_named_by_tests_exist() -> None:
    assert {*EVERY_CLIENT} == {f"client {name}" for name in CLIENTS}
    assert {*EVERY_WORKLOAD} == {f"workload {name}" for name in WORKLOADS}


def test_every_feature_goes_with_some() -> None:
    assert {name for names in TOGETHER for name in names.split("+")} == {*features()}
