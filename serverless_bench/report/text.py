"""About ten lines for a terminal: the throughput, what bounded it, what it cost."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Final, TextIO

from serverless_bench.base.escaping import for_terminal
from serverless_bench.base.plugins import Registry
from serverless_bench.base.units import format_count, format_per_s, format_rate, format_seconds
from serverless_bench.metrics.latency import Latency, Times, is_largest
from serverless_bench.metrics.part import Position, Rows, present
from serverless_bench.metrics.summary import Summary
from serverless_bench.report import pace
from serverless_bench.report.base import both_units, problems, rates_of, store, unmoved, verified
from serverless_bench.report.terminal import write

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
    extra: list[object] = [remarks, summary.stability]
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


def _rows(
    summary: Summary, placed: Mapping[Position, Rows], most_kinds: int
) -> Iterator[tuple[str, str]]:
    """Yield name and value of each row between the totals and the problems."""
    yield "throughput", "; ".join(_throughput(summary))
    yield "bytes", "; ".join(_bytes(summary))
    kinds = sorted(summary.latencies.of_kinds, key=lambda row: row.ok + row.failed, reverse=True)
    shown = kinds if len(kinds) <= most_kinds else kinds[: most_kinds - 1]
    for row in shown:
        yield row.kind, ", ".join(_times(row, has_rate=len(kinds) > 1))
    if len(kinds) > len(shown):
        yield "others", f"{len(kinds) - len(shown)} more kinds of operations"
    yield from placed[Position.RESULT]
    if stable := pace.stability(summary.stability):
        yield "stability", stable
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
    took = "" if summary.span_s is None else f" over {format_seconds(summary.span_s)}"
    yield f"{' and '.join(rates)}{took}"
    if summary.steady_bytes_per_s is not None:
        yield f"steady {format_rate(summary.steady_bytes_per_s)}"


def _bytes(summary: Summary) -> Iterator[str]:
    yield f"{both_units(summary.bytes)} in {format_count(summary.operations, 'operation')}"
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
