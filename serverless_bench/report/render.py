"""Format results as text or HTML for ``print`` and notebooks."""

import io
from collections.abc import Iterable, Iterator
from html import escape

from serverless_bench.base.escaping import for_html
from serverless_bench.metrics.display import Displayed, Lined, register
from serverless_bench.metrics.summary import Summary
from serverless_bench.report import open_reporter
from serverless_bench.report.base import headline, problems, rows
from serverless_bench.report.tables import sections


def render(result: Displayed, format: str = "text") -> str:
    """Return a result in the format of the command line.

    Parameters
    ----------
    result
        A summary, or a comparison.
    format
        ``text``, ``markdown`` or ``html``; for a summary also any other format of
        ``sbench report --format``.

    Raises
    ------
    PluginError
        If the format does not exist.

    Examples
    --------
    >>> print(sbench.render(sbench.summarize(written)).splitlines()[0])
    write: 4 of 4 functions ok, 0 failed, 0 lost, 0 duplicate
    """
    if isinstance(result, Lined):
        text = "\n".join(result.lines("text" if format == "html" else format))
        return f"<pre>{escape(text)}</pre>" if format == "html" else text
    if not isinstance(result, Summary):
        raise TypeError(f"expected a summary or a comparison, got a {type(result).__name__}")
    if format == "html":
        return "".join(_html(result))
    out = io.StringIO()
    open_reporter(format)(result, out)
    return out.getvalue()


def _html(summary: Summary) -> Iterator[str]:
    """Yield the summary line, then the tables, then the problems."""
    yield f"<p><b>{for_html(f'{summary.workload}: {headline(summary)}')}</b></p>"
    yield _table(rows(summary), names=2)
    for section in sections(summary):
        yield f"<p><b>{for_html(section.title)}</b></p>"
        yield _table((section.header, *section.rows), names=section.names)
    yield from (f'<p style="color: red">{for_html(line)}</p>' for line in problems(summary))


def _table(rows: Iterable[tuple[str, ...]], *, names: int) -> str:
    """Return a table whose first columns are names and whose other columns are numbers."""
    lines = (
        "".join(
            f'<td style="text-align: {"left" if number < names else "right"}">{for_html(cell)}</td>'
            for number, cell in enumerate(row)
        )
        for row in rows
    )
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


register(render)
