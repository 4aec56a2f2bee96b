"""A report for a notebook."""

from collections.abc import Iterator
from html import escape

from serverless_bench.analysis.summary import Summary
from serverless_bench.reporters.base import headline, problems, rows
from serverless_bench.reporters.tables import sections


def html(summary: Summary) -> str:
    """Return the counts, then the tables, then what went wrong."""
    return "".join(_parts(summary))


def _parts(summary: Summary) -> Iterator[str]:
    yield f"<p><b>{escape(f'{summary.workload}: {headline(summary)}')}</b></p>"
    yield _table(rows(summary), names=2)
    for section in sections(summary):
        yield f"<p><b>{escape(section.title)}</b></p>"
        yield _table((section.header, *section.rows), names=section.names)
    for line in problems(summary):
        yield f'<p style="color: red">{escape(line)}</p>'


def _table(rows: Iterator[tuple[str, ...]] | tuple[tuple[str, ...], ...], *, names: int) -> str:
    """Return a table, whose first columns are names and whose others are numbers."""
    lines = (
        "".join(
            f'<td style="text-align: {"left" if number < names else "right"}">{escape(cell)}</td>'
            for number, cell in enumerate(row)
        )
        for row in rows
    )
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"
