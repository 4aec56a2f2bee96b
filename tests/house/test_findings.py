"""All names in tests/verdicts/findings.toml exist, and its table is complete."""

import ast
from pathlib import Path
from typing import Final

import pytest

from tests.house.measures import REPOSITORY
from tests.house.scratch import Scratch
from tests.verdicts.findings import Finding, Undo, failing_line, register, rows

ASKED: Final = register()


def test_every_numbered_finding_has_a_test_or_a_reason() -> None:
    numbered = {f"{of} {number}" for of, all_of in ASKED.numbered.items() for number in all_of}
    tested = {finding.name for finding in ASKED.finding}
    assert tested | ASKED.not_shown.keys() == numbered
    assert not tested & ASKED.not_shown.keys()


@pytest.mark.parametrize(
    "finding", ASKED.finding, ids=lambda finding: f"{finding.name}: {finding.wrong}"
)
def test_a_finding_can_be_tried_again(finding: Finding) -> None:
    path, _, test = finding.test.partition("::")
    nodes = ast.walk(ast.parse((REPOSITORY / path).read_text("utf-8")))
    assert test.partition("[")[0] in {n.name for n in nodes if isinstance(n, ast.FunctionDef)}
    assert finding.wrong
    assert finding.fails
    texts = {undo.path: (REPOSITORY / undo.path).read_text("utf-8") for undo in finding.undo}
    assert texts
    for undo in finding.undo:
        assert texts[undo.path].count(undo.old) == 1, undo.old
        texts[undo.path] = texts[undo.path].replace(undo.old, undo.new)
    for path, text in texts.items():
        if path.endswith(".py"):
            ast.parse(text)


def test_the_table_has_the_register() -> None:
    _, *shown = rows(ASKED)
    named = {finding.name for finding in ASKED.finding} | ASKED.not_shown.keys()
    assert {name for name, *_ in shown} == named
    assert len(shown) == len(ASKED.finding) + len(ASKED.not_shown)


TEST: Final = "from one import ONE\n\ndef test_of_one():\n    assert ONE == 1\n"


@pytest.mark.parametrize(
    ("fails", "new", "said"),
    [
        ("assert 2 == 1", "ONE = 2", "assert 2 == 1"),
        ("assert 20.5 == 1", "ONE = 2", "assert 2 == 1"),
        ("assert None == 1", "ONE = 2", "it fails otherwise"),
        ("assert 1 == 1", "ONE = 1", "1 passed"),
        ("ONE", "ONE = ", "SyntaxError"),
    ],
)
def test_a_test_fails_with_the_line_that_is_expected(
    tmp_path: Path, fails: str, new: str, said: str
) -> None:
    (tmp_path / "one.py").write_text("ONE = 1")
    (tmp_path / "test_one.py").write_text(TEST)
    undo = Undo("one.py", "ONE = 1", new)
    finding = Finding("any", "any", "test_one.py::test_of_one", fails, (undo,))
    try:
        words = failing_line(Scratch(tmp_path), finding)
    except AssertionError as exc:
        words = str(exc)
    assert said in words
    assert (tmp_path / "one.py").read_text() == "ONE = 1"
