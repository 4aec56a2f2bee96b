"""Tables as text or Markdown."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from math import ceil
from textwrap import wrap
from typing import Final

from serverless_bench.base.escaping import for_markdown_row, for_terminal

_NARROW: Final = 40
"""Minimum width of wrapped prose: columns of single words are harder to read than long lines."""
_MOST_LINES: Final = 3
"""Maximum number of lines of a text in a wide table, unless its words are short."""


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    style: str,
    *,
    align: str = "",
    gap: str = "  ",
    named: int = 1,
    width: int = sys.maxsize,
) -> Iterator[str]:
    """Yield the lines of a table.

    Parameters
    ----------
    header, rows
        Cells; all rows have the same number of cells.
    style
        ``markdown``, with an empty line at the end; all other values produce text in columns.
    align
        ``l`` or ``r`` for each column; missing columns are left-aligned.
    gap
        Separator between columns of text.
    named
        Number of columns from the left that identify a row.
    width
        Columns of the terminal. A table that is wider is parted between columns, and each part has
        the columns that identify a row, or its number if they are long.
    """
    sides = align.ljust(len(header), "l")
    if style == "markdown":
        marks = ["--:" if side == "r" else "---" for side in sides]
        yield from map(for_markdown_row, (header, marks, *rows))
        yield ""
        return
    columns = list(zip(*([*map(for_terminal, row)] for row in (header, *rows)), strict=True))
    widths = [max(map(len, column)) for column in columns]
    if sum(widths) + len(gap) * (len(widths) - 1) > width:
        if sum(widths[:named]) + len(gap) * named > width // 2:
            # Rows have numbers, so that not every part has all the names.
            columns.insert(0, ("#", *(str(number + 1) for number in range(len(rows)))))
            sides, named = f"r{sides}", 1
        widths = _widths(columns, named, width, len(gap))
    for number, part in enumerate(_parts(widths, named, width, len(gap))):
        if number:
            yield ""
        for row in zip(*(columns[column] for column in part), strict=True):
            cells = [
                wrap(text, part[column] or 1, break_on_hyphens=False)
                for text, column in zip(row, part, strict=True)
            ]
            for line in zip_longest(*cells, fillvalue=""):
                padded = (
                    text.rjust(part[column]) if sides[column] == "r" else text.ljust(part[column])
                    for text, column in zip(line, part, strict=True)
                )
                yield gap.join(padded).rstrip()


def _widths(columns: Sequence[Sequence[str]], named: int, width: int, gap: int) -> list[int]:
    """Return the width of each column; the width of words if some columns do not fit otherwise."""
    words = [
        max(len(word) for text in column for word in (text.split() or [""])) for column in columns
    ]
    whole = [max(word, *map(len, column[1:])) for word, column in zip(words, columns, strict=True)]
    if sum(whole[:named]) + max(whole[named:], default=0) + gap * named <= width:
        return whole
    return [max(word, ceil(text / _MOST_LINES)) for word, text in zip(words, whole, strict=True)]


def _parts(widths: Sequence[int], named: int, width: int, gap: int) -> Iterator[Mapping[int, int]]:
    """Yield columns that fit, with their widths; each part has the columns that identify rows."""
    names = dict(enumerate(widths[:named]))
    part = dict(names)
    for number, wide in enumerate(widths[named:], named):
        if len(part) > named and sum(part.values()) + wide + gap * len(part) > width:
            yield part
            part = dict(names)
        part[number] = wide
    yield part


def wrapped(text: str, width: int) -> list[str]:
    """Return the lines of a text, all but the first below its second column if it has one."""
    if len(text) <= width:
        return [text]
    first, _, second = text.lstrip().partition("  ")
    start = len(text) - len(second.lstrip())
    if not (first and second) or start > width // 2:
        start = len(text) - len(text.lstrip()) + 2
    return wrap(
        text,
        max(width, _NARROW),
        subsequent_indent=" " * start,
        break_long_words=False,
        break_on_hyphens=False,
    )
