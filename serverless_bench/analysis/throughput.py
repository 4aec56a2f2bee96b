"""The three throughputs of a run: its best windows, its steady stretch, all of it. Pure."""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from serverless_bench.analysis.elapsed import span, span_ns
from serverless_bench.analysis.timeline import segment_bytes, segments
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import Floats, Ints, Mask
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """Bytes per second, and seconds; None where the run has no such window."""

    peak_1s: float | None = None
    peak_5s: float | None = None
    steady: float | None = None
    steady_s: float | None = None
    whole: float | None = None
    span_s: float | None = None
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
    there = span(run)
    if there is None:
        return Throughput()
    took_ns, at_work_ns = there[1] - there[0], span_ns(run)
    if not good.any():
        return Throughput(span_s=at_work_ns / NS_PER_S)
    segment_ns = _step_ns(took_ns)
    fine, in_flight = segments(run, segment_ns=segment_ns)
    running = np.concatenate(([0], np.cumsum(fine)))
    found = Throughput(
        span_s=at_work_ns / NS_PER_S,
        timeline_bytes=int(running[-1]),
        mean_in_flight=float(in_flight.sum()) * segment_ns / max(at_work_ns, 1),
    )
    moved = int(run.operations["bytes"][good].sum())
    if not moved:
        # Heads, lists and deletions alone: no byte moved, which is no throughput of zero.
        return found
    steady, steady_s = _steady(in_flight, running, segment_ns, planned_at_once(run))
    return replace(
        found,
        peak_1s=_best(running, took_ns, segment_ns, NS_PER_S),
        peak_5s=_best(running, took_ns, segment_ns, 5 * NS_PER_S),
        steady=steady,
        steady_s=steady_s,
        whole=bytes_per_second(moved, at_work_ns) or None,
    )


def whole_and_peak(run: Run, wanted: Mask) -> tuple[float | None, float | None]:
    """Return what some of the operations moved: over the span of all, and in the best second.

    ``wanted`` has a value per operation; what failed or is of the warm-up does not count.
    """
    there = span(run)
    if there is None:
        return None, None
    took_ns = there[1] - there[0]
    segment_ns = _step_ns(took_ns)
    running = np.concatenate(([0], np.cumsum(segment_bytes(run, wanted, segment_ns=segment_ns))))
    return (
        bytes_per_second(int(running[-1]), span_ns(run)),
        _best(running, took_ns, segment_ns, NS_PER_S),
    )


def _step_ns(took_ns: int) -> int:
    least_ns = -(-took_ns // _MAX_SEGMENTS)
    return next((step_ns for step_ns in _STEPS_NS if least_ns <= step_ns), least_ns)


def planned_at_once(run: Run) -> int:
    """Return how many operations are in flight if all functions and threads are at work."""
    return min(run.job.concurrency, run.job.invocations) * run.job.load.threads


def _best(running: Ints, took_ns: int, segment_ns: int, window_ns: int) -> float | None:
    """Return the best window's rate; None if the run is shorter or segments do not divide it."""
    width, rest = divmod(window_ns, segment_ns)
    if took_ns < window_ns or rest:
        return None
    moved = int((running[width:] - running[:-width]).max())
    return bytes_per_second(moved, width * segment_ns)


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
    if not len(edges):
        return None, None
    begins, ends = edges[::2], edges[1::2]
    longest = int(np.argmax(ends - begins))
    first, last = int(begins[longest]), int(ends[longest]) + width - 1
    length_ns = (last - first) * segment_ns
    if length_ns < STEADY_S * NS_PER_S:
        return None, None
    moved = int(running[last] - running[first])
    return bytes_per_second(moved, length_ns), length_ns / NS_PER_S
