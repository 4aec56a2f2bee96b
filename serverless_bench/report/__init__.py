"""Formats of reports, with one file each, and a line in the table below."""

from typing import TYPE_CHECKING, Final, Protocol, TextIO, runtime_checkable

from serverless_bench.base.plugins import Registry

if TYPE_CHECKING:
    # These imports are slow, and --help only needs the names.
    from serverless_bench.metrics.summary import Summary
    from serverless_bench.rundir.run import Run


class Reporter(Protocol):
    """Formats values without computing any."""

    def __call__(self, summary: "Summary", out: TextIO) -> None:
        """Write the report."""


@runtime_checkable
class RunReporter(Protocol):
    """A reporter that can also show details from the records."""

    def of_run(self, summary: "Summary", run: "Run", out: TextIO) -> None:
        """Write the report of a run."""


REPORTERS: Final = Registry[Reporter](
    "reporters",
    {
        "full": "serverless_bench.report.text:full",
        "json": "serverless_bench.report.json:report",
        "markdown": "serverless_bench.report.markdown:report",
        "text": "serverless_bench.report.text:report",
    },
)

open_reporter: Final = REPORTERS.load
FOR_TERMINALS: Final = frozenset({"full", "text"})
"""Reporters beside which a command may print other lines."""


def write_report(reporter: Reporter, summary: "Summary", run: "Run", out: TextIO) -> None:
    """Write the report of a run, including details if the reporter supports them."""
    if isinstance(reporter, RunReporter):
        reporter.of_run(summary, run, out)
    else:
        reporter(summary, out)
