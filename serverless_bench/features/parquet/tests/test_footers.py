"""Layouts of other people: a bound of their cost, and no surprising number."""

from pathlib import Path
from typing import Any

import pytest

from serverless_bench.base.errors import UsageError
from serverless_bench.features.parquet import thrift
from serverless_bench.features.parquet.layout import layout_of, read_layout
from serverless_bench.features.parquet.load import ParquetLoad
from tests.data.packed import text_of


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
    with pytest.raises(UsageError, match="layout_from"):
        read_layout(str(path))
    with pytest.raises(UsageError, match="layout_from"):
        layout_of(ParquetLoad(layout_from=text_of(layout)), 0)


def test_a_footer_has_a_bound_of_items() -> None:
    items = thrift.MOST_ITEMS + 1
    data: Any = b"\x19\xfc" + thrift.length(items) + bytes(items)
    with pytest.raises(ValueError, match="more than"):
        thrift.Reader(data).struct()
