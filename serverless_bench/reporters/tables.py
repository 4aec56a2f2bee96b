"""The tables that reporters for people have below the first one."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from serverless_bench.analysis.contention import Contention
from serverless_bench.analysis.latency import PERCENTILES, Latencies, Latency, Times
from serverless_bench.analysis.resource_usage import LibraryUsage
from serverless_bench.analysis.summary import Summary
from serverless_bench.job.operations import OperationKind
from serverless_bench.rundir.tables import rank_of
from serverless_bench.units import common_rate, format_rate, format_seconds, format_size

_SHOWN: Final = (*PERCENTILES, "max")
_ALL: Final = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One table, ready to be printed."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    names: int
    """How many columns are names; the others are numbers."""

    @property
    def align(self) -> str:
        """Names stand to the left, numbers to the right, as ``text_table`` takes it."""
        return "l" * self.names + "r" * (len(self.header) - self.names)


def sections(summary: Summary, *, intervals: bool = False) -> Iterator[Section]:
    """Yield the tables that a report has; those that would say nothing new are left out.

    Parameters
    ----------
    summary
        Of the run.
    intervals
        Whether percentiles of operations have their intervals beside them.
    """
    found = summary.latencies
    if found.notable:
        yield _operations(found)
        yield _times(found, intervals=intervals)
    if summary.libraries:
        yield _libraries(summary.libraries)
    if summary.contention is not None:
        yield _contention(summary.contention)


def _operations(found: Latencies) -> Section:
    # What an open loop never began is a column of its own, where there can be any.
    overdue = ("overdue",) if found.open_loop else ()
    shown = list(_telling(found.by_kind))
    kinds = [row for row in shown if row.size_class is None]
    like = common_rate(row.bytes_per_s for row in shown)

    def cells(names: Iterable[str], rows: Sequence[Latency]) -> tuple[str, ...]:
        late = _total(row.overdue for row in rows)
        per_s = _total(row.operations_per_s for row in rows)
        return (
            *names,
            str(sum(row.ok for row in rows)),
            str(sum(row.failed for row in rows)),
            *("-" if late is None else str(late) for _ in overdue),
            "-" if per_s is None else f"{per_s:.4g}",
            format_size(sum(row.bytes for row in rows)),
            format_rate(_total(row.bytes_per_s for row in rows), like=like),
        )

    rows = [cells(_names(row), [row]) for row in shown]
    if len(kinds) > 1:
        rows.append(cells(("total", _ALL), kinds))
    return Section(
        title="operations (open loop)" if found.open_loop else "operations",
        header=("operation", "size", "ok", "failed", *overdue, "per s", "bytes", "throughput"),
        rows=tuple(rows),
        names=2,
    )


def _total(numbers: Iterable[float | None]) -> float | None:
    """Return the sum of what is known; None if nothing is."""
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


def _times(found: Latencies, *, intervals: bool) -> Section:
    rows = []
    for row in _telling(found.by_kind):
        # What an open loop adds stands next to what a closed one would have shown.
        times = {"latency": row.latency, "response": row.response, "queueing": row.queueing}
        rows += [
            (*_names(row), name, *_percentiles(one, intervals=intervals))
            for name, one in times.items()
            if one
        ]
    return Section(
        title="how long they took",
        header=("operation", "size", "time", *_SHOWN),
        rows=tuple(rows),
        names=3,
    )


def _libraries(found: Sequence[LibraryUsage]) -> Section:
    return Section(
        title="what the library used",
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
            for use in found
        ),
        names=1,
    )


def _contention(found: Contention) -> Section:
    """Return what contenders got; the checks are among the problems, if they found any."""
    times, retries = found.commit_s, found.retries_per_commit
    return Section(
        title="contention",
        header=(
            *("pattern", "contenders", "keys", "commits", "per s", "p50", "p99"),
            *("retries each", "412", "409", "unknown", "taken", "fairness"),
        ),
        rows=(
            (
                found.pattern,
                str(found.contenders),
                str(found.keys),
                str(found.commits),
                "-" if found.commits_per_s is None else f"{found.commits_per_s:.4g}",
                format_seconds(None if times is None else times["p50"]),
                "-"
                if times is None or is_largest("p99", times["n"])
                else format_seconds(times["p99"]),
                "-" if retries is None else f"{retries:.2f}",
                str(found.refused),
                str(found.conflicts),
                str(found.unknown_writes),
                str(found.taken),
                "-" if found.fairness is None else f"{found.fairness:.3f}",
            ),
        ),
        names=1,
    )


def _ratios(use: LibraryUsage) -> tuple[str, str]:
    ratio = use.memory_ratio
    return ("-", "-") if ratio is None else (f"{ratio['p50']:.2f} x", f"{ratio['max']:.2f} x")


def _telling(rows: Sequence[Latency]) -> Iterator[Latency]:
    """Yield the rows without size classes that are all there is of their kind."""
    for row in rows:
        sizes = [one for one in rows if one.kind == row.kind and one.size_class is not None]
        if row.size_class is None or len(sizes) > 1 or row.kind == OperationKind.CALL:
            yield row


def _names(row: Latency) -> tuple[str, str]:
    return row.kind, row.size_class or _ALL


def _percentiles(times: Times, *, intervals: bool) -> tuple[str, ...]:
    shown = [format_seconds(times.percentiles_s[name]) for name in _SHOWN]
    # Of one operation, or of several alike, one value says all.
    if len(set(shown)) == 1:
        return (shown[0], *("" for _ in _SHOWN[1:]))
    for place, (name, (low, high)) in enumerate(times.intervals_s.items()):
        if is_largest(name, times.histogram.count):
            shown[place] = "-"
        if intervals:
            shown[place] += f" ({_interval(low, high)})"
    return tuple(shown)


def is_largest(percentile: str, count: float) -> bool:
    """Tell whether so few values do not tell a percentile above the median from the largest."""
    return percentile != "p50" and rank_of(PERCENTILES[percentile], int(count)) == count


def _interval(low_s: float | None, high_s: float | None) -> str:
    if low_s is None or high_s is None:
        return "not known" if low_s is None else f"{format_seconds(low_s)} or more"
    return f"{format_seconds(low_s)} to {format_seconds(high_s)}"
