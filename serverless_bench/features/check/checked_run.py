"""Check that a saved run is consistent, and compare it with the requests that the store saw.

Variation among the functions of a run is shown by warnings, outliers and stragglers. No data is
discarded. A warning describes conditions that make the results hard to reproduce.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
from msgspec import Struct, to_builtins

from serverless_bench.base.errors import PluginError, UsageError
from serverless_bench.base.escaping import for_terminal
from serverless_bench.base.plugins import TOOLS
from serverless_bench.base.units import NS_PER_S, format_count, format_rate, format_seconds
from serverless_bench.features.check.audited import Audit, Billed
from serverless_bench.job.operations import OperationKind
from serverless_bench.job.spec import batches_words, idle_words
from serverless_bench.metrics.clock_offsets import aligned, worker_offsets
from serverless_bench.metrics.display import Printed
from serverless_bench.metrics.invariants import INVARIANTS
from serverless_bench.metrics.summary import Summary, summarize
from serverless_bench.metrics.throughput import Elapsed, elapsed
from serverless_bench.metrics.timeline import Spans, function_spans, good_operations
from serverless_bench.report.base import completion
from serverless_bench.rundir.digests import file_problems, is_intact
from serverless_bench.rundir.run import AnyRun, Run, as_run
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


Line = tuple[str, str]
"""A line of text and a style: ``bad``, ``warning``, or empty."""


class CheckedRun(Printed, Struct, frozen=True, kw_only=True):
    """Result of ``check``; ``print`` shows it in the format of ``sbench check``.

    Parameters
    ----------
    summary
        Summary of the run; ``withheld`` lists impossible results.
    checks
        Number of self-checks.
    stability
        Warnings about causes of poor repeatability, and the slowest functions.
    contradictions
        Differences between the run's files and the notes of the driver or the job.
    audit
        Differences from the requests that the store saw; None without a request log.

    Examples
    --------
    >>> found = sbench.check(read)
    >>> str(found).splitlines()[0]
    '11 self-checks passed'
    """

    summary: Summary
    checks: int
    stability: Variability
    contradictions: tuple[str, ...] = ()
    audit: Audit | None = None

    @property
    def passed(self) -> bool:
        """Whether the results are possible and match the requests that the store saw."""
        differences = () if self.audit is None else self.audit.differences
        wrong = self.summary.withheld or self.contradictions or differences
        return not wrong and not self.violated_keys

    @property
    def violated_keys(self) -> int:
        """Number of shared keys with an impossible history."""
        return self.summary.violated_keys

    def to_json(self) -> dict[str, Any]:
        """Return the JSON document of ``sbench check``."""
        data = {
            "checks": self.checks,
            "simulated": self.summary.simulated,
            "withheld": self.summary.withheld,
            "contradictions": self.contradictions,
            "violated_keys": self.violated_keys,
            **to_builtins(self.stability),
        }
        return data if self.audit is None else {**data, "request_log": to_builtins(self.audit)}

    def lines(self) -> Iterator[Line]:
        """Yield the lines of the report."""
        if self.summary.simulated is not None:
            yield (
                f"simulated (model {self.summary.simulated}): no requests were sent",
                "warning",
            )
        yield from _self_checks(self.summary, self.checks)
        yield from ((text, "bad") for text in self.contradictions)
        if self.violated_keys:
            keys = format_count(self.violated_keys, "shared key")
            yield f"{keys} with an impossible history: see sbench report", "bad"
        yield from _variability(self.summary, self.stability)
        if self.audit is not None:
            yield from _audit(self.audit)

    def __str__(self) -> str:
        return "\n".join(for_terminal(text) for text, _ in self.lines())


def check(
    run: AnyRun, *, request_log: str | Path | None = None, cleaned: bool = False
) -> CheckedRun:
    """Check that a run's results are possible, and list causes of poor repeatability.

    Parameters
    ----------
    run
        A run, its name or its directory.
    request_log
        File of ``sbench serve --request-log``; differences from the run are listed.
    cleaned
        With a request log: whether all objects of the run must have been deleted.

    Returns
    -------
    CheckedRun
        The results of all checks.

    Raises
    ------
    ArchiveError
        If the directory contains no run.
    UsageError
        If the request log cannot be read, or ``cleaned`` is given without a request log.

    Examples
    --------
    >>> found = sbench.check(written)
    >>> found.passed, found.summary.withheld
    (True, ())
    """
    if cleaned and request_log is None:
        raise UsageError(
            "cleaned needs a request log", hint="name the file of sbench serve --request-log"
        )
    run = as_run(run)
    summary = summarize(run)
    return CheckedRun(
        summary=summary,
        checks=len(INVARIANTS),
        stability=variability(run, summary),
        contradictions=_contradictions(run),
        audit=None if request_log is None else audited(run, Path(request_log), cleaned=cleaned),
    )


def _contradictions(run: Run) -> tuple[str, ...]:
    """Return differences between a run's files and the driver's notes, or else the job."""
    if run.simulated is not None or is_intact(run.stages[0]):
        return file_problems(run)
    # These import executors and workloads, which most checks do not need.
    from serverless_bench.driver.origin import IMPORTED, is_ours
    from serverless_bench.driver.run_keys import run_keys

    derived = run.job.executor != IMPORTED and not is_ours(run.path)
    try:
        return run_keys(run).problems if derived else file_problems(run)
    except PluginError:
        # Only the plugin of its job knows the keys; its files can be compared without it.
        return file_problems(run)


def audited(run: Run, request_log: Path, *, cleaned: bool = False) -> Audit:
    """Compare a run, and the bill if there is one, with a request log."""
    cost = TOOLS.load("bill")(run) if "bill" in TOOLS else None
    billed = Billed(requests=cost.requests, exact=cost.requests_exact) if cost else None
    audit: Audit = TOOLS.load("audit")(run.path, request_log, billed=billed, cleaned=cleaned)
    return audit


def _self_checks(summary: Summary, checks: int) -> Iterator[Line]:
    if not summary.withheld:
        yield f"{checks} self-checks passed", ""
        return
    wrong = format_count(len(summary.withheld), "contradiction")
    yield f"{checks} self-checks made, {wrong} found:", ""
    yield from ((f"  {why}", "bad") for why in summary.withheld)


def _variability(summary: Summary, found: Variability) -> Iterator[Line]:
    yield f"{format_count(len(found.warnings), 'warning')}{':' if found.warnings else ''}", ""
    yield from ((f"  {warning}", "warning") for warning in found.warnings)
    yield f"completion: {completion(summary)}", ""
    if found.max_over_p50 is not None and found.tail_tax is not None:
        stragglers = (
            format_count(len(found.stragglers), "straggler") if found.stragglers else "no straggler"
        )
        text = f"{stragglers} (above {STRAGGLER}x the median); slowest function:"
        text += f" {found.max_over_p50:.2f}x the median; the last 5% took"
        yield f"{text} {found.tail_tax:.0%} of the run", ""
    for straggler in found.stragglers:
        mark = ", an outlier" if straggler.index in found.outliers else ""
        took = format_seconds(straggler.took_s)
        text = f"  function {straggler.index}: {took} on {straggler.worker_id}{mark};"
        yield f"{text} requests {', '.join(straggler.request_ids) or '-'}", ""


def _audit(seen: Audit) -> Iterator[Line]:
    counts = ", ".join(f"{count} {name}" for name, count in seen.requests.items() if count)
    yield (
        f"request log: {counts or 'no'} requests; {format_count(seen.matched, 'attempt')} matched",
        "",
    )
    left = format_count(len(seen.left), "key")
    remarks = {
        f"  {seen.by_key_and_time} name no attempt: matched by key and time": seen.by_key_and_time,
        f"  {seen.not_compared} by functions without a record: not compared": seen.not_compared,
        f"  still there of the run: objects or open uploads of {left}": seen.left,
    }
    yield from ((remark, "") for remark, holds in remarks.items() if holds)
    yield format_count(len(seen.differences), "difference"), ""
    for difference in seen.differences:
        where = "" if difference.key is None else f" {difference.key}:"
        yield f"  {difference.about}:{where} {difference.text}", "bad"
