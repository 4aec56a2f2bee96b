"""The machinery of `make findings`, and the numbers of tests/verdicts/findings.toml.

`make findings` itself begins with a check that every entry matches the package.
"""

from pathlib import Path
from typing import Final

import pytest

from tests.house.scratch import Scratch
from tests.verdicts.findings import (
    Finding,
    Undo,
    failing_line,
    mismatch,
    register,
    telling_line,
    undone,
)

ASKED: Final = register()


def test_every_numbered_finding_has_a_test_or_a_reason() -> None:
    numbered = {f"{of} {number}" for of, all_of in ASKED.numbered.items() for number in all_of}
    tested = {finding.name for finding in ASKED.finding}
    assert tested | ASKED.not_shown.keys() == numbered
    assert not tested & ASKED.not_shown.keys()
    assert all(finding.wrong and finding.fails and finding.undo for finding in ASKED.finding)


MODULE: Final = "ONE = 1\n\n\ndef one() -> int:\n    if ONE:\n        return ONE\n    return 0\n"
TEST: Final = (
    "from serverless_bench.numbers.one import one\n\ndef test_of_one():\n    assert one() == 1\n"
)


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    """A repository whose package has one module, and one test of it."""
    for folder in ("serverless_bench/numbers", "tests/unit"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "serverless_bench/__init__.py").touch()
    (tmp_path / "serverless_bench/numbers/one.py").write_text(MODULE)
    (tmp_path / "tests/unit/test_one.py").write_text(TEST)
    return Scratch(tmp_path)


def finding(undo: Undo, test: str = "test_of_one") -> Finding:
    return Finding("any", "any", test, "assert 2 == 1", (undo,))


def test_a_test_fails_with_the_line_that_is_expected(scratch: Scratch) -> None:
    assert failing_line(scratch, finding(Undo("ONE", "ONE = 1", "ONE = 2"))) == "assert 2 == 1"
    (path,) = scratch.root.rglob("one.py")
    assert path.read_text() == MODULE


def test_a_test_that_passes_notices_nothing(scratch: Scratch) -> None:
    with pytest.raises(AssertionError, match="1 passed"):
        failing_line(scratch, finding(Undo("ONE", "ONE = 1", "ONE = True")))


@pytest.mark.parametrize(
    ("expected", "is_it"),
    [("assert 2 == 1", True), ("assert 20.5 == 1", True), ("assert None == 1", False)],
)
def test_only_numbers_of_the_line_may_be_others(expected: str, *, is_it: bool) -> None:
    output = "    assert one() == 1\nE   assert 2 == 1\nE    +  where 2 = one()\n"
    if is_it:
        assert telling_line(output, expected) == "assert 2 == 1"
    else:
        with pytest.raises(AssertionError, match="it fails otherwise"):
            telling_line(output, expected)


def test_a_text_may_be_wrapped_otherwise_and_is_replaced_at_its_depth(scratch: Scratch) -> None:
    undo = Undo("one.one", "if ONE: return ONE", "if not ONE:\n    return 2\nreturn ONE")
    with undone(scratch, finding(undo)) as changed:
        (path,) = changed
        assert path.read_text().endswith(
            "    if not ONE:\n        return 2\n    return ONE\n    return 0\n"
        )
    assert path.read_text() == MODULE


@pytest.mark.parametrize(
    ("undo", "test", "why"),
    [
        (Undo("two", "ONE", ""), "test_of_one", "nothing in the package is called two"),
        (Undo("one", "ONE", ""), "test_of_one", "one has 2 times the text 'ONE'"),
        (Undo("ONE", "TWO", ""), "test_of_one", "ONE has 0 times the text 'TWO'"),
        (Undo("ONE", "1", "("), "test_of_one", "'(' was never closed"),
        (Undo("ONE", "1", "2"), "test_of_two", "0 files of tests have test_of_two"),
        (Undo("ONE", "1", "2"), "test_one.py::test_of_one[1]", ""),
    ],
)
def test_an_entry_that_does_not_match_is_named(
    scratch: Scratch, undo: Undo, test: str, why: str
) -> None:
    message = mismatch(scratch, finding(undo, test))
    assert why in message
    assert message.startswith("any, 'any': " if why else "")
    assert bool(message) is bool(why)
