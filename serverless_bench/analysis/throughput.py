"""How long a run took, and its throughputs: best windows, steady stretch, all of it. Pure.

A run that was interrupted and resumed, or whose driver's machine was suspended, has a stretch in
which no driver ran and no function worked: nobody waited for the store then. Such pauses count
in no duration that has both of their ends in it. What lies between two functions while a driver
is there (a launch, say) is a part of the run.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from serverless_bench.analysis.timeline import Segments, measured_operations, segments_of
from serverless_bench.analysis.visibility import unacknowledged
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
from serverless_bench.units import NS_PER_S, bytes_per_second

FINE_SEGMENT_NS: Final = 100_000_000
"""Windows slide in steps of this length: Lambda's network refills every 100 ms."""
_STEPS_NS: Final = tuple(n * FINE_SEGMENT_NS for n in (1, 2, 5, 10))
"""Longer steps of longer runs: a window of a second is always a whole number of them."""
_MAX_SEGMENTS: Final = 1 << 20
"""29 hours of the shortest steps, 12 days of the longest; above it windows have no peak."""
STEADY_SHARE: Final = 0.9
STEADY_S: Final = 3.0
"""A steady window has at least this share of the planned operations for this long."""


NO_FIGURES: Final[Mapping[str, Any]] = dict.fromkeys(
    (
        *("peak_1s_bytes_per_s", "peak_5s_bytes_per_s", "steady_bytes_per_s", "steady_window_s"),
        *("whole_bytes_per_s", "span_s"),
    )
)
"""Fields of a report that are None where the run has no such window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """The throughputs of a run, and what they have to agree with."""

    figures: Mapping[str, Any]
    """Bytes per second, and seconds, by their names in the report."""
    timeline_bytes: int = 0
    """What the timeline adds up to, for the check that no byte is missing."""
    mean_in_flight: float = 0.0
    """Operations that succeeded under way, averaged over the span."""


def throughput(run: Run, good: Mask) -> Throughput:
    """Return the three throughputs of a run.

    Parameters
    ----------
    run
        A saved run, its workers' instants on the driver's clock.
    good
        Which operations succeeded and count, shape ``(operations,)``.
    """
    at_work_ns = span_ns(run)
    figures = {**NO_FIGURES, "span_s": None if span(run) is None else at_work_ns / NS_PER_S}
    if not good.any():
        return Throughput(figures=figures)
    grid = _fine_segments(run)
    in_flight, running = grid.in_flight(), _running(grid)
    moved = int(run.operations["bytes"][good].sum())
    # Heads, lists and deletions alone: no byte moved, which is no throughput of zero.
    if moved:
        steady, steady_s = _steady(in_flight, running, grid.segment_ns, planned_at_once(run))
        figures |= {
            "steady_bytes_per_s": steady,
            "steady_window_s": steady_s,
            "whole_bytes_per_s": bytes_per_second(moved, at_work_ns) or None,
        }
        if not (unacknowledged(run) & good).any():
            for seconds in (1, 5):
                best = _best(running, grid, seconds * NS_PER_S)
                figures[f"peak_{seconds}s_bytes_per_s"] = best
    return Throughput(
        figures=figures,
        timeline_bytes=int(running[-1]),
        mean_in_flight=float(in_flight.sum()) * grid.segment_ns / max(at_work_ns, 1),
    )


def whole_and_peak(run: Run, wanted: Mask) -> tuple[float | None, float | None]:
    """Return what some of the operations moved: over the span of all, and in the best second.

    ``wanted`` has a value per operation; what failed or is of the warm-up does not count. There is
    no best second where writes are among them that nobody saw arrive.
    """
    grid = _fine_segments(run)
    running = _running(replace(grid, good=grid.good & wanted))
    is_seen = not (unacknowledged(run) & wanted).any()
    return (
        bytes_per_second(int(running[-1]), span_ns(run)),
        _best(running, grid, NS_PER_S) if is_seen else None,
    )


def _fine_segments(run: Run) -> Segments:
    """Return segments of which a second is a whole number, unless there would be too many."""
    grid = segments_of(run, FINE_SEGMENT_NS)
    least_ns = -(-(grid.end_ns - grid.start_ns) // _MAX_SEGMENTS)
    step_ns = next((step_ns for step_ns in _STEPS_NS if least_ns <= step_ns), least_ns)
    return replace(grid, segment_ns=step_ns)


def _running(grid: Segments) -> Ints:
    """Return the bytes that moved before each border of segments, shape ``(count + 1,)``."""
    return np.concatenate(([0], np.cumsum(grid.moved()[0])))


def planned_at_once(run: Run) -> int:
    """Return how many operations are in flight if all functions and threads are at work."""
    return run.job.at_once * run.job.load.threads


def _best(running: Ints, grid: Segments, window_ns: int) -> float | None:
    """Return the best window's rate; None if the run is shorter or segments do not divide it."""
    width, rest = divmod(window_ns, grid.segment_ns)
    if grid.end_ns - grid.start_ns < window_ns or rest:
        return None
    moved = int((running[width:] - running[:-width]).max())
    return bytes_per_second(moved, window_ns)


def _steady(
    in_flight: Floats, running: Ints, segment_ns: int, planned: int
) -> tuple[float, float] | tuple[None, None]:
    """Return rate and length in seconds of the longest steady window, if there is one.

    Concurrency is averaged over one second, so that the moment between two functions of
    one worker does not end a window.
    """
    width = max(1, NS_PER_S // segment_ns)
    total = np.concatenate(([0.0], np.cumsum(in_flight)))
    enough = (total[width:] - total[:-width]) / width >= STEADY_SHARE * planned
    edges = np.flatnonzero(np.diff(np.concatenate(([False], enough, [False]))))
    stretches = edges.reshape(-1, 2)
    first, end = max(stretches.tolist(), key=lambda pair: pair[1] - pair[0], default=(0, 0))
    last = end + width - 1
    length_ns = (last - first) * segment_ns
    if length_ns < STEADY_S * NS_PER_S:
        return None, None
    moved = int(running[last] - running[first])
    return bytes_per_second(moved, length_ns), length_ns / NS_PER_S


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Elapsed:
    """A clock that stands still while nobody is at work."""

    begins: Ints
    ends: Ints
    """Of the pauses, ascending, on the driver's clock."""

    def between_each_ns(self, start_ns: Ints, end_ns: Ints) -> Ints:
        """Return how long each of several stretches was without its pauses."""
        inside = np.minimum.outer(self.ends, end_ns) - np.maximum.outer(self.begins, start_ns)
        return np.asarray(end_ns - start_ns - np.maximum(inside, 0).sum(axis=0), dtype=np.int64)

    def between_ns(self, start_ns: int, end_ns: int) -> int:
        """Return how long a stretch was without its pauses."""
        return int(self.between_each_ns(np.asarray(start_ns), np.asarray(end_ns)))


def elapsed(run: Run) -> Elapsed:
    """Return the pauses of a run whose workers' instants are on the driver's clock.

    A pause is what remains of a stretch without a driver at work once every stretch is taken off
    in which a function worked that left a record, of whatever status.
    """
    pauses: list[tuple[int, int]] = []
    if absences := sorted((*run.downtimes, *run.suspensions)):
        there = run.functions["start_ns"] != ABSENT
        starts, ends = (run.functions[name][there] for name in ("start_ns", "end_ns"))
        order = np.argsort(starts, kind="stable")
        for down_ns, up_ns in absences:
            pauses += _gaps(starts[order], ends[order], down_ns, up_ns)
    begins, stops = np.asarray(pauses, dtype=np.int64).reshape(-1, 2).T
    return Elapsed(begins=begins, ends=stops)


def _gaps(starts: Ints, ends: Ints, down_ns: int, up_ns: int) -> Iterator[tuple[int, int]]:
    """Return what intervals, in order of their starts, leave of another one."""
    touching = (ends > down_ns) & (starts < up_ns)
    free_from = np.maximum.accumulate(np.append(down_ns, ends[touching]))
    until = np.append(starts[touching], up_ns)
    is_free = free_from < until
    return zip(free_from[is_free].tolist(), until[is_free].tolist(), strict=True)


def span(run: Run) -> tuple[int, int] | None:
    """Return when the first measured operation began and the last one ended; None if none did."""
    # Failed ones count: whoever started the run waited for them as well.
    measured, operations = measured_operations(run), run.operations
    if not measured.any():
        return None
    return int(operations["start_ns"][measured].min()), int(operations["end_ns"][measured].max())


def span_ns(run: Run) -> int:
    """Return how long the span of a run is without its pauses; 0 without a span."""
    found = span(run)
    return 0 if found is None else elapsed(run).between_ns(*found)


def makespan_s(functions: Table, time: Elapsed) -> float | None:
    """Return the time from the first submission to the last collection; None if there is none."""
    there = functions["submitted_ns"] != ABSENT
    if not there.any():
        return None
    first = int(functions["submitted_ns"][there].min())
    return time.between_ns(first, int(functions["collected_ns"][there].max())) / NS_PER_S


def done_s(run: Run, good: Mask, time: Elapsed) -> dict[str, float | None]:
    """Return when a share of the functions was done, by name; None if so many never were.

    Parameters
    ----------
    run
        Its workers' instants are on the driver's clock.
    good
        Which operations succeeded and are measured.
    time
        Its pauses.
    """
    names: dict[str, float | None] = {"t50": None, "t90": None, "t99": None, "t100": None}
    is_ok = is_text(run.functions["status"], "ok")
    there = span(run)
    if there is None or not is_ok.any():
        return names
    # A function whose share of the work was nothing is done when it ends.
    idle = np.ones(len(is_ok), dtype=np.bool_)
    idle[run.operations["function"][good]] = False
    last = np.where(idle, run.functions["end_ns"], EARLIEST)
    np.maximum.at(last, run.operations["function"][good], run.operations["end_ns"][good])
    done = np.sort(last[is_ok])
    for name in names:
        needed = -(-run.job.number * int(name[1:]) // 100)
        if needed <= len(done):
            at = max(int(done[needed - 1]), there[0])
            names[name] = time.between_ns(there[0], at) / NS_PER_S
    return names


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingFunctions:
    """What the run would show at least and at most if the missing functions were known.

    analysis/figures.toml defines each figure.
    """

    count: int
    whole_bytes_per_s: tuple[float, float]
    per_function_p50_bytes_per_s: tuple[float, float] | None


def missing_functions(
    run: Run, good: Mask, rates: Floats, *, whole: float | None
) -> MissingFunctions | None:
    """Return what the functions that are not ok could change at most.

    Parameters
    ----------
    run
        A saved run.
    good
        Which operations succeeded and count, shape ``(operations,)``.
    rates
        Of the functions that are ok.
    whole
        Throughput of the run.

    Returns
    -------
    MissingFunctions or None
        None unless functions are missing and others moved bytes.
    """
    functions, there = run.functions, span(run)
    is_ok = is_text(functions["status"], "ok")
    missing = run.job.number - int(is_ok.sum())
    if not missing or not len(rates) or whole is None or there is None:
        return None
    operations, time = run.operations, elapsed(run)
    moved = sum_by(operations["function"][good], operations["bytes"][good], len(is_ok))
    most = int(moved[is_ok].sum()) + missing * int(moved.max())
    span_s = time.between_ns(*there) / NS_PER_S
    # A lost function may have worked until its driver gave it up, and moved nothing.
    given_up = functions["collected_ns"][is_text(functions["status"], "lost")]
    waited_s = time.between_ns(there[0], int(given_up.max(initial=there[1]))) / NS_PER_S
    return MissingFunctions(
        count=missing,
        whole_bytes_per_s=(whole * span_s / waited_s, max(whole, most / span_s)),
        per_function_p50_bytes_per_s=_middle(rates, missing),
    )


def _middle(rates: Floats, missing: int) -> tuple[float, float] | None:
    """Return the median if all that are missing were slower, and faster, than ``rates``."""
    ordered = np.sort(rates)
    half = (len(rates) + missing - 1) / 2
    slow, fast = math.floor(half) - missing, math.ceil(half)
    if slow < 0 or fast >= len(ordered):
        return None
    return float(ordered[slow]), float(ordered[fast])
