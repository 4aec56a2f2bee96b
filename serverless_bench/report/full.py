"""Every figure of a run, for a terminal."""

from typing import TextIO

from serverless_bench.metrics.summary import Summary
from serverless_bench.report.base import problems, rows
from serverless_bench.report.tables import sections
from serverless_bench.report.terminal import write


def report(summary: Summary, out: TextIO) -> None:
    """Write the totals, every table, and everything that went wrong."""
    write(summary, out, rows(summary), sections(summary), [*problems(summary)])
