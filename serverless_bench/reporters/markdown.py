"""A table for a README or an issue."""

from typing import TextIO

from serverless_bench.analysis.summary import Summary
from serverless_bench.reporters.base import headline, problems, rows
from serverless_bench.reporters.tables import sections


def report(summary: Summary, out: TextIO) -> None:
    """Write the counts, then a table, then what went wrong."""
    out.write(f"**{summary.workload}**: {headline(summary)}\n\n| | |\n| --- | --- |\n")
    out.writelines(f"| {name} | {value} |\n" for name, value in rows(summary))
    for section in sections(summary):
        marks = ["---"] * section.names + ["--:"] * (len(section.header) - section.names)
        lines = (section.header, marks, *section.rows)
        out.write(f"\n**{section.title}**\n\n")
        out.writelines(f"| {' | '.join(cells)} |\n" for cells in lines)
    out.writelines(f"\n- {line}" for line in problems(summary))
    out.write("\n")
