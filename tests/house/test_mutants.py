"""All names in tests/mutants.toml exist: a missing name would never be tried."""

import inspect
import json
import tomllib
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest

from tests import mutants

ASKED: dict[str, Any] = tomllib.loads((Path(__file__).parents[1] / "mutants.toml").read_text())


def source(name: str) -> str:
    """Return the text of a function, without blanks."""
    return "".join(inspect.getsource(resolve_name(name)).split())


@pytest.mark.parametrize("pattern", [name for area in ASKED["areas"].values() for name in area])
def test_a_pattern_is_of_something(pattern: str) -> None:
    assert resolve_name(pattern.removesuffix(".*"))


@pytest.mark.parametrize("function", sorted({known["function"] for known in ASKED["equivalent"]}))
def test_equivalent_mutants_name_existing_lines(function: str) -> None:
    there = source(function)
    changes = [known["change"] for known in ASKED["equivalent"] if known["function"] == function]
    lines = ["".join(change.partition(" => ")[0].split()) for change in changes]
    assert [line for line in lines if line not in there] == []


def judged(code: int | None, folder: Path) -> float:
    name = "serverless_bench.units.x_f__mutmut_1"
    (folder / "units.py.meta").write_text(json.dumps({"exit_code_by_key": {name: code}}))
    return mutants.judge("one", [name], []).killed


@pytest.mark.parametrize("code", [None, 4, 255])
def test_a_mutant_whose_tests_did_not_run_was_not_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int | None
) -> None:
    monkeypatch.setattr(mutants, "MUTANTS", tmp_path)
    with pytest.raises(SystemExit, match="1 mutants were not tried"):
        judged(code, tmp_path)


@pytest.mark.parametrize(("code", "killed"), [(0, 0), (33, 0), (1, 1), (-24, 1)])
def test_a_mutant_is_found_by_a_test_that_fails_or_takes_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, killed: float
) -> None:
    monkeypatch.setattr(mutants, "MUTANTS", tmp_path)
    assert judged(code, tmp_path) == killed
