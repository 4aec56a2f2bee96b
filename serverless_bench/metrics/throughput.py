"""Compute a run's duration and throughput: best windows, steady window, average. Pure functions.

While no driver is active and no function runs, because the run was interrupted and resumed or the
driver's machine was suspended, no request is pending. Such pauses are excluded from all durations
that contain them completely. Idle time while a driver is active, such as during a launch, is part
of the run.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
from msgspec import Struct, structs

from serverless_bench.base.units import NS_PER_S, bytes_per_second
from serverless_bench.metrics.attempt_stats import unacknowledged
from serverless_bench.metrics.timeline import Segments, measured_operations, segments_of
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import (
    ABSENT,
    EARLIEST,
    Floats,
    Ints,
    Mask,
    Table,
    is_text,
    sum_by,
)

FINE_SEGMENT_NS: Final = 100_000_000
"""Step width of sliding windows: Lambda's network refills every 100 ms."""
_STEPS_NS: Final = tuple(n * FINE_SEGMENT_NS for n in (1, 2, 5, 10))
"""Step widths for longer runs; each of them divides a window of 1 s evenly."""
_MAX_SEGMENTS: Final = 1 << 20
"""29 hours of the shortest steps, 12 days of the longest; longer runs have no peak."""
STEADY_SHARE: Final = 0.9
STEADY_S: Final = 3.0
"""A steady window has at least this share of the planned operations for this duration."""


COMPLETED: Final = {"p50": 50, "p90": 90, "p99": 99, "max": 100}
"""Shares of the requested functions in ``completion_s``, in percent."""

NO_FIGURES: Final[Mapping[str, Any]] = dict.fromkeys(
    (
        *("peak_1s_bytes_per_s", "peak_5s_bytes_per_s", "steady_bytes_per_s", "steady_window_s"),
        *("throughput_bytes_per_s", "elapsed_s"),
    )
)
"""Report fields, with None for runs without such a window."""


class Throughput(Struct, frozen=True, kw_only=True):
    """The throughputs of a run, and values for checking them."""

    figures: Mapping[str, Any]
    """Bytes per second and seconds, by their names in the report."""
    timeline_bytes: int = 0
    """Sum of the timeline, for checking that no byte is missing."""
    mean_in_flight: float = 0.0
    """Mean number of successful operations in progress over the span."""


def throughput(run: Run, good: Mask) -> Throughput:
    """Return the three throughputs of a run.

    Parameters
    ----------
    run
        A saved run with worker timestamps on the driver's clock.
    good
        Mask of successful operations that count, shape ``(operations,)``.
    """
    at_work_ns = span_ns(run)
    figures = {**NO_FIGURES, "elapsed_s": None if span(run) is None else at_work_ns / NS_PER_S}
    if not good.any():
        return Throughput(figures=figures)
    grid = _fine_segments(run)
    in_flight, running = grid.in_flight(), _running(grid)
    moved = int(run.operations["bytes"][good].sum())
    # Operations that transfer no bytes, such as list and delete, have no throughput, not zero.
    if moved:
        all_busy = run.job.max_concurrency * run.job.load.threads
        steady, steady_s = _steady(in_flight, running, grid.segment_ns, all_busy)
        figures |= {
            "steady_bytes_per_s": steady,
            "steady_window_s": steady_s,
            "throughput_bytes_per_s": bytes_per_second(moved, at_work_ns) or None,
        }
        if not (unacknowledged(run) & good).any():
            for seconds in (1, 5):
                figures[f"peak_{seconds}s_bytes_per_s"] = _best(running, grid, seconds * NS_PER_S)
    return Throughput(
        figures=figures,
        timeline_bytes=int(running[-1]),
        mean_in_flight=float(in_flight.sum()) * grid.segment_ns / max(at_work_ns, 1),
    )


def whole_and_peak(run: Run, wanted: Mask) -> tuple[float | None, float | None]:
    """Return the throughput of some operations: over the full span, and in the best second.

    ``wanted`` has a value per operation; failed operations and the warm-up are ignored. The best
    second is None if it would include writes without acknowledged progress.
    """
    grid = _fine_segments(run)
    running = _running(structs.replace(grid, good=grid.good & wanted))
    is_seen = not (unacknowledged(run) & wanted).any()
    return (
        bytes_per_second(int(running[-1]), span_ns(run)),
        _best(running, grid, NS_PER_S) if is_seen else None,
    )


def _fine_segments(run: Run) -> Segments:
    """Return segments that divide a second evenly, unless there would be too many."""
    grid = segments_of(run, FINE_SEGMENT_NS)
    least_ns = -(-(grid.end_ns - grid.start_ns) // _MAX_SEGMENTS)
    step_ns = next((step_ns for step_ns in _STEPS_NS if least_ns <= step_ns), least_ns)
    return structs.replace(grid, segment_ns=step_ns)


def _running(grid: Segments) -> Ints:
    """Return the cumulative bytes at each segment border, shape ``(count + 1,)``."""
    return np.concatenate(([0], np.cumsum(grid.moved()[0])))


def _best(running: Ints, grid: Segments, window_ns: int) -> float | None:
    """Return the best rate of a window; None if the run is shorter or segments do not fit."""
    width, rest = divmod(window_ns, grid.segment_ns)
    if grid.end_ns - grid.start_ns < window_ns or rest:
        return None
    moved = int((running[width:] - running[:-width]).max())
    return bytes_per_second(moved, window_ns)


def _steady(
    in_flight: Floats, running: Ints, segment_ns: int, planned: int
) -> tuple[float, float] | tuple[None, None]:
    """Return the rate and the duration in seconds of the longest steady window, if any.

    Concurrency is averaged over a second, so that the transition between two functions of a
    worker does not end a window.
    """
    width = max(1, NS_PER_S // segment_ns)
    total = np.concatenate(([0.0], np.cumsum(in_flight)))
    # A mean that equals the limit may be less by a rounding error.
    enough = (total[width:] - total[:-width]) / width >= STEADY_SHARE * planned - 1e-9
    edges = np.flatnonzero(np.diff(np.concatenate(([False], enough, [False]))))
    stretches = edges.reshape(-1, 2)
    first, end = max(stretches.tolist(), key=lambda pair: pair[1] - pair[0], default=(0, 0))
    last = end + width - 1
    length_ns = (last - first) * segment_ns
    if length_ns < STEADY_S * NS_PER_S:
        return None, None
    return bytes_per_second(int(running[last] - running[first]), length_ns), length_ns / NS_PER_S


class Elapsed(Struct, frozen=True, kw_only=True, eq=False):
    """A clock that stops during pauses."""

    begins: Ints
    ends: Ints
    """Start and end times of the pauses, ascending, on the driver's clock."""

    def between_each_ns(self, start_ns: Ints, end_ns: Ints) -> Ints:
        """Return the durations of intervals without their pauses."""
        inside = np.minimum.outer(self.ends, end_ns) - np.maximum.outer(self.begins, start_ns)
        return np.asarray(end_ns - start_ns - np.maximum(inside, 0).sum(axis=0), dtype=np.int64)

    def between_ns(self, start_ns: int, end_ns: int) -> int:
        """Return the duration of an interval without pauses."""
        return int(self.between_each_ns(np.asarray(start_ns), np.asarray(end_ns)))


def elapsed(run: Run) -> Elapsed:
    """Return the pauses of a run with worker timestamps on the driver's clock.

    A pause is the remainder of a period without an active driver after subtracting all intervals in
    which a function with a record ran, whatever its status.
    """
    pauses: list[tuple[int, int]] = []
    if absences := sorted((*run.downtimes, *run.suspensions)):
        is_recorded = run.functions["start_ns"] != ABSENT
        starts, ends = (run.functions[name][is_recorded] for name in ("start_ns", "end_ns"))
        order = np.argsort(starts, kind="stable")
        for down_ns, up_ns in absences:
            pauses += _gaps(starts[order], ends[order], down_ns, up_ns)
    begins, stops = np.asarray(pauses, dtype=np.int64).reshape(-1, 2).T
    return Elapsed(begins=begins, ends=stops)


def _gaps(starts: Ints, ends: Ints, down_ns: int, up_ns: int) -> Iterator[tuple[int, int]]:
    """Return the parts of an interval not covered by intervals that are sorted by start."""
    touching = (ends > down_ns) & (starts < up_ns)
    free_from = np.maximum.accumulate(np.append(down_ns, ends[touching]))
    until = np.append(starts[touching], up_ns)
    is_free = free_from < until
    return zip(free_from[is_free].tolist(), until[is_free].tolist(), strict=True)


def span(run: Run) -> tuple[int, int] | None:
    """Return the start of the first and the end of the last measured operation; None if none."""
    # Failed operations are included, because the run waited for them as well.
    measured, operations = measured_operations(run), run.operations
    if not measured.any():
        return None
    return int(operations["start_ns"][measured].min()), int(operations["end_ns"][measured].max())


def span_ns(run: Run) -> int:
    """Return the duration of a run's span without pauses; 0 without a span."""
    bounds = span(run)
    return 0 if bounds is None else elapsed(run).between_ns(*bounds)


def makespan_s(functions: Table, time: Elapsed) -> float | None:
    """Return the time from the first submission to the last collection; None without either."""
    is_submitted = functions["submitted_ns"] != ABSENT
    if not is_submitted.any():
        return None
    first = int(functions["submitted_ns"][is_submitted].min())
    return time.between_ns(first, int(functions["collected_ns"][is_submitted].max())) / NS_PER_S


def completion_s(run: Run, good: Mask, time: Elapsed) -> dict[str, float | None]:
    """Return the time until a share of the functions had succeeded; None if not reached.

    Parameters
    ----------
    run
        A run with worker timestamps on the driver's clock.
    good
        Mask of successful measured operations.
    time
        Pauses of the run.
    """
    times: dict[str, float | None] = dict.fromkeys(COMPLETED)
    is_ok = is_text(run.functions["status"], "ok")
    bounds = span(run)
    if bounds is None or not is_ok.any():
        return times
    # A function without successful operations is done when it returns.
    idle = np.ones(len(is_ok), dtype=np.bool_)
    idle[run.operations["function"][good]] = False
    last = np.where(idle, run.functions["end_ns"], EARLIEST)
    np.maximum.at(last, run.operations["function"][good], run.operations["end_ns"][good])
    done = np.sort(last[is_ok])
    for name, percent in COMPLETED.items():
        needed = -(-run.job.number * percent // 100)
        if needed <= len(done):
            at = max(int(done[needed - 1]), bounds[0])
            times[name] = time.between_ns(bounds[0], at) / NS_PER_S
    return times


class MissingFunctions(Struct, frozen=True, kw_only=True):
    """Bounds of a run's results over all possible results of the missing functions.

    metrics/figures.toml defines each field.
    """

    count: int
    throughput_bytes_per_s: tuple[float, float]
    per_function_p50_bytes_per_s: tuple[float, float] | None


def missing_functions(
    run: Run, good: Mask, rates: Floats, *, whole: float | None
) -> MissingFunctions | None:
    """Return the largest possible effect of unsuccessful functions.

    Parameters
    ----------
    run
        A saved run.
    good
        Mask of successful operations that count, shape ``(operations,)``.
    rates
        Throughputs of the ok functions.
    whole
        Throughput of the run.

    Returns
    -------
    MissingFunctions or None
        None unless functions are missing and other functions transferred bytes.
    """
    functions, bounds = run.functions, span(run)
    is_ok = is_text(functions["status"], "ok")
    missing = run.job.number - int(is_ok.sum())
    if not missing or not len(rates) or whole is None or bounds is None:
        return None
    operations, time = run.operations, elapsed(run)
    moved = sum_by(operations["function"][good], operations["bytes"][good], len(is_ok))
    most = int(moved[is_ok].sum()) + missing * int(moved.max())
    elapsed_s = time.between_ns(*bounds) / NS_PER_S
    # A lost function may have run without transferring bytes until the driver gave up.
    given_up = functions["collected_ns"][is_text(functions["status"], "lost")]
    waited_s = time.between_ns(bounds[0], int(given_up.max(initial=bounds[1]))) / NS_PER_S
    return MissingFunctions(
        count=missing,
        throughput_bytes_per_s=(whole * elapsed_s / waited_s, max(whole, most / elapsed_s)),
        per_function_p50_bytes_per_s=_middle(rates, missing),
    )


def _middle(rates: Floats, missing: int) -> tuple[float, float] | None:
    """Return the median if all missing functions are slower, and faster, than ``rates``."""
    ordered = np.sort(rates)
    half = (len(rates) + missing - 1) / 2
    slow, fast = math.floor(half) - missing, math.ceil(half)
    if slow < 0 or fast >= len(ordered):
        return None
    return float(ordered[slow]), float(ordered[fast])
