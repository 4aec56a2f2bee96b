"""Compressed numbers in files of other people: a bound of their cost, and no surprising number."""

import zlib
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serverless_bench.errors import UsageError
from serverless_bench.job import packed
from serverless_bench.job.load import Load
from serverless_bench.workloads.columns import thrift
from serverless_bench.workloads.columns.layout import layout_of, read_layout
from serverless_bench.workloads.replay.schedule import unpack

WRONG = [
    b"[1e999]",
    b"[Infinity]",
    b"[-Infinity]",
    b"[NaN]",
    b"[1.5]",
    b"[9999999999999999999]",
    b"[0,\n-10000000000000000000]",
    b"[" + b"[]," * 100 + b"0]",
    b'[{"a": {}}]',
    b"[" * 5,
    # 88 kB that would become 90 MB.
    b"[" + b"0," * 45_000_000 + b"0]",
]


def text_of(data: bytes) -> str:
    return b64encode(zlib.compress(data, 9)).decode()


@given(st.lists(st.integers(-(2**62) + 1, 2**62 - 1).filter(lambda n: abs(n) < 10**18)))
def test_numbers_come_back(numbers: list[int]) -> None:
    assert packed.unpack(packed.pack(numbers), most_lists=1) == numbers


@pytest.mark.parametrize("data", WRONG, ids=range(len(WRONG)))
def test_other_numbers_and_bombs_are_refused(data: bytes) -> None:
    text = text_of(data)
    with pytest.raises(ValueError):  # noqa: PT011 - any
        packed.unpack(text, most_lists=50)
    with pytest.raises(UsageError, match="log"):
        unpack(text)


@pytest.mark.parametrize(
    "layout",
    [
        b'{"footer": 1e999, "size": 100, "row_groups": [[[4, 100]]]}',
        b'{"footer": Infinity, "size": 100, "row_groups": [[[4, 100]]]}',
    ],
)
def test_a_layout_with_impossible_numbers_is_refused(tmp_path: Path, layout: bytes) -> None:
    path = tmp_path / "layout.json"
    path.write_bytes(layout)
    with pytest.raises(UsageError, match="like"):
        read_layout(str(path))
    with pytest.raises(UsageError, match="like"):
        layout_of(Load(like=text_of(layout)), 0)


def test_a_footer_has_a_bound_of_items() -> None:
    items = thrift.MOST_ITEMS + 1
    data: Any = b"\x19\xfc" + thrift.length(items) + bytes(items)
    with pytest.raises(ValueError, match="more than"):
        thrift.Reader(data).struct()
