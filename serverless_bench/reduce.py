"""Turn a run into totals. Pure: no I/O, no clock, no formatting.

Only operations that succeeded, of invocations that count, contribute bytes: goodput.
What failed tries moved is ``retried_bytes``.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from serverless_bench.archive import Run
from serverless_bench.columns import ABSENT, Floats, Ints, Mask, Table, is_text
from serverless_bench.series import Timeline, counted, good_operations, timeline
from serverless_bench.units import GIB, NS_PER_S, bytes_per_second

FINE_SEGMENT_NS: Final = 100_000_000
"""Windows slide in steps of this length: Lambda's network refills every 100 ms."""
_MAX_SEGMENTS: Final = 1 << 17
STEADY_SHARE: Final = 0.9
STEADY_S: Final = 3.0
"""A steady window has at least this share of the planned concurrency for this long."""
MAX_CORRUPT: Final = 50
REPORT_SCHEMA: Final = 1
"""Raised when a field of the JSON report changes its meaning or goes."""
RATE_PERCENTILES: Final = (1, 5, 50, 95, 99)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The totals of one run; docs/report.md explains each for users.

    ``requested = ok + failed + lost``, and records received = ``ok + failed +
    duplicate``. Rates are None where the run has no such window or no bytes.
    """

    run_id: str
    name: str
    phase: str
    """The workload: write or read."""
    client: str
    executor: str
    requested: int
    ok: int
    failed: int
    lost: int
    duplicate: int
    ended: bool
    """Whether the driver came to an end."""
    skipped_lines: int
    bytes: int
    """Moved by operations that succeeded."""
    verified_bytes: int
    corrupt_objects: int
    bad_bytes: int
    unknown_objects: int
    """Objects that were read but not written by sbench, hence not compared."""
    peak_1s_bytes_per_s: float | None
    peak_5s_bytes_per_s: float | None
    steady_bytes_per_s: float | None
    steady_window_s: float | None
    whole_bytes_per_s: float | None
    span_s: float | None
    """First operation's start to last operation's end, by the workers' clocks."""
    makespan_s: float | None
    """First submission to last return, by the driver's clock."""
    done_s: Mapping[str, float | None]
    """t50, t90, t99, t100: when that share of the requested functions had succeeded,
    in seconds since the first operation's start; None if it never did."""
    per_function_bytes_per_s: Mapping[str, float] | None
    """Percentiles p1 ... p99 over functions that are ok: bytes over first start to last end."""
    ttfb_s: Mapping[str, float] | None
    """Percentiles of first byte minus start; None for writes."""
    ack_s: Mapping[str, float] | None
    """Percentiles of end minus last byte sent; None for reads."""
    operations: int
    failed_operations: int
    attempts: int
    throttled: int
    retried_bytes: int
    """Moved by tries that failed."""
    errors: Mapping[str, int]
    """Failed functions by their first error, and lost ones by cause."""
    cold_starts: int
    workers: int
    cpu_s_per_gib: float | None
    """Workers' user and system time per GiB of goodput."""
    max_rss_bytes: int | None
    planned_concurrency: int
    object_bytes: int | None
    corrupt: tuple[Mapping[str, Any], ...]
    """Up to ``MAX_CORRUPT`` bad ranges, with key, offset, length and what was there."""

    def to_json(self) -> dict[str, Any]:
        """Return the JSON document of a report; docs/report.md lists its fields.

        The fields are this class's, and ``t50_s`` ... ``t100_s`` in place of ``done_s``.
        """
        data = {"report_schema": REPORT_SCHEMA, **asdict(self)}
        done = data.pop("done_s")
        return data | {f"{name}_s": value for name, value in done.items()}


def summarize(run: Run) -> Summary:
    """Return the totals of a run."""
    functions, operations, attempts = run.functions, run.operations, run.attempts
    counts = Counter(functions["status"])
    counts_in = counted(run)
    good = good_operations(run)
    failed_tries = ~is_text(attempts["error"], None)
    moved = int(operations["bytes"][good].sum())
    mine = counts_in[operations["function"]]
    unknown = is_text(operations["kind"], "get") & (operations["size"] == ABSENT)
    windows = _windows(run, good)
    reported = functions["max_rss_bytes"] > 0
    cpu_s = float((functions["cpu_user_s"] + functions["cpu_sys_s"])[counts_in].sum())
    return Summary(
        run_id=run.run_id,
        name=run.job.name,
        phase=run.job.workload,
        client=run.job.target.client,
        executor=run.job.executor,
        requested=run.job.invocations,
        ok=counts["ok"],
        failed=counts["failed"],
        lost=counts["lost"],
        duplicate=counts["duplicate"],
        ended=run.ended,
        skipped_lines=run.skipped_lines,
        bytes=moved,
        verified_bytes=int(operations["verified_bytes"][good].sum()),
        corrupt_objects=int((operations["bad_ranges"][mine] > 0).sum()),
        bad_bytes=int(operations["bad_bytes"][mine].sum()),
        unknown_objects=int((unknown & good).sum()),
        peak_1s_bytes_per_s=windows.peak_1s,
        peak_5s_bytes_per_s=windows.peak_5s,
        steady_bytes_per_s=windows.steady,
        steady_window_s=windows.steady_s,
        whole_bytes_per_s=windows.whole,
        span_s=windows.span_s,
        makespan_s=_makespan_s(functions),
        done_s=_done_s(run, good),
        per_function_bytes_per_s=percentiles(function_rates(run)),
        ttfb_s=_latency_s(operations, good, "start_ns", "first_byte_ns"),
        ack_s=_latency_s(operations, good, "last_byte_sent_ns", "end_ns"),
        operations=int(mine.sum()),
        failed_operations=int((mine & ~good).sum()),
        attempts=len(attempts["function"]),
        throttled=int(is_text(attempts["error"], "throttled").sum()),
        retried_bytes=int(attempts["bytes"][failed_tries].sum()),
        errors=_errors(functions),
        cold_starts=int((functions["cold_start"][counts_in] > 0).sum()),
        workers=len(set(functions["worker_id"][counts_in & reported])),
        cpu_s_per_gib=cpu_s / (moved / GIB) if moved else None,
        max_rss_bytes=int(functions["max_rss_bytes"].max()) if reported.any() else None,
        planned_concurrency=min(run.job.concurrency, run.job.invocations),
        object_bytes=run.job.object_bytes,
        corrupt=_corrupt(run),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Windows:
    peak_1s: float | None = None
    peak_5s: float | None = None
    steady: float | None = None
    steady_s: float | None = None
    whole: float | None = None
    span_s: float | None = None


def _windows(run: Run, good: Mask) -> _Windows:
    if not good.any():
        return _Windows()
    span_ns = int(run.operations["end_ns"][good].max() - run.operations["start_ns"][good].min())
    segment_ns = FINE_SEGMENT_NS * max(1, -(-span_ns // (FINE_SEGMENT_NS * _MAX_SEGMENTS)))
    fine = timeline(run, segment_ns=segment_ns)
    running = np.concatenate(([0], np.cumsum(fine.segment_bytes)))
    steady = _steady(fine, running, min(run.job.concurrency, run.job.invocations))
    return _Windows(
        peak_1s=_best(running, span_ns, segment_ns, NS_PER_S),
        peak_5s=_best(running, span_ns, segment_ns, 5 * NS_PER_S),
        steady=steady[0] if steady else None,
        steady_s=steady[1] if steady else None,
        whole=bytes_per_second(int(running[-1]), span_ns) or None,
        span_s=span_ns / NS_PER_S,
    )


def _best(running: Ints, span_ns: int, segment_ns: int, window_ns: int) -> float | None:
    """Return the rate of the best window; None if the run is shorter than one."""
    width = window_ns // segment_ns
    if span_ns < window_ns or width < 1:
        return None
    moved = int((running[width:] - running[:-width]).max())
    return bytes_per_second(moved, width * segment_ns)


def _steady(fine: Timeline, running: Ints, planned: int) -> tuple[float, float] | None:
    """Return rate and length in seconds of the longest steady window, if there is one.

    Concurrency is averaged over one second, so that the moment between two functions of
    one worker does not end a window.
    """
    width = max(1, NS_PER_S // fine.segment_ns)
    if len(fine.in_flight) < width:
        return None
    total = np.concatenate(([0.0], np.cumsum(fine.in_flight)))
    enough = (total[width:] - total[:-width]) / width >= STEADY_SHARE * planned
    edges = np.flatnonzero(np.diff(np.concatenate(([False], enough, [False]))))
    begins, ends = edges[::2], edges[1::2]
    if not len(begins):
        return None
    longest = int(np.argmax(ends - begins))
    first, last = int(begins[longest]), int(ends[longest]) + width - 1
    length_ns = (last - first) * fine.segment_ns
    if length_ns < STEADY_S * NS_PER_S:
        return None
    moved = int(running[last] - running[first])
    return bytes_per_second(moved, length_ns), length_ns / NS_PER_S


def _makespan_s(functions: Table) -> float | None:
    there = functions["submitted_ns"] != ABSENT
    if not there.any():
        return None
    first = functions["submitted_ns"][there].min()
    return float(functions["collected_ns"][there].max() - first) / NS_PER_S


def _done_s(run: Run, good: Mask) -> dict[str, float | None]:
    names: dict[str, float | None] = {"t50": None, "t90": None, "t99": None, "t100": None}
    is_ok = is_text(run.functions["status"], "ok")
    if not good.any() or not is_ok.any():
        return names
    last = np.full(len(is_ok), np.iinfo(np.int64).min)
    np.maximum.at(last, run.operations["function"][good], run.operations["end_ns"][good])
    done = np.sort(last[is_ok]) - run.operations["start_ns"][good].min()
    for name in names:
        needed = -(-run.job.invocations * int(name[1:]) // 100)
        if needed <= len(done):
            names[name] = float(done[needed - 1]) / NS_PER_S
    return names


def function_rates(run: Run) -> Floats:
    """Return bytes per second of every function that is ok and moved bytes.

    Its bytes over the time from its first operation's start to its last one's end.
    """
    operations, good = run.operations, good_operations(run)
    size = len(run.functions["index"])
    moved = np.zeros(size, dtype=np.int64)
    first = np.full(size, np.iinfo(np.int64).max)
    last = np.full(size, np.iinfo(np.int64).min)
    row = operations["function"][good]
    np.add.at(moved, row, operations["bytes"][good])
    np.minimum.at(first, row, operations["start_ns"][good])
    np.maximum.at(last, row, operations["end_ns"][good])
    there = is_text(run.functions["status"], "ok") & (moved > 0)
    return np.asarray(
        moved[there] * NS_PER_S / np.maximum(last[there] - first[there], 1), dtype=np.float64
    )


def _latency_s(operations: Table, good: Mask, begin: str, end: str) -> dict[str, float] | None:
    there = good & (operations[begin] != ABSENT) & (operations[end] != ABSENT)
    return percentiles((operations[end][there] - operations[begin][there]) / NS_PER_S)


def percentiles(values: Floats) -> dict[str, float] | None:
    """Return p1, p5, p50, p95 and p99 of raw values, or None if there are none.

    NumPy's default method, linear interpolation between order statistics (Hyndman and
    Fan's type 7).
    """
    if not len(values):
        return None
    found = np.percentile(values, RATE_PERCENTILES)
    return {f"p{p}": float(v) for p, v in zip(RATE_PERCENTILES, found, strict=True)}


def _errors(functions: Table) -> dict[str, int]:
    status = functions["status"]
    bad = is_text(status, "failed") | is_text(status, "lost")
    return dict(Counter(str(error) for error in functions["error"][bad]).most_common())


def _corrupt(run: Run) -> tuple[Mapping[str, Any], ...]:
    bad = run.bad_ranges
    rows = np.flatnonzero(counted(run)[bad["function"]])[:MAX_CORRUPT]
    return tuple(
        {
            **{name: bad[name][row] for name in ("key", "found", "found_key", "found_key_hash")},
            **{name: int(bad[name][row]) for name in ("offset", "length", "bad_bytes")},
            **{
                name: None if bad[name][row] == ABSENT else int(bad[name][row])
                for name in ("found_generation", "found_offset")
            },
        }
        for row in rows
    )
