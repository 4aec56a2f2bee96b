"""A feature can be removed with its folder and its lines in the table alone.

`make full` removes each, and some together, and checks types and tests of the rest. `make test`
checks that nothing else imports a member, and counts what the core still imports of features.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from serverless_bench.clients import CLIENTS
from serverless_bench.features import COMMANDS
from serverless_bench.job.workload import WORKLOADS
from tests.house.features import features
from tests.house.measures import REPOSITORY, trees
from tests.house.members import EVERY_CLIENT, EVERY_WORKLOAD
from tests.house.scratch import TABLES, Scratch, scratch_copy


@dataclass(frozen=True, slots=True)
class Member:
    """Parts that only a feature has."""

    paths: tuple[str, ...]
    """Files and folders, tests included; a pattern stands for all that it matches."""
    table_lines: str
    """Regular expression of its lines in tables."""

    def files(self) -> list[str]:
        """Return the existing files and folders."""
        found = [path for pattern in self.paths for path in REPOSITORY.glob(pattern)]
        return sorted(path.relative_to(REPOSITORY).as_posix() for path in found)


def _feature(name: str, *tests: str) -> Member:
    commands = "|".join(
        command for command, (_, _, place, _) in COMMANDS.items() if place.startswith(f"{name}.")
    )
    lines = (
        # Places of plugins and of public names, their types, and lists with a line for each.
        *(rf'"{name}\.[\w.]+:', rf': "{name}\.\w'),
        rf"^ +from serverless_bench\.features\.{name}\.",
        rf'^ +"serverless_bench\.features\.{name}\.\w+",$',
        *([rf'^    "({commands})": "'] if commands else []),
        *([rf"^{name} = \["] if name in CLIENTS else []),
    )
    return Member((f"serverless_bench/features/{name}", *tests), "|".join(lines))


MEMBERS: Final = {
    **{
        name: _feature(name, f"tests/unit/clients/test_{name}*.py")
        for name in ("awscrt", "minio", "obstore", "s3dlio", "s3torchconnector")
    },
    **{
        name: _feature(name, f"tests/unit/executors/test_{name}*.py")
        for name in ("aws_lambda", "dask", "lithops", "workers")
    },
    **{
        name: _feature(name, f"tests/unit/workloads/{name}", f"tests/unit/workloads/test_{name}.py")
        for name in ("array", "noop", "replay", "shuffle")
    },
    "parquet": _feature("parquet", "tests/unit/workloads/columns"),
    **{name: _feature(name, f"tests/unit/{name}") for name in ("history", "studies")},
    **{name: _feature(name, f"tests/unit/lab/{name}") for name in ("audit", "simulation")},
    "localstack": _feature("localstack", "tests/unit/lab/test_localstack*.py"),
}
"""Features that no other one imports, and neither does the core: the others follow."""
ONE_OF_EACH: Final = ("dask", "minio", "replay", "studies")


def _without(members: Iterable[str], root: Path) -> Scratch:
    scratch = scratch_copy(root)
    for name in members:
        member = MEMBERS[name]
        scratch.remove(member.files(), member.table_lines)
    scratch.install()
    return scratch


def _check_commands_and_types(scratch: Scratch) -> None:
    """See that the command line works, and that no type or import is missing."""
    assert "Run:" in scratch.run("-m", "serverless_bench", "--help")
    job = ("--number", "2", "--mb", "1", "--run-dir", "runs")
    assert "2 of 2 functions ok" in scratch.run("-m", "serverless_bench", "write", *job)
    assert "2 of 2" in scratch.run("-m", "serverless_bench", "report", "--run-dir", "runs")
    scratch.check_types()


@pytest.mark.full
def test_several_can_go_together(tmp_path: Path) -> None:
    scratch = _without(ONE_OF_EACH, tmp_path)
    _check_commands_and_types(scratch)
    # Those for single members run them; importing them finds most missing names.
    scratch.run("-m", "pytest", "--collect-only", "-q", "tests/unit")
    index = scratch.run("-c", "from docs.make_site import *; print(complete(INDEX))")
    assert [name for name in ("Arrays", "Replay", "Studies") if f"[{name}]" in index] == ["Arrays"]


@pytest.mark.full
def test_the_core_stands_alone(tmp_path: Path) -> None:
    scratch = scratch_copy(tmp_path)
    for name in features():
        member = _feature(name)
        scratch.remove(member.files(), member.table_lines)
    # The block has lost all its lines.
    block = "if TYPE_CHECKING:\n"
    scratch.replace("serverless_bench/features/__init__.py", block, f"{block}    pass\n")
    scratch.install()
    _check_commands_and_types(scratch)


@pytest.mark.full
@pytest.mark.parametrize("member", MEMBERS)
def test_each_member_can_go(member: str, tmp_path: Path) -> None:
    scratch = _without([member], tmp_path)
    _check_commands_and_types(scratch)
    scratch.run("-m", "pytest", "-q", "-x", "-n", "2", "tests/unit")


def _imports(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the imported names, each with its line: of tests, only what their collection needs."""
    text = path.read_text("utf-8")
    tree, lines = trees().get(path) or ast.parse(text), text.splitlines()
    for node in tree.body if "tests" in path.parts else ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from ((name, lines[node.lineno - 1]) for name in names)


def test_nothing_else_imports_a_member() -> None:
    paths = [path for at in ("serverless_bench", "tests/unit") for path in _modules_below(at)]
    imports = {path: [*_imports(REPOSITORY / path)] for path in paths}
    wrong = []
    for title, member in MEMBERS.items():
        files = member.files()
        own = tuple(file if file.endswith(".py") else f"{file}/" for file in files)
        modules = tuple(f"{file.removesuffix('.py').replace('/', '.')}." for file in files)
        wrong += [
            (title, path, name)
            for path, names in imports.items()
            if not path.startswith(own)
            for name, line in names
            if f"{name}.".startswith(modules)
            and not (path in TABLES and re.search(member.table_lines, line))
        ]
    assert wrong == []


def _modules_below(folder: str) -> list[str]:
    found = (REPOSITORY / folder).rglob("*.py")
    return sorted(path.relative_to(REPOSITORY).as_posix() for path in found)


def test_members_named_by_tests_exist() -> None:
    assert {*EVERY_CLIENT} == {f"client {name}" for name in CLIENTS}
    assert {*EVERY_WORKLOAD} == {f"workload {name}" for name in WORKLOADS}


def test_every_member_has_files() -> None:
    assert all(member.files() for member in MEMBERS.values())
