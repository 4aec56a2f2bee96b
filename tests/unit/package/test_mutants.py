"""What tests/mutants.toml names is there: a name that is gone would be tried by nobody."""

import inspect
import tomllib
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest

ASKED: dict[str, Any] = tomllib.loads((Path(__file__).parents[2] / "mutants.toml").read_text())


def source(name: str) -> str:
    """Return the text of a function, without blanks."""
    return "".join(inspect.getsource(resolve_name(name)).split())


@pytest.mark.parametrize("pattern", [name for area in ASKED["areas"].values() for name in area])
def test_a_pattern_is_of_something(pattern: str) -> None:
    assert resolve_name(pattern.removesuffix(".*"))


@pytest.mark.parametrize("function", sorted({known["function"] for known in ASKED["equivalent"]}))
def test_a_change_that_changes_nothing_is_of_a_line_that_is_there(function: str) -> None:
    there = source(function)
    changes = [known["change"] for known in ASKED["equivalent"] if known["function"] == function]
    lines = ["".join(change.partition(" => ")[0].split()) for change in changes]
    assert [line for line in lines if line not in there] == []
