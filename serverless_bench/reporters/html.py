"""One page for a browser; docs/page.md says what is on it."""

from typing import TextIO

from serverless_bench.analysis.summary import Summary
from serverless_bench.reporters.page.run import page
from serverless_bench.rundir.run import Run


class _Page:
    """A reporter that shows more of a run than its totals, if it has the run."""

    def __call__(self, summary: Summary, out: TextIO) -> None:
        """Write the page of a summary alone."""
        out.write(page(summary, None))

    def of_run(self, summary: Summary, run: Run, out: TextIO) -> None:
        """Write the page of a run."""
        out.write(page(summary, run))


report = _Page()
