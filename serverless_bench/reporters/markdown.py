"""A table for a README or an issue."""

from typing import TextIO

from serverless_bench.analysis.summary import Summary
from serverless_bench.escaping import for_markdown, for_markdown_row
from serverless_bench.reporters.base import headline, problems, rows
from serverless_bench.reporters.tables import sections


def report(summary: Summary, out: TextIO) -> None:
    """Write the counts, then a table, then what went wrong."""
    counts = for_markdown(headline(summary))
    out.write(f"**{for_markdown(summary.workload)}**: {counts}\n\n| | |\n| --- | --- |\n")
    out.writelines(f"{for_markdown_row(row)}\n" for row in rows(summary))
    for section in sections(summary):
        marks = ["---"] * section.names + ["--:"] * (len(section.header) - section.names)
        out.write(f"\n**{for_markdown(section.title)}**\n\n")
        lines = (section.header, marks, *section.rows)
        out.writelines(f"{for_markdown_row(cells)}\n" for cells in lines)
    out.writelines(f"\n- {for_markdown(line)}" for line in problems(summary))
    out.write("\n")
