"""Ways to show a reduced run: one file and one line here each."""

from typing import TYPE_CHECKING, Final, Protocol, TextIO, runtime_checkable

from serverless_bench.plugins import Registry

if TYPE_CHECKING:
    # They take long to load, and help asks for the names alone.
    from serverless_bench.analysis.summary import Summary
    from serverless_bench.rundir.run import Run


class Reporter(Protocol):
    """Formats numbers; computes none."""

    def __call__(self, summary: "Summary", out: TextIO) -> None:
        """Write the report."""


@runtime_checkable
class RunReporter(Protocol):
    """A reporter that also shows what only the records tell."""

    def of_run(self, summary: "Summary", run: "Run", out: TextIO) -> None:
        """Write the report of a run."""


REPORTERS: Final = Registry[Reporter](
    "reporters",
    {
        "csv": "serverless_bench.reporters.csv:report",
        "full": "serverless_bench.reporters.full:report",
        "html": "serverless_bench.reporters.html:report",
        "json": "serverless_bench.reporters.json:report",
        "markdown": "serverless_bench.reporters.markdown:report",
        "operations": "serverless_bench.reporters.operations:report",
        "text": "serverless_bench.reporters.text:report",
    },
)

open_reporter: Final = REPORTERS.load
FOR_TERMINALS: Final = frozenset({"full", "text"})
"""Reporters beside which a command may print other lines."""


def write_report(reporter: Reporter, summary: "Summary", run: "Run", out: TextIO) -> None:
    """Write the report of a run, with as much of it as the reporter can show."""
    if isinstance(reporter, RunReporter):
        reporter.of_run(summary, run, out)
    else:
        reporter(summary, out)
