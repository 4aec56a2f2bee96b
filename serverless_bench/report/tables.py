"""The tables that follow the first table in reports for people."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from serverless_bench.base.units import (
    common_rate,
    format_number,
    format_rate,
    format_seconds,
    format_size,
)
from serverless_bench.features.array.figures import LibraryUsage
from serverless_bench.features.conditional.figures import Contention
from serverless_bench.features.parquet.figures import Scans
from serverless_bench.features.shuffle.figures import Shuffling
from serverless_bench.job.operations import OperationKind
from serverless_bench.metrics.latency import PERCENTILES, Latencies, Latency, Times
from serverless_bench.metrics.summary import Summary
from serverless_bench.report.base import has_table
from serverless_bench.rundir.tables import rank_of

if TYPE_CHECKING:
    from serverless_bench.features.cost.bill import Bill

_SHOWN: Final = (*PERCENTILES, "max")
_ALL: Final = "all"


class Section(Struct, frozen=True, kw_only=True):
    """A table ready for output."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    names: int
    """Number of columns with names; the other columns are numbers."""

    @property
    def align(self) -> str:
        """Alignment for ``text_table``: names to the left, numbers to the right."""
        return "l" * self.names + "r" * (len(self.header) - self.names)


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
    if summary.libraries:
        yield _libraries(summary.libraries)
    if summary.contention is not None:
        yield _contention(summary.contention)
    if summary.scans is not None:
        yield _scans(summary.scans)
    if summary.shuffle is not None:
        yield _shuffle(summary.shuffle, summary.bill)


def _operations(latencies: Latencies) -> Section:
    # Overdue operations only have a column in an open loop.
    overdue = ("overdue",) if latencies.open_loop else ()
    displayed = list(_telling(latencies.by_kind))
    kinds = [row for row in displayed if row.size_class is None]
    like = common_rate(row.bytes_per_s for row in displayed)

    def cells(names: Iterable[str], rows: Sequence[Latency]) -> tuple[str, ...]:
        late = _total(row.overdue for row in rows)
        per_s = _total(row.operations_per_s for row in rows)
        bytes_per_s = _total(row.bytes_per_s for row in rows)
        if len(rows) > 1 and latencies.span_s and per_s is not None:
            # Kinds of imported runs have their own time each.
            per_s = sum(row.ok for row in rows) / latencies.span_s
            bytes_per_s = bytes_per_s and sum(row.bytes for row in rows) / latencies.span_s
        return (
            *names,
            f"{sum(row.ok for row in rows):,}",
            f"{sum(row.failed for row in rows):,}",
            *("-" if late is None else f"{late:,}" for _ in overdue),
            "-" if per_s is None else format_number(per_s),
            format_size(sum(row.bytes for row in rows)),
            format_rate(bytes_per_s, like=like),
        )

    rows = [cells(_names(row), [row]) for row in displayed]
    if len(kinds) > 1:
        rows.append(cells(("total", _ALL), kinds))
    return Section(
        title="operations (open loop)" if latencies.open_loop else "operations",
        header=("operation", "size", "ok", "failed", *overdue, "per s", "bytes", "throughput"),
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


def _libraries(usages: Sequence[LibraryUsage]) -> Section:
    return Section(
        title="resource usage of the library",
        header=(
            *("operation", "watched", "bytes", "memory p50", "memory max", "peak resident"),
            *("threads", "core-s/GiB"),
        ),
        rows=tuple(
            (
                use.kind,
                str(use.count),
                format_size(use.bytes),
                *_ratios(use),
                "-" if use.rss_peak_bytes is None else format_size(use.rss_peak_bytes),
                "-" if use.threads_peak is None else str(use.threads_peak),
                "-" if use.cpu_s_per_gib is None else f"{use.cpu_s_per_gib:.2f}",
            )
            for use in usages
        ),
        names=1,
    )


def _contention(contention: Contention) -> Section:
    """Return the results of contention; violations are listed among the problems."""
    times, retries = contention.commit_s, contention.retries_per_commit
    return Section(
        title="contention",
        header=(
            *("pattern", "contenders", "keys", "commits", "per s", "p50", "p99"),
            *("retries each", "412", "409", "unknown", "taken", "fairness"),
        ),
        rows=(
            (
                contention.pattern,
                f"{contention.contenders:,}",
                f"{contention.keys:,}",
                f"{contention.commits:,}",
                "-"
                if contention.commits_per_s is None
                else format_number(contention.commits_per_s),
                format_seconds(None if times is None else times["p50"]),
                "-"
                if times is None or is_largest("p99", times["n"])
                else format_seconds(times["p99"]),
                "-" if retries is None else f"{retries:.2f}",
                str(contention.refused),
                str(contention.conflicts),
                str(contention.unknown_writes),
                str(contention.taken),
                "-" if contention.fairness is None else f"{contention.fairness:.3f}",
            ),
        ),
        names=1,
    )


def _scans(scans: Scans) -> Section:
    return Section(
        title="scans",
        header=("files", "footer p50", "requests", "read", "needed", "needed per s"),
        rows=(
            (
                f"{scans.files:,}",
                format_seconds(None if scans.footer_s is None else scans.footer_s["p50"]),
                f"{scans.requests_per_file:.2f} each",
                format_size(scans.read_bytes),
                format_size(scans.needed_bytes),
                format_rate(scans.needed_bytes_per_s),
            ),
        ),
        names=0,
    )


def _shuffle(shuffle: Shuffling, bill: "Bill | None") -> Section:
    return Section(
        title="phases",
        header=("phase", "ended", "planned", "stragglers", "requests", "planned", "503s", "cost"),
        rows=tuple(
            (
                phase.phase,
                format_seconds(phase.end_s),
                format_seconds(phase.planned_end_s),
                format_seconds(phase.straggler_s),
                ", ".join(f"{count:,} {name}" for name, count in phase.requests.items()),
                f"{phase.planned_requests:,}",
                f"{phase.throttled:,}",
                "-" if bill is None or phase.dollars is None else bill.money(phase.dollars),
            )
            for phase in shuffle.phases
        ),
        names=1,
    )


def _ratios(use: LibraryUsage) -> tuple[str, str]:
    ratio = use.memory_ratio
    return ("-", "-") if ratio is None else (f"{ratio['p50']:.2f} x", f"{ratio['max']:.2f} x")


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


def is_largest(percentile: str, count: float) -> bool:
    """Return whether a percentile above the median equals the maximum of a small sample."""
    return percentile != "p50" and rank_of(PERCENTILES[percentile], int(count)) == count


def _interval(low_s: float | None, high_s: float | None) -> str:
    if low_s is None or high_s is None:
        return "not known" if low_s is None else f"{format_seconds(low_s)} or more"
    return f"{format_seconds(low_s)} to {format_seconds(high_s)}"
