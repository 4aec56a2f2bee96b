"""A table for a README or an issue."""

from typing import TextIO

from serverless_bench.reduce import Summary
from serverless_bench.reporters.base import headline, problems, rows


def report(summary: Summary, out: TextIO) -> None:
    """Write the counts, then a table, then what went wrong."""
    out.write(f"**{summary.phase}**: {headline(summary)}\n\n| | |\n| --- | --- |\n")
    out.writelines(f"| {name} | {value} |\n" for name, value in rows(summary))
    out.writelines(f"\n- {line}" for line in problems(summary))
    out.write("\n")
