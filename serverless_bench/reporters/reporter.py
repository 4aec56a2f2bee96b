"""What a reporter is, and how it gets what it can show."""

from typing import Protocol, TextIO, runtime_checkable

from serverless_bench.analysis.summary import Summary
from serverless_bench.rundir.run import Run


class Reporter(Protocol):
    """Formats numbers; computes none."""

    def __call__(self, summary: Summary, out: TextIO) -> None:
        """Write the report."""


@runtime_checkable
class RunReporter(Protocol):
    """A reporter that also shows what only the records tell."""

    def of_run(self, summary: Summary, run: Run, out: TextIO) -> None:
        """Write the report of a run."""


def write_report(reporter: Reporter, summary: Summary, run: Run, out: TextIO) -> None:
    """Write the report of a run, with as much of it as the reporter can show."""
    if isinstance(reporter, RunReporter):
        reporter.of_run(summary, run, out)
    else:
        reporter(summary, out)
