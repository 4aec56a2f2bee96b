"""A table for a terminal."""

from typing import TextIO

from rich.console import Console
from rich.table import Table

from serverless_bench.analysis.summary import Summary
from serverless_bench.reporters.base import headline, problems, rows
from serverless_bench.reporters.tables import Section, sections

_WIDTH = 100


def report(summary: Summary, out: TextIO) -> None:
    """Write the counts, then a table, then what went wrong."""
    width = None if out.isatty() else _WIDTH
    console = Console(file=out, width=width, highlight=False, markup=False)
    undone = summary.ok < summary.requested or summary.latencies.overdue
    failed = undone or summary.corrupt_objects
    table = Table(box=None, show_header=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for name, value in rows(summary):
        table.add_row(name, value)
    with console.capture() as captured:
        first = f"{summary.workload}: {headline(summary)}"
        console.print(first, style="bold red" if failed else "bold", soft_wrap=True)
        console.print(table)
        for section in sections(summary):
            console.print(f"\n {section.title}", style="bold")
            console.print(_table(section))
        for line in problems(summary):
            console.print(f"  {line}", style="red", soft_wrap=True)
    # The table fills its lines with blanks, which nobody wants in a file.
    out.writelines(f"{line.rstrip()}\n" for line in captured.get().splitlines())


def _table(section: Section) -> Table:
    table = Table(box=None, header_style="dim", padding=(0, 1, 0, 0), pad_edge=True)
    for number, name in enumerate(section.header):
        table.add_column(name, justify="left" if number < section.names else "right", no_wrap=True)
    for row in section.rows:
        table.add_row(*row)
    return table
