"""Lines and tables, for a terminal or for a README."""

from typing import Final, TextIO

from rich.console import Console
from rich.table import Table

from serverless_bench.experiments.table import Grid

_WIDTH: Final = 10_000
"""Of a file: a table is as wide as its texts, and no line of it is broken."""


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
        table = Table(box=None, pad_edge=False, header_style="bold")
        for name in found.header:
            table.add_column(name, justify="right", overflow="fold")
        for row in found.rows:
            table.add_row(*row)
        width = None if self._out.isatty() else _WIDTH
        console = Console(file=self._out, width=width, highlight=False, markup=False)
        with console.capture() as captured:
            console.print(table)
        self._out.writelines(f"{line.rstrip()}\n" for line in captured.get().splitlines())
