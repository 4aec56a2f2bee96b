"""Layout of a Parquet file: where its column chunks are, and the bytes that are not keystream.

Parquet readers can open the files. A row group has one row, and all columns are required byte
arrays: a chunk is one page with one value, uncompressed, and the value is keystream. Gaps between
chunks are keystream, too, as are chunks too short or too long for a page::

    PAR1 | chunks of all row groups | footer, with padding | length of the footer | PAR1
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

from serverless_bench.base import packed
from serverless_bench.base.errors import UsageError
from serverless_bench.base.units import MIB
from serverless_bench.features.parquet import thrift
from serverless_bench.features.parquet.load import ParquetLoad
from serverless_bench.job.keys import hash_key
from serverless_bench.job.types import wrong

MAGIC: Final = b"PAR1"
END_BYTES: Final = 8
"""Length of the footer, and the magic number."""
MOST_CHUNKS: Final = 200_000
_MOST_LISTS: Final = 2 * MOST_CHUNKS + 1
MOST_RANGE: Final = 32 * MIB
"""Longest joined range without ``part_size``: PyArrow's ``range_size_limit``."""
_PAGE_HEAD: Final = 29
"""Bytes before the value of a chunk: the header of its page, and the length of the value."""
_MOST_PAGE: Final = (1 << 31) - 1
_LEAST: Final = 96
"""Shortest page at the start of a file, so that ``sbench clean`` finds keystream there."""
_MOST: Final = 32 * MIB
"""Longest footer, and longest layout as JSON."""
_BROKEN: Final = (AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError)
"""Errors of data that is not a layout, or not a footer."""


class Span(NamedTuple):
    """A column chunk, or a range to request."""

    offset: int
    length: int

    @property
    def end(self) -> int:
        """The end after the last byte."""
        return self.offset + self.length


RowGroups = tuple[tuple[Span, ...], ...]
"""The column chunks of each row group."""


@dataclass(frozen=True)
class Layout:
    """The layout of a file, which all files of a run have."""

    row_groups: RowGroups
    tail: bytes
    """Footer, length of the footer and the magic number."""
    size: int

    @cached_property
    def patches(self) -> dict[int, bytes]:
        """Bytes that are not keystream, by offset and in order."""
        pages = filter(_has_page, sorted(chain(*self.row_groups)))
        heads = {chunk.offset: _page_head(chunk.length) for chunk in pages}
        return {0: MAGIC, **heads, self.size - len(self.tail): self.tail}

    def encode(self) -> str:
        """Return the layout as a short text for ``ParquetLoad.layout_from``."""
        sizes = {
            "size": self.size,
            "footer": len(self.tail) - END_BYTES,
            "row_groups": self.row_groups,
        }
        return packed.pack(sizes)


def _has_page(chunk: Span) -> bool:
    """Return whether a chunk is a page; at the start of the file only if it is long enough."""
    # `clean` needs two cipher blocks of keystream that begin at byte 16, 32, 48 or 64.
    if chunk.offset < 80 and (chunk.offset > 16 or chunk.length < _LEAST):
        return False
    return _PAGE_HEAD <= chunk.length <= _MOST_PAGE


def _page_head(chunk_bytes: int) -> bytes:
    """Return the header of a chunk's page, and the length of the value."""
    # Sizes of a fixed width, so that a chunk may have any length.
    page_bytes = chunk_bytes - _PAGE_HEAD + 4
    size = thrift.wide(page_bytes << 1)
    numbers = b"\x2c\x15\x02\x15\x00\x15\x06\x15\x06\x00\x00"
    return (
        b"\x15\x00\x15" + size + b"\x15" + size + numbers + (page_bytes - 4).to_bytes(4, "little")
    )


def _tail(row_groups: RowGroups, least: int = 0) -> bytes:
    """Return a file's tail, with a footer of ``least`` bytes or more."""
    names = [f"c{number}".encode() for number in range(len(row_groups[0]))]
    texts = [thrift.length(len(name)) + name for name in names]
    root = b"\x48\x06schema\x15" + thrift.number(len(names)) + b"\x00"
    schema = [root, *(b"\x15\x0c\x25\x00\x18" + text + b"\x00" for text in texts)]
    groups = [
        b"\x19" + thrift.many(12, [_column(*pair) for pair in zip(group, texts, strict=True)])
        + b"\x16" + thrift.number(sum(chunk.length for chunk in group)) + b"\x16\x02\x00"
        for group in row_groups
    ]  # fmt: skip
    head = b"\x15\x02\x19" + thrift.many(12, schema) + b"\x16" + thrift.number(len(groups))
    head += b"\x19" + thrift.many(12, groups) + b"\x19\x1c\x18\x03pad\x18"
    padding = max(0, least - len(head) - 7)
    footer = head + thrift.wide(padding) + bytes(padding) + b"\x00\x00"
    return footer + len(footer).to_bytes(4, "little") + MAGIC


def _column(chunk: Span, text: bytes) -> bytes:
    """Return the metadata of a column chunk with a name."""
    offset, size = thrift.number(chunk.offset), thrift.number(chunk.length)
    about = b"\x15\x0c\x19\x15\x00\x19\x18" + text + b"\x15\x00\x16\x02\x16" + size + b"\x16" + size
    return b"\x26" + offset + b"\x1c" + about + b"\x26" + offset + b"\x00\x00"


@lru_cache(maxsize=4)
def layout_of(load: ParquetLoad, size: int) -> Layout:
    """Return the layout of a job's files.

    Raises
    ------
    UsageError
        If they are too small for their chunks, or ``layout_from`` is not a layout.
    """
    if load.layout_from is None:
        return _even(size, load.row_groups, load.columns)
    try:
        return _arranged(packed.unpack(load.layout_from, most_lists=_MOST_LISTS))
    except _BROKEN as exc:
        raise wrong("layout_from", f"is not an encoded layout: {exc}") from exc


def _even(size: int, groups: int, columns: int) -> Layout:
    """Return a layout with chunks of the same length."""
    count = groups * columns
    if count > MOST_CHUNKS:
        raise wrong("row_groups", f"times `columns` are {count:,}, at most {MOST_CHUNKS:,} allowed")

    def placed(length: int) -> RowGroups:
        starts = range(len(MAGIC), len(MAGIC) + count * length, length)
        chunks = [Span(start, length) for start in starts]
        return tuple(tuple(chunks[n : n + columns]) for n in range(0, count, columns))

    # Numbers that are too large make the footer longer than it can become.
    reserved = len(MAGIC) + len(_tail(placed(max(1, size // count))))
    length = (size - reserved) // count
    if length < _LEAST:
        raise UsageError(
            f"`size` {size:,} is too small for {count:,} column chunks and their footer",
            hint="raise `size`, or lower `row_groups` or `columns`",
            field="size",
        )
    footer = size - len(MAGIC) - count * length - END_BYTES
    row_groups = placed(length)
    return Layout(row_groups, _tail(row_groups, footer), size)


def _arranged(sizes: Any) -> Layout:
    """Return a layout given in numbers: the file is longer if they leave too little for a footer.

    Raises
    ------
    ValueError
        If chunks overlap, or there are none.
    """
    footer, size = int(sizes.get("footer", 0)), int(sizes.get("size", 0))
    row_groups = tuple(tuple(Span(*chunk) for chunk in group) for group in sizes["row_groups"])
    chunks = _checked(row_groups)
    if not 0 <= footer <= _MOST:
        raise ValueError(f"a footer cannot have {footer} bytes")
    tail = _tail(row_groups, footer)
    return Layout(row_groups, tail, max(chunks[-1].end, size - footer - END_BYTES) + len(tail))


def _checked(row_groups: RowGroups) -> list[Span]:
    """Return all chunks in order of offset."""
    chunks = sorted(chain(*row_groups))
    if not chunks or len({len(group) for group in row_groups}) > 1 or len(chunks) > MOST_CHUNKS:
        raise ValueError(
            f"row groups need the same number of columns, {MOST_CHUNKS} chunks at most"
        )
    if not all(type(number) is int and 0 <= number < 1 << 50 for span in chunks for number in span):
        raise ValueError("offsets and lengths of chunks are whole numbers")
    for before, after in pairwise([Span(0, len(MAGIC)), *chunks]):
        if after.offset < before.end:
            raise ValueError(f"the chunk at {after.offset} overlaps the bytes before it")
    return chunks


def read_layout(path: str) -> Layout:
    """Return the layout of a Parquet file, or that which a file of JSON describes.

    Raises
    ------
    UsageError
        If the file is neither.
    """
    # Opening a FIFO would block.
    if not Path(path).is_file():
        raise wrong("layout_from", f"{path} is not a file")
    try:
        with Path(path).open("rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                file.seek(0)
                return _arranged(packed.numbers_in(file.read(_MOST), most_lists=_MOST_LISTS))
            size = file.seek(0, 2)
            file.seek(max(0, size - END_BYTES))
            footer = footer_length(file.read(), size)
            file.seek(-END_BYTES - footer, 2)
            row_groups = parse(file.read(footer))
        return _arranged({"size": size, "footer": footer, "row_groups": row_groups})
    except (*_BROKEN, OSError) as exc:
        raise wrong(
            "layout_from",
            f"{path} has no layout: {exc}",
            hint='name a Parquet file, or a layout; see "Parquet" in the documentation',
        ) from exc


def footer_length(end: bytes | bytearray, size: int) -> int:
    """Return the length of the footer that the last bytes of a file declare.

    Parameters
    ----------
    end
        The last bytes.
    size
        Size of the file in bytes.

    Raises
    ------
    ValueError
        If they are not the end of a Parquet file.
    """
    if len(end) < END_BYTES or end[-4:] != MAGIC:
        raise ValueError("a Parquet file ends in PAR1, this one does not")
    length = int.from_bytes(end[-END_BYTES:-4], "little")
    if length > min(_MOST, size - END_BYTES):
        raise ValueError(f"a file of {size} bytes has no footer of {length} bytes")
    return length


def parse(footer: bytes) -> RowGroups:
    """Return the column chunks that a footer describes.

    Raises
    ------
    ValueError
        If it is not the footer of a Parquet file.
    """
    try:
        groups = thrift.Reader(footer).struct()[4]
        row_groups = tuple(tuple(_chunk(column[3]) for column in group[1]) for group in groups)
        _checked(row_groups)
    except _BROKEN as exc:
        raise ValueError(f"the footer cannot be read: {exc!r}") from exc
    return row_groups


def _chunk(about: dict[int, Any]) -> Span:
    """Return the place of a column chunk: from the dictionary, or else from the first page."""
    data, dictionary = about[9], about.get(11) or about[9]
    return Span(min(data, dictionary), about[7])


def chosen(row_groups: RowGroups, share: float) -> list[Span]:
    """Return the chunks of a share of the columns, in order of offset.

    The columns are drawn from their numbers: all scans of all runs read the same, and those of a
    smaller share are among those of a larger one.
    """
    columns = sorted(range(len(row_groups[0])), key=lambda number: hash_key(str(number)))
    columns = columns[: max(1, round(share * len(columns)))]
    return sorted(group[n] for group in row_groups for n in columns if group[n].length)


def joined(chunks: Sequence[Span], gap: int, most: int) -> list[Span]:
    """Return the ranges to request: chunks at most ``gap`` bytes apart share a range.

    A range of several chunks has at most ``most`` bytes. PyArrow joins ranges by the same rule
    (``hole_size_limit`` and ``range_size_limit``).
    """
    ranges: list[Span] = []
    for chunk in chunks:
        if ranges:
            start, end = ranges[-1].offset, ranges[-1].end
            if chunk.end - start <= most and chunk.offset <= end + gap:
                ranges[-1] = Span(start, chunk.end - start)
                continue
        ranges.append(chunk)
    return ranges
