"""The tables that follow the first table in reports for people."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from serverless_bench.base.units import (
    common_rate,
    format_number,
    format_rate,
    format_seconds,
    format_size,
)
from serverless_bench.job.operations import OperationKind
from serverless_bench.metrics.latency import PERCENTILES, Latencies, Latency, Times, is_largest
from serverless_bench.metrics.part import Section, present
from serverless_bench.metrics.summary import Summary
from serverless_bench.report.base import has_table

_SHOWN: Final = (*PERCENTILES, "max")
_ALL: Final = "all"


def sections(summary: Summary, *, intervals: bool = False) -> Iterator[Section]:
    """Yield the tables of a report, without tables that would add no information.

    Parameters
    ----------
    summary
        Totals of the run.
    intervals
        Whether to show the intervals of percentiles of operations.
    """
    latencies = summary.latencies
    if has_table(summary):
        yield _operations(latencies)
        yield _times(latencies, intervals=intervals)
    for part, figures in present(summary):
        yield from part.tables(figures, summary)


def _operations(latencies: Latencies) -> Section:
    # Dropped operations only have a column in an open loop.
    dropped = ("dropped",) if latencies.open_loop else ()
    displayed = list(_telling(latencies.by_kind))
    kinds = [row for row in displayed if row.size_class is None]
    like = common_rate(row.bytes_per_s for row in displayed)

    def cells(names: Iterable[str], rows: Sequence[Latency]) -> tuple[str, ...]:
        late = _total(row.dropped for row in rows)
        per_s = _total(row.operations_per_s for row in rows)
        bytes_per_s = _total(row.bytes_per_s for row in rows)
        if len(rows) > 1 and latencies.elapsed_s and per_s is not None:
            # Kinds of imported runs have their own time each.
            per_s = sum(row.ok for row in rows) / latencies.elapsed_s
            bytes_per_s = bytes_per_s and sum(row.bytes for row in rows) / latencies.elapsed_s
        return (
            *names,
            f"{sum(row.ok for row in rows):,}",
            f"{sum(row.failed for row in rows):,}",
            *("-" if late is None else f"{late:,}" for _ in dropped),
            "-" if per_s is None else format_number(per_s),
            format_size(sum(row.bytes for row in rows)),
            format_rate(bytes_per_s, like=like),
        )

    rows = [cells(_names(row), [row]) for row in displayed]
    if len(kinds) > 1:
        rows.append(cells(("total", _ALL), kinds))
    return Section(
        title="operations (open loop)" if latencies.open_loop else "operations",
        header=("operation", "size", "ok", "failed", *dropped, "per s", "bytes", "throughput"),
        rows=tuple(rows),
        names=2,
    )


def _total(numbers: Iterable[float | None]) -> float | None:
    """Return the sum of known numbers; None if none are known."""
    known_numbers = [number for number in numbers if number is not None]
    return sum(known_numbers) if known_numbers else None


def _times(latencies: Latencies, *, intervals: bool) -> Section:
    rows = []
    for row in _telling(latencies.by_kind):
        # Show the times specific to an open loop beside the latency of a closed loop.
        times = {"latency": row.latency, "response": row.response, "queueing": row.queueing}
        rows += [
            (*_names(row), name, *_percentiles(values, intervals=intervals))
            for name, values in times.items()
            if values
        ]
    return Section(
        title="durations",
        header=("operation", "size", "time", *_SHOWN),
        rows=tuple(rows),
        names=3,
    )


def _telling(rows: Sequence[Latency]) -> Iterator[Latency]:
    """Yield the rows, without size classes that are the only class of their kind."""
    for row in rows:
        sizes = [item for item in rows if item.kind == row.kind and item.size_class is not None]
        if row.size_class is None or len(sizes) > 1 or row.kind == OperationKind.CALL:
            yield row


def _names(row: Latency) -> tuple[str, str]:
    return row.kind, row.size_class or _ALL


def _percentiles(times: Times, *, intervals: bool) -> tuple[str, ...]:
    texts = [format_seconds(times.percentiles_s[name]) for name in _SHOWN]
    # Show a single value for one operation, or for operations with equal times.
    if len(set(texts)) == 1:
        return (texts[0], *("" for _ in _SHOWN[1:]))
    for place, (name, (low, high)) in enumerate(times.intervals_s.items()):
        if is_largest(name, times.histogram.count):
            texts[place] = "-"
        if intervals:
            texts[place] += f" ({_interval(low, high)})"
    return tuple(texts)


def _interval(low_s: float | None, high_s: float | None) -> str:
    if low_s is None or high_s is None:
        return "not known" if low_s is None else f"{format_seconds(low_s)} or more"
    return f"{format_seconds(low_s)} to {format_seconds(high_s)}"
