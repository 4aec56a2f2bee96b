"""A member of a family can be taken away: its own files and its table line, and nothing else."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.house.measures import REPOSITORY
from tests.house.scratch import Scratch, scratch_copy


@dataclass(frozen=True, slots=True)
class Member:
    """What belongs to a member of a family alone."""

    paths: tuple[str, ...]
    """Files and folders, tests included; a pattern stands for all that it matches."""
    table_lines: str
    """Regular expression of its lines in tables."""

    def files(self) -> list[str]:
        """Return the files and folders that are there."""
        found = [path for pattern in self.paths for path in REPOSITORY.glob(pattern)]
        return sorted(path.relative_to(REPOSITORY).as_posix() for path in found)


def _client(name: str, *more: str) -> Member:
    paths = (f"serverless_bench/clients/{name}.py", f"tests/unit/clients/test_{name}*", *more)
    return Member(paths, rf'"{name}": |serverless_bench\.clients\.{name}"')


def _executor(name: str) -> Member:
    paths = (f"serverless_bench/executors/{name}*.py", f"tests/unit/executors/test_{name}*.py")
    return Member(paths, rf'"{name}": "serverless_bench|serverless_bench\.executors\.{name}"')


def _wing(name: str) -> Member:
    paths = (f"serverless_bench/{name}", f"tests/unit/{name}")
    return Member(paths, rf"serverless_bench\.{name}\b|\"{name}\.")


def _workload(name: str) -> Member:
    paths = (
        *(f"serverless_bench/workloads/{name}", f"serverless_bench/workloads/{name}.py"),
        *(f"serverless_bench/cli/commands/{name}.py", f"tests/unit/workloads/{name}"),
        f"tests/unit/workloads/test_{name}.py",
    )
    return Member(paths, rf'"{name}": |serverless_bench\.workloads\.{name}\b')


MEMBERS: Final = {
    "wing lab": _wing("lab"),
    "wing studies": _wing("studies"),
    "client minio": _client("minio"),
    "executor dask": _executor("dask"),
    "executor inline": _executor("inline"),
    "executor lithops": _executor("lithops"),
    "executor workers": _executor("workers"),
}
ONE_OF_EACH: Final = ("wing lab", "wing studies", "client minio", "executor dask")
EXAMPLES: Final = {"workload array": _workload("array"), "workload contend": _workload("contend")}
"""Members that unit tests of other rooms use as examples: commands and types do without them."""


def _without(members: Iterable[str], root: Path) -> Scratch:
    scratch = scratch_copy(root)
    for name in members:
        member = {**MEMBERS, **EXAMPLES}[name]
        scratch.remove(member.files(), member.table_lines)
    scratch.install()
    return scratch


def _check_commands_and_types(scratch: Scratch) -> None:
    """See that the command line works, and that no type or import is missing."""
    assert "Run:" in scratch.run("-m", "serverless_bench", "--help")
    job = ("--number", "2", "--mb", "1", "--run-dir", "runs")
    assert "2 of 2 functions ok" in scratch.run("-m", "serverless_bench", "write", *job)
    assert "2 of 2" in scratch.run("-m", "serverless_bench", "report", "--run-dir", "runs")
    scratch.run("-m", "mypy", "serverless_bench")


def test_one_of_each_family_and_both_wings_can_go_together(tmp_path: Path) -> None:
    scratch = _without([*ONE_OF_EACH, *EXAMPLES], tmp_path)
    _check_commands_and_types(scratch)
    # `make full` runs them; that they can be imported shows most of what is missing.
    scratch.run("-m", "pytest", "--collect-only", "-q", "tests/unit")


@pytest.mark.full
@pytest.mark.parametrize("member", MEMBERS)
def test_each_member_can_go(member: str, tmp_path: Path) -> None:
    scratch = _without([member], tmp_path)
    _check_commands_and_types(scratch)
    scratch.run("-m", "pytest", "-q", "-x", "-n", "2", "tests/unit")


def test_every_member_has_files() -> None:
    assert all(member.files() for member in (*MEMBERS.values(), *EXAMPLES.values()))
