"""A separate process prints the same as the command in the process of the tests."""

from pathlib import Path

import pytest

from serverless_bench.cli.main import command_names
from tests.commands.command import Sbench
from tests.data import runs
from tests.house.examples import examples

# Three simultaneous operations in one thread are impossible, so the report has no headline.
SAID: dict[str, tuple[tuple[str, ...], int]] = {
    **{name: found[:2] for name, found in examples("COMMANDS").items()},
    "write": (("--size", "1 apple"), 2),
    "read": (("--number", "4"), 2),
    "mixed": (("--mix", "get=1,sing=2", "--operations", "5"), 2),
    "ls": (("--run-dir", "."), 0),
    "report": (("run", "--format", "json"), 11),
    "resume": (("nowhere",), 8),
    "clean": (("nowhere",), 8),
    "store": (("status",), 0),
}


@pytest.fixture
def here(tmp_path: Path) -> Sbench:
    """The command where a run directory is."""
    record = runs.record(0, [runs.operation(index) for index in range(3)])
    runs.saved(tmp_path / "run", [runs.outcome(record)])
    return Sbench(tmp_path, {"SBENCH_STORE_DIR": str(tmp_path / "store")})


@pytest.mark.parametrize("command", command_names())
def test_a_process_says_the_same(here: Sbench, command: str) -> None:
    arguments, code = SAID[command]
    apart, together = here.apart(command, *arguments), here(command, *arguments)
    assert apart == together
    assert apart.code == code
    assert apart.out or apart.err
