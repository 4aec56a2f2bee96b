"""The machinery of `make mutants`, which begins with a check of tests/mutants.toml itself."""

import json
from pathlib import Path

import pytest

from tests import mutants

METER = "class Meter:\n    def stop(self):\n        pass\n"
CONFIG = {
    "only_mutate": ["serverless_bench/worker/meter.py"],
    "pytest_add_cli_args_test_selection": ["tests/test_meter.py"],
}
ASKED = {
    "areas": {"meter": ["worker.meter.*", "Meter.stop"]},
    "equivalent": [{"function": "Meter.stop", "changes": ["def  stop( => def go("]}],
}


@pytest.mark.parametrize(
    ("asked", "config", "messages"),
    [
        ({}, {}, []),
        ({}, {"only_mutate": []}, ["only_mutate in pyproject.toml lacks the file of"] * 2),
        ({}, {"pytest_add_cli_args_test_selection": ["tests/no.py"]}, ["there is no tests/no.py"]),
        ({"areas": {"one": ["meter.Meter.no"]}}, {}, ["meter.Meter.no is the name of 0 things"]),
        (
            {"equivalent": [{"function": "no_function", "changes": ["1 => 2"]}]},
            {},
            ["0 functions are called no_function"],
        ),
        (
            {"equivalent": [{"function": "Meter.stop", "changes": ["no() => 2"]}]},
            {},
            ["Meter.stop has nothing to change as in 'no() => 2'"],
        ),
    ],
)
def test_entries_that_match_nothing_are_named(
    asked: dict[str, object], config: dict[str, object], messages: list[str], tmp_path: Path
) -> None:
    for name, text in {
        "serverless_bench/worker/meter.py": METER,
        "tests/test_meter.py": "",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text)
    package = tmp_path / "serverless_bench"
    found = list(mutants.mismatches(ASKED | asked, CONFIG | config, package))
    assert len(found) == len(messages)
    assert all(line.startswith(words) for line, words in zip(found, messages, strict=True)), found


@pytest.mark.parametrize(
    ("change", "is_it"),
    [
        ("strict=True => strict=None", True),
        ("b, strict = True => b, strict = None", True),
        ("strict=True => strict=False", False),
        ("a => c", False),
    ],
)
def test_a_change_is_a_part_of_that_of_a_line(change: str, *, is_it: bool) -> None:
    lines = "for a in zip(a, b, strict=True): => for a in zip(a, b, strict=None):"
    assert mutants.is_change(change, lines) is is_it


def judged(code: int | None, folder: Path) -> float:
    name = "serverless_bench.base.units.x_f__mutmut_1"
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
