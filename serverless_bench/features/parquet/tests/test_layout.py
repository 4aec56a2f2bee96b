"""The files are Parquet, and have the layout that is asked for."""

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serverless_bench.base.errors import UsageError
from serverless_bench.driver.cleanup import HEAD_BYTES, ownership
from serverless_bench.features.parquet.layout import (
    Layout,
    Span,
    chosen,
    joined,
    layout_of,
    parse,
    read_layout,
)
from serverless_bench.features.parquet.load import ParquetLoad
from serverless_bench.features.parquet.operation import FileContent
from serverless_bench.job.workload import open_workload
from serverless_bench.worker.object_io import Head
from tests.tables import each_row

SHAPES = [(4096, 2, 3), (1 << 20, 1, 1), (1 << 20, 8, 16), (8 << 20, 100, 100), (100_001, 7, 5)]


def even(size: int, row_groups: int, columns: int) -> Layout:
    return layout_of(ParquetLoad(row_groups=row_groups, columns=columns), size)


def written(layout: Layout) -> bytes:
    return bytes(FileContent(f"{'0' * 32}.{layout.size}/data.parquet", layout).read(0, layout.size))


@each_row(("size", "row_groups", "columns"), SHAPES)
def test_pyarrow_opens_a_file_and_reads_all_of_its_chunks(
    size: int, row_groups: int, columns: int
) -> None:
    layout = even(size, row_groups, columns)
    data = written(layout)
    assert len(data) == size
    file = pq.ParquetFile(io.BytesIO(data))
    assert (file.num_row_groups, file.metadata.num_columns) == (row_groups, columns)
    table = file.read()
    for number, group in enumerate(layout.row_groups):
        for column, (name, chunk) in enumerate(zip(table.column_names, group, strict=True)):
            about = file.metadata.row_group(number).column(column)
            assert about.data_page_offset == chunk.offset
            assert about.total_compressed_size == chunk.length
            # The header of the page has 25 bytes, the length of the value 4.
            value = table[name][number].as_py()
            assert value == data[chunk.offset + 29 : chunk.end]


@each_row(("size", "row_groups", "columns"), SHAPES)
def test_a_footer_is_parsed_to_the_chunks_it_was_made_of(
    size: int, row_groups: int, columns: int
) -> None:
    layout = even(size, row_groups, columns)
    assert parse(layout.tail[:-8]) == layout.row_groups
    assert layout_of(ParquetLoad(layout_from=layout.encode()), 1) == layout


@given(st.data())
def test_any_piece_of_a_file_is_what_the_file_has_there(data: st.DataObject) -> None:
    layout = even(8192, 4, 6)
    whole, content = written(layout), FileContent(f"{'0' * 32}.8192/data.parquet", layout)
    begin = data.draw(st.integers(0, 8191))
    piece = whole[begin : data.draw(st.integers(begin, 8192))]
    assert content.read(begin, len(piece)) == piece
    assert content.agrees(begin, memoryview(piece))
    if piece:
        wrong = bytearray(piece)
        at = data.draw(st.integers(0, len(piece) - 1))
        wrong[at] ^= 1
        (difference,) = content.differences(begin, memoryview(wrong))
        assert (difference.offset, difference.bad_bytes) == (begin + at, 1)


def test_the_layout_of_a_real_file_is_taken_byte_for_byte_and_its_data_is_not(
    tmp_path: Path,
) -> None:
    table = pa.table(
        {f"secret {n}": [f"{n * row % 97}" * (1 + n) for row in range(5000)] for n in range(1, 13)}
    )
    path = tmp_path / "real.parquet"
    pq.write_table(table, path, row_group_size=700, write_page_index=True)
    layout = read_layout(str(path))
    assert layout.size == path.stat().st_size
    assert layout.tail[-8:] == path.read_bytes()[-8:]
    theirs, ours = pq.ParquetFile(path).metadata, pq.ParquetFile(io.BytesIO(written(layout)))
    assert ours.metadata.num_row_groups == theirs.num_row_groups == 8
    for group in range(theirs.num_row_groups):
        for column in range(theirs.num_columns):
            about = theirs.row_group(group).column(column)
            start = about.dictionary_page_offset or about.data_page_offset
            assert layout.row_groups[group][column] == (start, about.total_compressed_size)
    assert ours.read().num_columns == 12
    assert b"secret" not in written(layout)


def test_a_layout_file_may_have_gaps_a_long_footer_and_no_size(tmp_path: Path) -> None:
    path = tmp_path / "layout.json"
    groups = [[[100, 200], [300, 10]], [[1000, 64], [2000, 0]]]
    path.write_text(json.dumps({"footer": 70_000, "row_groups": groups}))
    layout = read_layout(str(path))
    assert (len(layout.tail[:-8]), layout.size) == (70_000, 2000 + 70_008)
    assert parse(layout.tail[:-8]) == layout.row_groups
    assert pq.ParquetFile(io.BytesIO(written(layout))).metadata.num_rows == 2
    assert Layout(layout.row_groups, layout.tail, layout.size) == layout


@each_row(
    "wrong",
    [
        b"",
        b"PAR1",
        b"PAR1PAR1",
        b"PAR1" + b"\xff\xff\xff\x7fPAR1",
        b"PAR1" + b"\x00" * 9 + b"\x09\x00\x00\x00PAR1",
        b"PAR1" + b"\x1c" * 5000 + (5000).to_bytes(4, "little") + b"PAR1",
        b"PAR1" + b"\x15" + b"\xff" * 20 + (21).to_bytes(4, "little") + b"PAR1",
        b"PAR1" + b"\x49\xfc\xff\xff\xff\x7f" + (6).to_bytes(4, "little") + b"PAR1",
        b"PAR1" + b"\x1d\x00" + (2).to_bytes(4, "little") + b"PAR1",
        b"[1]",
        b"{}",
        b'{"row_groups": []}',
        b'{"row_groups": [[[4, 10]], []]}',
        b'{"row_groups": [[[4, 10], [13, 10]]]}',
        b'{"row_groups": [[[0, 10]]]}',
        b'{"row_groups": [[[4.5, 10]]]}',
        b'{"row_groups": [[[4, -1]]]}',
        b'{"row_groups": [[[4, 10]]], "footer": 9999999999}',
        b'{"row_groups": [[[4, 10]]], "size": "big"}',
        b"[" * 100_000,
    ],
)
def test_a_file_without_a_layout_is_refused_in_a_line(tmp_path: Path, wrong: bytes) -> None:
    path = tmp_path / "wrong"
    path.write_bytes(wrong)
    with pytest.raises(UsageError, match=r"`layout_from` .*wrong has no layout") as caught:
        read_layout(str(path))
    assert "\n" not in str(caught.value)


@given(st.binary(max_size=300))
def test_no_footer_breaks_the_parser(footer: bytes) -> None:
    try:
        parse(footer)
    except ValueError:
        return
    raise AssertionError("a file without a chunk was accepted")


@pytest.mark.parametrize("like", ["x", "eA==", even(4096, 1, 1).encode()[:-8]])
def test_a_text_that_is_no_layout_is_refused(like: str) -> None:
    with pytest.raises(UsageError, match="`layout_from` is not an encoded layout"):
        layout_of(ParquetLoad(layout_from=like), 1)


def test_too_many_chunks_and_too_few_bytes_are_refused() -> None:
    with pytest.raises(UsageError, match="at most 200,000 allowed"):
        even(1 << 40, 1000, 201)
    with pytest.raises(UsageError, match="too small for 128 column chunks") as caught:
        even(4096, 8, 16)
    assert caught.value.field == "size"


@each_row(
    ("gap", "most", "expected"),
    [
        (0, 1000, [(0, 20), (25, 10), (60, 40)]),
        (4, 1000, [(0, 20), (25, 10), (60, 40)]),
        (5, 1000, [(0, 35), (60, 40)]),
        (25, 1000, [(0, 100)]),
        (25, 99, [(0, 35), (60, 40)]),
        (0, 1, [(0, 10), (10, 10), (25, 10), (60, 40)]),
    ],
)
def test_chunks_share_a_range_up_to_the_gap_and_the_longest_range(
    gap: int, most: int, expected: list[Any]
) -> None:
    chunks = [Span(0, 10), Span(10, 10), Span(25, 10), Span(60, 40)]
    assert joined(chunks, gap, most) == expected


@each_row(
    "groups",
    [
        [[[4, 96]]],
        [[[4, 95], [99, 96]]],
        [[[4, 40], [44, 40]], [[84, 400], [484, 4]]],
        [[[4, 36], [40, 400]]],
        [[[4, 10], [20, 300]]],
        [[[70, 100]]],
    ],
)
def test_any_file_starts_with_what_clean_recognizes(tmp_path: Path, groups: list[Any]) -> None:
    path = tmp_path / "layout.json"
    path.write_text(json.dumps({"row_groups": groups}))
    layout = read_layout(str(path))
    key = f"sbench/{'0' * 32}.{layout.size}/data.parquet"
    head = Head(bytes(FileContent(key, layout).read(0, HEAD_BYTES)), "tag", layout.size)
    assert ownership([key], open_workload("parquet"))(key, head)
    other = f"sbench/{'1' * 32}.{layout.size}/data.parquet"
    assert not ownership([other], open_workload("parquet"))(other, head)


def test_a_larger_share_has_the_columns_of_a_smaller_one() -> None:
    layout = even(1 << 20, 3, 20)
    sizes = [len(chosen(layout.row_groups, share)) for share in (0, 0.05, 0.25, 0.5, 1)]
    assert sizes == [3, 3, 15, 30, 60]
    few, more = (set(chosen(layout.row_groups, share)) for share in (0.25, 0.5))
    assert few < more
