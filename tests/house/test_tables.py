"""A test of many rows tries each, and says which ones fail."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.tables import each_row


class Told:
    """Takes the place of ``pytest.Subtests``, which would let this test fail."""

    def __init__(self) -> None:
        self.names: list[str] = []

    @contextmanager
    def test(self, name: str) -> Iterator[None]:
        self.names.append(name)
        with suppress(AssertionError, pytest.fail.Exception, pytest.skip.Exception):
            yield


def test_every_row_is_tried_and_those_that_fail_are_named(tmp_path: Path) -> None:
    seen: list[tuple[Any, ...]] = []

    @each_row("last", [1, 2])
    @each_row(("word", "many"), [("a", [1]), pytest.param("b", [2], id="two"), ("c", int)])
    def of_rows(word: str, many: object, last: int, tmp_path: Path) -> None:
        seen.append((word, last, [*tmp_path.iterdir()]))
        (tmp_path / word).touch()
        if word == "a":
            pytest.fail("it")
        if word == "c":
            pytest.skip("it")
        assert last == 1

    reported = Told()
    of_rows(subtests=reported, tmp_path=tmp_path)
    assert seen == [(word, last, []) for word in "abc" for last in (1, 2)]
    assert reported.names == ["a-many0-1", "a-many0-2", "two-2", "c-int-1", "c-int-2"]


def test_a_table_without_rows_does_not_pass() -> None:
    @each_row("value", [])
    def of_none(value: object) -> None:
        del value

    with pytest.raises(pytest.skip.Exception):
        of_none(subtests=Told())
