"""Results as text or HTML: what ``print`` and notebooks show."""

import io
from html import escape

from serverless_bench.analysis.display import Displayed
from serverless_bench.analysis.run_comparison import RunComparison
from serverless_bench.analysis.summary import Summary
from serverless_bench.reporters import comparison, open_reporter
from serverless_bench.reporters.html import html


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
        return html(result)
    out = io.StringIO()
    open_reporter(format)(result, out)
    return out.getvalue()
