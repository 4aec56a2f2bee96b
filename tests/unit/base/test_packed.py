"""Compressed numbers in files of other people: a bound of their cost, and no surprising number."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serverless_bench.base import packed
from tests.data.packed import WRONG, text_of


@given(st.lists(st.integers(-(2**62) + 1, 2**62 - 1).filter(lambda n: abs(n) < 10**18)))
def test_numbers_come_back(numbers: list[int]) -> None:
    assert packed.unpack(packed.pack(numbers), most_lists=1) == numbers


@pytest.mark.parametrize("data", WRONG, ids=range(len(WRONG)))
def test_other_numbers_and_bombs_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - any
        packed.unpack(text_of(data), most_lists=50)
