"""Reports for a terminal: about ten lines, or every figure; wrapped, aligned, coloured."""

import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, TextIO

from serverless_bench.base.escaping import columns_of, for_terminal, is_colored
from serverless_bench.base.plugins import Registry
from serverless_bench.base.units import (
    format_count,
    format_per_s,
    format_rate,
    format_seconds,
    format_size,
)
from serverless_bench.metrics.latency import Latency, Times, is_largest
from serverless_bench.metrics.part import Position, Rows, Section, present
from serverless_bench.metrics.summary import Summary
from serverless_bench.report import pace
from serverless_bench.report.base import (
    headline,
    problems,
    rates_of,
    rows,
    store,
    unmoved,
    verified,
)
from serverless_bench.report.tables import sections
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

    undone = summary.ok < summary.requested or summary.latencies.dropped
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


ADVICE: Final = Registry[Callable[[Summary], Iterable[str]]]("advice", {})
"""Commands, with their prices, that tell more about a run than its report."""
_KINDS: Final = 4
"""Most lines about kinds of operations."""
_LINES: Final = 12
"""Most lines of a report, so that a small terminal shows its command, too."""


def report(summary: Summary, out: TextIO) -> None:
    """Write the totals, the main figures, the first problems, and the command for the rest."""
    remarks = list(problems(summary, named=3))
    # The command notes the first unreadable line, and the last line is below.
    most = _LINES - 1 - bool(summary.skipped_lines)
    placed: dict[Position, list[tuple[str, str]]] = {position: [] for position in Position}
    extra: list[object] = [remarks]
    for part, figures in present(summary):
        shown = [*part.brief(figures, summary)]
        placed[part.position] += shown
        extra.append(part.displaces and shown)
    extra_lines = sum(map(bool, extra)) + len([*pace.waste(summary)])
    most_kinds = max(1, min(_KINDS, _KINDS + 1 - extra_lines))
    write(summary, out, _rows(summary, placed, most_kinds), (), remarks, most=most)
    more = [f"sbench report {for_terminal(summary.argument)} --full"]
    more += chain.from_iterable(ADVICE.load(name)(summary) for name in ADVICE)
    print(f" more: {'; '.join(more)}", file=out)


def full(summary: Summary, out: TextIO) -> None:
    """Write the totals, every table, and everything that went wrong."""
    write(summary, out, rows(summary), sections(summary), [*problems(summary)])


def _rows(
    summary: Summary, placed: Mapping[Position, Rows], most_kinds: int
) -> Iterator[tuple[str, str]]:
    """Yield name and value of each row between the totals and the problems."""
    yield "throughput", "; ".join(_throughput(summary))
    yield "bytes", "; ".join(_bytes(summary))
    kinds = sorted(summary.latencies.of_kinds, key=lambda row: row.ok + row.failed, reverse=True)
    shown = kinds if len(kinds) <= most_kinds else kinds[: most_kinds - 1]
    yield from ((row.kind, ", ".join(_times(row, has_rate=len(kinds) > 1))) for row in shown)
    if len(kinds) > len(shown):
        yield "others", f"{len(kinds) - len(shown)} more kinds of operations"
    yield from placed[Position.RESULT]
    yield from placed[Position.PACE]
    yield from placed[Position.LIMIT]
    yield "store", store(summary)
    yield from pace.waste(summary)
    yield from placed[Position.LAST]


def _throughput(summary: Summary) -> Iterator[str]:
    if summary.withheld:
        yield "withheld, see below"
        return
    rates = rates_of(summary)
    if not rates:
        yield f"- ({unmoved(summary)})"
        return
    took = "" if summary.elapsed_s is None else f" over {format_seconds(summary.elapsed_s)}"
    yield f"{' and '.join(rates)}{took}"
    if summary.steady_bytes_per_s is not None:
        yield f"steady {format_rate(summary.steady_bytes_per_s)}"


def _bytes(summary: Summary) -> Iterator[str]:
    yield f"{format_size(summary.bytes)} in {format_count(summary.operations, 'operation')}"
    if text := verified(summary):
        yield f"verified {text}"
    if summary.attempt_stats.throttled:
        yield f"{summary.attempt_stats.throttled} throttled"


def _times(row: Latency, *, has_rate: bool) -> Iterator[str]:
    """Yield the count, the rate, the failures and the times of one kind of operation."""
    yield f"{row.ok:,} ok"
    if has_rate and row.operations_per_s is not None:
        yield format_per_s(row.operations_per_s)
    if row.failed:
        yield f"{row.failed:,} failed"
    # An open loop counts from the instant at which an operation was due.
    times = row.response or row.latency
    if times is not None:
        yield from _percentiles(times)


def _percentiles(times: Times) -> Iterator[str]:
    """Yield the median, and the 99th percentile unless it is the maximum of so few operations."""
    tail = "max" if is_largest("p99", times.histogram.count) else "p99"
    for name in dict.fromkeys(("p50", tail)):
        yield f"{name} {format_seconds(times.percentiles_s[name])}"
