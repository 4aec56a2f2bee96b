"""Writing a report to a terminal: wrapped, aligned, coloured."""

import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import Final, TextIO

from serverless_bench.base.escaping import columns_of, for_terminal, is_colored
from serverless_bench.base.units import format_count
from serverless_bench.metrics.part import Section
from serverless_bench.metrics.summary import Summary
from serverless_bench.report.base import headline
from serverless_bench.report.text_table import table

_WIDTH: Final = 100
"""Width of the output if it is not a terminal."""
_NARROW: Final = 80
"""Columns below which a report may have more lines."""
_PLAIN: Final = "\x1b[0m"
_STYLES: Final = {"bold": "\x1b[1m", "dim": "\x1b[2m", "red": "\x1b[31m"}
"""Select Graphic Rendition (ECMA-48, section 8.3.117)."""


def write(
    summary: Summary,
    out: TextIO,
    fields: Iterable[tuple[str, str]],
    tables: Iterable[Section],
    remarks: Sequence[str],
    *,
    most: int = sys.maxsize,
) -> None:
    """Write the totals, the fields, the tables and the remarks of a report.

    Parameters
    ----------
    summary
        The reduced run, for the totals and the colour.
    out
        A terminal or a file; the lines of a file are not wrapped.
    fields
        Name and value of each row of the first table.
    tables
        Further tables.
    remarks
        Lines about what went wrong.
    most
        Lines of the report on 80 columns: values are shortened and remarks counted to fit.
    """
    longest = columns_of(out)
    width = longest if out.isatty() else _WIDTH
    left = most * _NARROW // min(width, _NARROW)
    colored = is_colored(out)

    def styled(text: str, *styles: str) -> str:
        plain = for_terminal(text)
        return f"{''.join(_STYLES[style] for style in styles)}{plain}{_PLAIN}" if colored else plain

    undone = summary.ok < summary.requested or summary.latencies.overdue
    failed = undone or summary.violated_keys or summary.corrupt_objects
    for line in textwrap.wrap(f"{summary.workload}: {headline(summary)}", longest):
        print(styled(line, "bold", *(["red"] if failed else [])), file=out)
        left -= 1
    named = [(name, for_terminal(value)) for name, value in fields]
    indent = max(len(name) for name, _ in named)
    values = [value for _, value in named]
    wrapped = _wrapped(values, max(width - indent - 4, 1), left - bool(remarks))
    for (name, _), lines in zip(named, wrapped, strict=True):
        for label, line in zip((name, *("" for _ in lines)), lines, strict=False):
            print(f" {styled(label.ljust(indent), 'dim')}  {line}".rstrip(), file=out)
            left -= 1
    for section in tables:
        print("", styled(f" {section.title}", "bold"), sep="\n", file=out)
        header, *body = table(
            *(section.header, section.rows, "text"),
            align=section.align,
            gap=" ",
            named=section.names,
            width=longest,
        )
        print(styled(header, "dim"), *body, sep="\n", file=out)
    for line in _fitting(remarks, longest - 2, max(left, 1)):
        print(styled(f"  {line}", "red"), file=out)


def _wrapped(values: list[str], width: int, most: int) -> list[list[str]]:
    """Return the lines of each value; values get one line, the last first, to fit ``most``."""
    wrapped = [textwrap.wrap(value, width) or [""] for value in values]
    for number in reversed(range(len(values))):
        if sum(map(len, wrapped)) > most:
            wrapped[number] = [textwrap.shorten(values[number], width, placeholder=" ...")]
    return wrapped


def _fitting(remarks: Sequence[str], width: int, most: int) -> list[str]:
    """Return remarks in lines; their number and the first if there would be more than ``most``."""
    lines = [line for remark in remarks for line in textwrap.wrap(remark, width)]
    if len(lines) <= most:
        return lines
    text = f"{format_count(len(remarks), 'problem')}, see --full: {remarks[0]}"
    return [textwrap.shorten(text, width, placeholder=" ...")]
