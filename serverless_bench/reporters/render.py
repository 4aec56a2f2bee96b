"""Results as text or HTML: what ``print`` and notebooks show."""

import io
from collections.abc import Iterable, Iterator
from html import escape

from serverless_bench.analysis.display import Displayed, register
from serverless_bench.analysis.run_comparison import RunComparison
from serverless_bench.analysis.summary import Summary
from serverless_bench.escaping import for_html
from serverless_bench.reporters import comparison, open_reporter
from serverless_bench.reporters.base import headline, problems, rows
from serverless_bench.reporters.tables import sections


def render(result: Displayed, format: str = "text") -> str:  # noqa: A002
    """Return a result as the commands show it.

    Parameters
    ----------
    result
        A summary, or a comparison.
    format
        ``text``, ``markdown`` or ``html``; of a summary also every other that
        ``sbench report --format`` takes.

    Raises
    ------
    PluginError
        If there is no such format.

    Examples
    --------
    >>> print(sbench.render(sbench.summarize(written)).splitlines()[0])
    write: 4 of 4 functions ok, 0 failed, 0 lost, 0 duplicate
    """
    if isinstance(result, RunComparison):
        text = "\n".join(comparison.lines(result, "text" if format == "html" else format))
        return f"<pre>{escape(text)}</pre>" if format == "html" else text
    if not isinstance(result, Summary):
        raise TypeError(f"a {type(result).__name__} is no result that can be shown")
    if format == "html":
        return "".join(_html(result))
    out = io.StringIO()
    open_reporter(format)(result, out)
    return out.getvalue()


def _html(summary: Summary) -> Iterator[str]:
    """Yield the counts, then the tables, then what went wrong."""
    yield f"<p><b>{for_html(f'{summary.workload}: {headline(summary)}')}</b></p>"
    yield _table(rows(summary), names=2)
    for section in sections(summary):
        yield f"<p><b>{for_html(section.title)}</b></p>"
        yield _table((section.header, *section.rows), names=section.names)
    for line in problems(summary):
        yield f'<p style="color: red">{for_html(line)}</p>'


def _table(rows: Iterable[tuple[str, ...]], *, names: int) -> str:
    """Return a table, whose first columns are names and whose others are numbers."""
    lines = (
        "".join(
            f'<td style="text-align: {"left" if number < names else "right"}">{for_html(cell)}</td>'
            for number, cell in enumerate(row)
        )
        for row in rows
    )
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


register(render)
