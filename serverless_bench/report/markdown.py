"""A table for a README or an issue."""

from typing import TextIO

from serverless_bench.base.escaping import for_markdown, for_markdown_row
from serverless_bench.metrics.summary import Summary
from serverless_bench.report.base import headline, problems, rows
from serverless_bench.report.tables import sections
from serverless_bench.report.text_table import table


def report(summary: Summary, out: TextIO) -> None:
    """Write the summary line, then a table, then the problems."""
    counts = for_markdown(headline(summary))
    out.write(f"**{for_markdown(summary.workload)}**: {counts}\n\n| | |\n| --- | --- |\n")
    out.writelines(f"{for_markdown_row(row)}\n" for row in rows(summary))
    for section in sections(summary):
        out.write(f"\n**{for_markdown(section.title)}**\n\n")
        lines = table(section.header, section.rows, "markdown", align=section.align)
        out.writelines(f"{line}\n" for line in [*lines][:-1])
    out.writelines(f"\n- {for_markdown(line)}" for line in problems(summary))
    out.write("\n")
