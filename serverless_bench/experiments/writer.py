"""Lines and tables, for a terminal or for a README."""

from collections.abc import Iterator
from io import StringIO
from typing import Final, TextIO

from rich.console import Console
from rich.table import Table

from serverless_bench.experiments.table import Grid

_WIDTH: Final = 10_000
"""Of a file: a table is as wide as its texts, and no line of it is broken."""
_GAP: Final = 2


class Writer:
    """Writes lines and tables in one of two styles."""

    def __init__(self, out: TextIO, *, markdown: bool) -> None:
        self._out = out
        self._markdown = markdown

    def title(self, text: str, *, top: bool = False) -> None:
        """Write a heading."""
        if self._markdown:
            self._out.write(f"\n{'#' if top else '##'} {text}\n\n")
        else:
            self._out.write(f"{text}\n" if top else f"\n{text}\n")

    def line(self, text: str, *, deep: int = 0) -> None:
        """Write a paragraph, or an item that deep."""
        if self._markdown:
            self._out.write(f"{text}\n\n" if not deep else f"{'  ' * (deep - 1)}- {text}\n")
        else:
            self._out.write(f"{'  ' * deep}{text}\n")

    def table(self, found: Grid) -> None:
        """Write a table."""
        if self._markdown:
            rows = [found.header, ("---",) * len(found.header), *found.rows]
            self._out.writelines(f"| {' | '.join(row)} |\n" for row in rows)
            self._out.write("\n")
            return
        terminal = Console(file=self._out).width if self._out.isatty() else _WIDTH
        for number, part in enumerate(_parts(found, terminal)):
            self._out.write("\n" if number else "")
            self._out.writelines(f"{line}\n" for line in _printed(part))


def _parts(found: Grid, width: int) -> Iterator[Grid]:
    """Yield a table as columns that fit, each part with the columns that name its rows."""
    columns = list(zip(found.header, *found.rows, strict=True))
    widths = [max(map(len, column)) + _GAP for column in columns]
    named = found.named
    room = width + _GAP - sum(widths[:named])
    begin = named
    while begin < len(columns):
        end, used = begin + 1, widths[begin]
        while end < len(columns) and used + widths[end] <= room:
            used, end = used + widths[end], end + 1
        header, *rows = zip(*columns[:named], *columns[begin:end], strict=True)
        yield Grid(header=header, rows=tuple(rows), named=named)
        begin = end


def _printed(found: Grid) -> Iterator[str]:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in found.header:
        table.add_column(name, justify="right", no_wrap=True)
    for row in found.rows:
        table.add_row(*row)
    console = Console(width=_WIDTH, highlight=False, markup=False, file=StringIO())
    with console.capture() as captured:
        console.print(table)
    yield from (line.rstrip() for line in captured.get().splitlines())
