"""Lines and tables, for a terminal or for a README."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from math import ceil
from textwrap import fill, wrap
from typing import Final, TextIO

from rich.console import Console

from serverless_bench.escaping import for_markdown, for_markdown_row, for_terminal
from serverless_bench.studies.table import TextTable

_WIDTH: Final = 10_000
"""Of a file: a table is as wide as its texts, and no line of it is broken."""
_NARROW: Final = 40
"""What prose is not wrapped below: a column of single words is harder to read than long lines."""
_GAP: Final = 2
_MOST_LINES: Final = 3
"""Of a text in a table that is too wide, unless its words are short."""


class Writer:
    """Writes lines and tables in one of two styles."""

    def __init__(self, out: TextIO, *, markdown: bool) -> None:
        self._out = out
        self._markdown = markdown
        self._shown = for_markdown if markdown else for_terminal
        self._width = Console(file=out).width if out.isatty() else _WIDTH

    def title(self, text: str, *, top: bool = False) -> None:
        """Write a heading."""
        shown = self._shown(text)
        if self._markdown:
            self._out.write(f"\n{'#' if top else '##'} {shown}\n\n")
        else:
            gap = "" if top else "\n"
            self._out.write(f"{gap}{_wrapped(shown, self._width, 0)}\n")

    def line(self, text: str, *, deep: int = 0) -> None:
        """Write a paragraph, or an item that deep."""
        shown = self._shown(text)
        if self._markdown:
            self._out.write(f"{shown}\n\n" if not deep else f"{'  ' * (deep - 1)}- {shown}\n")
        else:
            self._out.write(f"{_wrapped(shown, self._width, deep)}\n")

    def table(self, found: TextTable) -> None:
        """Write a table."""
        if self._markdown:
            marks = ["---"] * len(found.header)
            lines = (found.header, marks, *found.rows)
            self._out.writelines(f"{for_markdown_row(cells)}\n" for cells in lines)
            self._out.write("\n")
            return
        rows = ([*map(for_terminal, row)] for row in (found.header, *found.rows))
        columns = list(zip(*rows, strict=True))
        parts = _parts(_widths(columns, found.named, self._width), found.named, self._width)
        texts = ("".join(_lines([columns[n] for n in part], part)) for part in parts)
        self._out.write("\n".join(texts))


def _wrapped(text: str, width: int, deep: int) -> str:
    """Return a line as a terminal of that width shows it best; a file has it whole."""
    if width == _WIDTH:
        return f"{'  ' * deep}{text}"
    return fill(
        text,
        max(width, _NARROW),
        initial_indent="  " * deep,
        subsequent_indent="  " * (deep + 1),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _widths(columns: Sequence[Sequence[str]], named: int, width: int) -> list[int]:
    """Return the width of each column; where some do not fit beside the named ones, of words."""
    whole = [max(map(len, column)) for column in columns]
    if sum(whole[:named]) + max(whole[named:], default=0) + _GAP * named <= width:
        return whole
    words = [max(len(word) for text in column for word in text.split()) for column in columns]
    return [max(word, ceil(text / _MOST_LINES)) for word, text in zip(words, whole, strict=True)]


def _parts(widths: Sequence[int], named: int, width: int) -> Iterator[dict[int, int]]:
    """Yield columns that fit, with their widths; in each part those that name its rows."""
    names = dict(enumerate(widths[:named]))
    part = dict(names)
    for number, wide in enumerate(widths[named:], named):
        if len(part) > named and sum(part.values()) + wide + _GAP * len(part) > width:
            yield part
            part = dict(names)
        part[number] = wide
    yield part


def _lines(columns: Sequence[Sequence[str]], part: Mapping[int, int]) -> Iterator[str]:
    """Yield the lines of a part; texts that are wider than their column take several."""
    for row in zip(*columns, strict=True):
        cells = [
            wrap(text, wide, break_on_hyphens=False)
            for text, wide in zip(row, part.values(), strict=True)
        ]
        for line in zip_longest(*cells, fillvalue=""):
            texts = (text.rjust(wide) for text, wide in zip(line, part.values(), strict=True))
            yield f"{(' ' * _GAP).join(texts).rstrip()}\n"
