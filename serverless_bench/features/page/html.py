"""A page for a browser; README.md describes its content."""

from typing import TextIO

from serverless_bench.features.page.run import page
from serverless_bench.metrics.summary import Summary
from serverless_bench.rundir.run import Run


class _Page:
    """A reporter that shows charts in addition to totals, if the run is available."""

    def __call__(self, summary: Summary, out: TextIO) -> None:
        """Write the page of a summary without its run."""
        out.write(page(summary, None))

    def of_run(self, summary: Summary, run: Run, out: TextIO) -> None:
        """Write the page of a run."""
        out.write(page(summary, run))


report = _Page()
