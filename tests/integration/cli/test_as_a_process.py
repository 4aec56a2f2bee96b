"""A separate process prints the same as the command in the process of the tests."""

from pathlib import Path

import pytest

from serverless_bench.cli.main import command_names
from tests.commands.command import Sbench
from tests.data import runs

# Three simultaneous operations in one thread are impossible, so the report has no headline.
SAID: dict[str, tuple[tuple[str, ...], int]] = {
    "demo": (("--mb", "0"), 2),
    "aws": (("stack", "--copies", "2"), 0),
    "plan": (("--format", "json", "write", "--number", "20"), 0),
    "doctor": (("--run-duration", "many"), 2),
    "write": (("--size", "1 apple"), 2),
    "read": (("--number", "4"), 2),
    "mixed": (("--mix", "get=1,sing=2", "--operations", "5"), 2),
    "array": (("read",), 2),
    "columns": (("--share", "half"), 2),
    "shuffle": (("--size", "10", "--mappers", "5"), 2),
    "contend": (("--pattern", "none"), 2),
    "call": (("nothing.py:f",), 2),
    "replay": (("nothing.log",), 2),
    "run": (("nothing.toml", "--dry-run"), 2),
    "examples": ((), 0),
    "convert": (("sai3", "nothing.yaml"), 2),
    "ls": (("--run-dir", "."), 0),
    "report": (("run", "--format", "json"), 11),
    "check": (("run",), 11),
    "compare": (("run", "run", "--metric", "no_such"), 2),
    "ab": (("a.toml", "b.toml"), 2),
    "scale": (("--numbers", "1,2"), 2),
    "history": (("ls",), 8),
    "limit": (("write",), 2),
    "why": (("write", "--number", "1", "--size", "1KiB"), 2),
    "exp": (("ls",), 0),
    "plot": (("run", "--output", "run.svg"), 0),
    "import": (("nothing.pickle",), 2),
    "export": (("run", "--format", "csv"), 0),
    "resume": (("nowhere",), 8),
    "clean": (("nowhere",), 8),
    "store": (("status",), 0),
    "serve": (("--flip", "1.5"), 2),
    "worker": (("--control", "nowhere/"), 2),
    "lambda-host": (("--memory", "none"), 2),
    "localstack": (("--port", "none"), 2),
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
