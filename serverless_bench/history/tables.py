"""Tables of a history, as text or Markdown."""

from collections.abc import Iterator, Sequence

from serverless_bench.escaping import for_markdown_row


def table(header: Sequence[str], rows: Sequence[Sequence[str]], style: str) -> list[str]:
    """Return the lines of a table; ``style`` is text or markdown."""
    return [*(_markdown if style == "markdown" else _aligned)(header, rows)]


def _markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield for_markdown_row(header)
    yield for_markdown_row(["---"] * len(header))
    yield from map(for_markdown_row, rows)


def _aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    for row in (header, *rows):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip()
