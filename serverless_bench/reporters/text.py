"""A table for a terminal."""

import os
import textwrap
from typing import Final, TextIO

from serverless_bench.analysis.summary import Summary
from serverless_bench.escaping import for_terminal
from serverless_bench.reporters.base import headline, problems, rows
from serverless_bench.reporters.tables import sections
from serverless_bench.reporters.text_table import table

_WIDTH: Final = 100
"""Width of the output if it is not a terminal."""
_PLAIN: Final = "\x1b[0m"
_STYLES: Final = {"bold": "\x1b[1m", "dim": "\x1b[2m", "red": "\x1b[31m"}
"""Select Graphic Rendition (ECMA-48, section 8.3.117)."""


def report(summary: Summary, out: TextIO) -> None:
    """Write the summary line, then a table, then the problems."""
    terminal = out.isatty()
    width = _WIDTH
    if terminal:
        import shutil  # noqa: PLC0415 - it imports compression, which a report does not need

        width = shutil.get_terminal_size().columns
    colored = terminal and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"

    def styled(text: str, *styles: str) -> str:
        plain = for_terminal(text)
        return f"{''.join(_STYLES[style] for style in styles)}{plain}{_PLAIN}" if colored else plain

    undone = summary.ok < summary.requested or summary.latencies.overdue
    violated = summary.contention is not None and summary.contention.violated_keys
    failed = undone or violated or summary.corrupt_objects
    print(
        styled(f"{summary.workload}: {headline(summary)}", "bold", *(["red"] if failed else [])),
        file=out,
    )
    named = [(name, for_terminal(value)) for name, value in rows(summary)]
    indent = max(len(name) for name, _ in named)
    for name, value in named:
        lines = textwrap.wrap(value, max(width - indent - 4, 1)) or [""]
        for label, line in zip((name, *("" for _ in lines)), lines, strict=False):
            print(f" {styled(label.ljust(indent), 'dim')}  {line}".rstrip(), file=out)
    for section in sections(summary):
        print("", styled(f" {section.title}", "bold"), sep="\n", file=out)
        header, *body = table(section.header, section.rows, "text", align=section.align, gap=" ")
        print(styled(header, "dim"), *body, sep="\n", file=out)
    for problem in problems(summary):
        print(styled(f"  {problem}", "red"), file=out)
