"""Find variation among the functions of a run: warnings, outliers and stragglers. Pure functions.

No data is discarded. A warning describes conditions that make the results hard to reproduce.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
from msgspec import Struct

from serverless_bench.base.units import NS_PER_S, format_count, format_rate, format_seconds
from serverless_bench.job.operations import OperationKind
from serverless_bench.job.spec import batches_words, idle_words
from serverless_bench.metrics.clock_offsets import aligned, worker_offsets
from serverless_bench.metrics.summary import Summary
from serverless_bench.metrics.throughput import Elapsed, elapsed
from serverless_bench.metrics.timeline import Spans, function_spans, good_operations
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import Floats, at_percentiles, is_text, median_of, rows_of

STDEV_SHARE: Final = 0.10
EXTREME_SHARE: Final = 0.50
"""pyperf warns if the standard deviation exceeds 10 % of the mean, or if the minimum or maximum
differs from it by 50 % (pyperf/_cli.py, ``format_checks``)."""
OUTLIER_SCORE: Final = 14.826
"""Threshold of hyperfine for ``|x - median| / MAD``: 10 standard deviations of a normal
distribution (hyperfine, outlier_detection.rs)."""
LEAST_DEVIATION: Final = 0.01
"""Replacement for a median absolute deviation of 0, as a share of the median."""
START_SPREAD: Final = 0.25
STRAGGLER: Final = 1.5
"""Multiple of the median duration above which a function is a straggler (Ananthanarayanan et al.,
"Effective straggler mitigation", NSDI 2013: 1.5 times the median task)."""
WORST: Final = 5


class Straggler(Struct, frozen=True, kw_only=True):
    """One of the slowest functions, which took more than ``STRAGGLER`` times the median."""

    index: int
    took_s: float
    worker_id: str | None
    request_ids: tuple[str, ...]
    """Ids of its attempts, slowest first, as needed by the store's operator."""


class Variability(Struct, frozen=True, kw_only=True):
    """Results of ``sbench check`` in addition to the self-checks."""

    warnings: tuple[str, ...]
    outliers: tuple[int, ...]
    """Indices of functions with exceptional durations."""
    max_over_p50: float | None
    """Ratio of the maximum and median durations of functions."""
    tail_tax: float | None
    """Share of the span without pauses that remained when 95 % of the functions were done."""
    stragglers: tuple[Straggler, ...]


def variability(run: Run, summary: Summary) -> Variability:
    """Return the warnings, outliers and stragglers of a run."""
    run = aligned(run, worker_offsets(run))
    times = function_spans(run)
    took = times.took_s
    outliers = times.rows[scores(took) > OUTLIER_SCORE]
    return Variability(
        warnings=(*_spread(times.bytes_per_s), *_circumstances(summary, times), *_repeats(run)),
        outliers=tuple(run.functions["index"][outliers].tolist()),
        max_over_p50=float(took.max() / at_percentiles(took, (50,))[0]) if len(took) else None,
        tail_tax=_tail_tax(times, elapsed(run)),
        stragglers=tuple(_stragglers(run, times)),
    )


def scores(values: Floats) -> Floats:
    """Return the distance of each value from the median in median absolute deviations.

    If more than half of the values are equal, this deviation is 0, and ``LEAST_DEVIATION`` of the
    median is used.
    """
    if not len(values):
        return values
    middle = median_of(values) or 0.0
    away = np.abs(values - middle)
    deviation = median_of(away) or LEAST_DEVIATION * middle
    return away / deviation if deviation else np.zeros_like(away)


def _spread(rates: Floats) -> Iterator[str]:
    if len(rates) < 2:
        return
    mean = float(rates.mean())
    share = float(rates.std(ddof=1)) / mean
    if share >= STDEV_SHARE:
        yield f"rates of functions have a standard deviation of {share:.0%} of their mean"
    for name, value in (("slowest", rates.min()), ("fastest", rates.max())):
        off = abs(float(value) - mean) / mean
        if off >= EXTREME_SHARE:
            yield (
                f"the {name} function ({format_rate(float(value))}) is {off:.0%} off"
                f" the mean ({format_rate(mean)})"
            )


def _circumstances(summary: Summary, times: Spans) -> Iterator[str]:
    cold, stats, latencies = summary.cold_starts, summary.attempt_stats, summary.latencies
    is_steady = summary.steady_bytes_per_s is not None or summary.withheld or latencies.open_loop
    paused, width_s = format_seconds(summary.paused_s), summary.clocks.width_max_s or 0.0
    dropped = latencies.dropped or 0
    remarks = {
        f"the results mix {cold} cold and {summary.ok - cold} warm functions": (
            0 < cold < summary.ok
        ),
        f"the run was interrupted: its results exclude {paused} of inactivity": summary.paused_s,
        f"the driver was suspended for {format_seconds(summary.suspended_s)}": summary.suspended_s,
        f"{stats.failed_attempts:,} of {stats.attempts:,} attempts failed": stats.failed_attempts,
        f"the store throttled {format_count(stats.throttled, 'attempt')}": stats.throttled,
        f"{dropped:,} of {latencies.due or 0:,} operations dropped": dropped,
        "no steady state: 90% of the functions were never active together for 3 s": not is_steady,
        f"a clock is known to within {format_seconds(width_s)}, a segment has 1 s": width_s > 1,
    }
    yield from (remark for remark, holds in remarks.items() if holds)
    if summary.idle_threads:
        yield f"idle threads: {idle_words(summary.idle_threads, summary.threads)}"
    if summary.batches_s is not None:
        concurrency = summary.planned_concurrency
        yield f"batches: {batches_words(summary.requested, concurrency, summary.batches_s)}"
    if summary.neighbours is not None:
        yield summary.neighbours.remark
    if len(times.rows) > 1:
        first_wave = np.sort(times.start_ns)[: summary.planned_concurrency]
        spread_s = float(first_wave[-1] - first_wave[0]) / NS_PER_S
        middle_s = float(at_percentiles(times.took_s, (50,))[0])
        if spread_s > START_SPREAD * middle_s:
            yield (
                f"functions started within {format_seconds(spread_s)} but take"
                f" {format_seconds(middle_s)}; --barrier starts them at the same time"
            )


def _repeats(run: Run) -> Iterator[str]:
    """Yield a remark about objects that were read repeatedly: a cache may answer later reads."""
    operations = run.operations
    if "key" not in operations:
        return
    rows = np.flatnonzero(is_text(operations["kind"], OperationKind.GET) & good_operations(run))
    rows = rows[np.argsort(operations["start_ns"][rows], kind="stable")]
    keys = operations["key"][rows].tolist()
    # The last one of each key, from the end, is its first read.
    first = [*dict(zip(keys[::-1], range(len(rows))[::-1], strict=True)).values()]
    if 2 * len(first) > len(rows) or not len(rows):
        return
    took_s = (operations["end_ns"] - operations["start_ns"])[rows] / NS_PER_S
    is_first = np.zeros(len(rows), dtype=bool)
    is_first[first] = True
    first_s, later_s = (median_of(took_s[mask]) for mask in (is_first, ~is_first))
    yield (
        f"{format_count(len(first), 'object')} read {len(rows) / len(first):.3g} times each: the"
        f" first time in {format_seconds(first_s)}, later in {format_seconds(later_s)} (medians)"
    )


def _tail_tax(times: Spans, time: Elapsed) -> float | None:
    if not len(times.rows):
        return None
    ends = np.sort(times.end_ns)
    begin, end = int(times.start_ns.min()), int(ends[-1])
    almost = int(ends[max(0, -(-len(ends) * 95 // 100) - 1)])
    return time.between_ns(almost, end) / max(time.between_ns(begin, end), 1)


def _stragglers(run: Run, times: Spans) -> Iterator[Straggler]:
    # Empty for a run that was loaded without details.
    names = [name for name in ("start_ns", "end_ns", "request_id") if name in run.attempts]
    took_s = times.took_s
    slow = np.argsort(-took_s, kind="stable")[:WORST]
    if len(slow):
        slow = slow[took_s[slow] > STRAGGLER * at_percentiles(took_s, (50,))[0]]
    for place in slow.tolist():
        row = int(times.rows[place])
        attempts = rows_of(run.attempts, row, names)
        slowest = np.argsort(attempts["start_ns"] - attempts["end_ns"])[:3]
        ids = attempts["request_id"][slowest] if "request_id" in attempts else ()
        yield Straggler(
            index=int(run.functions["index"][row]),
            took_s=float(took_s[place]),
            worker_id=run.functions["worker_id"][row],
            request_ids=tuple(dict.fromkeys(filter(None, ids))),
        )
