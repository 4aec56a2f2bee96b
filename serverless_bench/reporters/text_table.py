"""Tables as text or Markdown."""

from collections.abc import Iterator, Sequence

from serverless_bench.escaping import for_markdown_row, for_terminal


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    style: str,
    *,
    align: str = "",
    gap: str = "  ",
) -> Iterator[str]:
    """Yield the lines of a table.

    Parameters
    ----------
    header, rows
        Cells; all rows have the same number of cells.
    style
        ``markdown``; all other values produce text in columns.
    align
        ``l`` or ``r`` for each column; missing columns are left-aligned.
    gap
        Separator between columns of text.
    """
    sides = align.ljust(len(header), "l")
    if style == "markdown":
        marks = ["--:" if side == "r" else "---" for side in sides]
        yield from map(for_markdown_row, (header, marks, *rows))
        return
    cells = [[*map(for_terminal, row)] for row in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        padded = (
            cell.rjust(width) if side == "r" else cell.ljust(width)
            for cell, width, side in zip(row, widths, sides, strict=True)
        )
        yield gap.join(padded).rstrip()
