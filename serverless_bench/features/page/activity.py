"""Reduce a run over time to the data of its charts, of bounded size for any number of functions.

Pure functions. These values are only drawn; the values of a report come from ``summary``.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
from msgspec import Struct, structs

from serverless_bench.base.units import NS_PER_S
from serverless_bench.features.bottleneck.causes import bounded_functions
from serverless_bench.features.plot.drawn_timeline import step_ns, timeline_to_draw
from serverless_bench.metrics.clock_offsets import Offsets, aligned, worker_offsets
from serverless_bench.metrics.spreading import mean_in_flight
from serverless_bench.metrics.timeline import (
    Spans,
    Timeline,
    counted,
    function_spans,
    good_operations,
    measured_operations,
    segments_of,
)
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import ABSENT, Floats, Ints, failed_attempts, is_text

_COLUMNS: Final = 120
_ROWS: Final = 60
"""Maximum number of rows of the function map."""
_BANDS: Final = 200
"""Maximum number of functions in the chart of clocks."""
_SLOWEST: Final = 10


class FunctionMap(Struct, frozen=True, kw_only=True, eq=False):
    """Groups of functions in order of their start, over time."""

    segment_ns: int
    first: Ints
    """Position of the first function of each group, from 0, followed by the number of functions;
    shape ``(groups + 1,)``."""
    bytes_per_s: Floats
    """Mean throughput of a running function in each group; NaN without transfer; shape
    ``(groups, segments)``."""


class SlowFunction(Struct, frozen=True, kw_only=True):
    """One of the slowest functions that succeeded and transferred bytes."""

    index: int
    began_s: float
    """Start time relative to the first measured operation of the run."""
    took_s: float
    bytes_per_s: float


class ActivityOverTime(Struct, frozen=True, kw_only=True, eq=False):
    """Activity of a run over time, and variation among its functions; arrays over segments."""

    timeline: Timeline
    at_work: Floats
    """Mean number of running functions."""
    failed_attempts: Mapping[str, Ints]
    """Failed requests that ended in each segment, by error code, most frequent first."""
    bounded: Mapping[str, Floats]
    """Mean number of running functions by bottleneck, for ``bounded_of`` sampled functions."""
    bounded_of: int
    functions: FunctionMap
    rates: Floats
    """Throughput of each successful function that moved bytes, in bytes per second."""
    clocks_s: Floats
    """Bounds of workers' clock offsets from the driver's clock, and the corrections: shape
    ``(bands, 3)``."""
    clocks_of: int
    """Number of functions with consistent evidence, from which the bands are evenly sampled."""
    slowest: tuple[SlowFunction, ...]


def activity(run: Run) -> ActivityOverTime | None:
    """Return the activity of a run over time; None if no operation succeeded."""
    offsets = worker_offsets(run)
    on_one_clock = aligned(run, offsets)
    series = timeline_to_draw(on_one_clock, offsets)
    if series is None:
        return None
    single_group = np.zeros(len(run.functions["index"]), dtype=np.int64)
    rows, cause = bounded_functions(on_one_clock, good_operations(on_one_clock))
    names = [name for name, _ in Counter(cause.tolist()).most_common()]
    group = np.full(len(single_group), -1, dtype=np.int64)
    group[rows] = [names.index(name) for name in cause.tolist()]
    bounded = functions_at_work(
        on_one_clock, group, max(1, len(names)), segment_ns=series.segment_ns
    )
    spans = function_spans(on_one_clock)
    return ActivityOverTime(
        timeline=series,
        at_work=functions_at_work(on_one_clock, single_group, 1, segment_ns=series.segment_ns)[0],
        failed_attempts=_failed_attempts(on_one_clock, series),
        bounded=dict(zip(names, bounded, strict=False)),
        bounded_of=len(rows),
        functions=_function_map(on_one_clock, step_ns(series.end_ns - series.start_ns, _COLUMNS)),
        rates=spans.bytes_per_s,
        clocks_s=_clock_bands(offsets),
        clocks_of=int((offsets.known & ~offsets.suspect).sum()),
        slowest=tuple(_slowest(run, spans, series.start_ns)),
    )


def status_counts(run: Run) -> dict[str, int]:
    """Return the number of measured requests by HTTP status, or without response."""
    measured = measured_operations(run)[run.operation_rows(run.attempts)]
    counts_by_status = Counter(run.attempts["status"][measured].tolist())
    items = (
        (status, counts_by_status[status])
        for status in sorted(counts_by_status)
        if status != ABSENT
    )
    counts = {str(status): count for status, count in items}
    return counts | ({"no answer": counts_by_status[ABSENT]} if counts_by_status[ABSENT] else {})


def _failed_attempts(run: Run, series: Timeline) -> dict[str, Ints]:
    measured = measured_operations(run)[run.operation_rows(run.attempts)]
    failed = np.flatnonzero(measured & failed_attempts(run.attempts))
    words = run.attempts["error"][failed]
    at = (run.attempts["end_ns"][failed] - series.start_ns) // series.segment_ns
    count = len(series.segment_bytes)
    at = np.clip(at, 0, count - 1)
    return {
        word: np.bincount(at[is_text(words, word)], minlength=count)
        for word, _ in Counter(words.tolist()).most_common()
    }


def _function_map(run: Run, segment_ns: int) -> FunctionMap:
    started = np.flatnonzero(counted(run) & (run.functions["start_ns"] != ABSENT))
    started = started[np.argsort(run.functions["start_ns"][started], kind="stable")]
    groups = max(1, min(_ROWS, len(started)))
    first = np.linspace(0, len(started), groups + 1).astype(np.int64)
    group = np.full(len(run.functions["index"]), -1, dtype=np.int64)
    group[started] = np.repeat(np.arange(groups), np.diff(first))
    # Lost functions transferred no bytes, so any group is correct.
    moved = bytes_by_group(run, np.maximum(group, 0), groups, segment_ns=segment_ns)
    at_work = functions_at_work(run, group, groups, segment_ns=segment_ns)
    has_rate = (moved > 0) & (at_work > 0)
    return FunctionMap(
        segment_ns=segment_ns,
        first=first,
        bytes_per_s=np.divide(
            moved * (NS_PER_S / segment_ns),
            at_work,
            where=has_rate,
            out=np.full(moved.shape, np.nan),
        ),
    )


def _slowest(run: Run, spans: Spans, origin_ns: int) -> Iterator[SlowFunction]:
    for place in np.argsort(-spans.took_s, kind="stable")[:_SLOWEST].tolist():
        yield SlowFunction(
            index=int(run.functions["index"][spans.rows[place]]),
            began_s=float(spans.start_ns[place] - origin_ns) / NS_PER_S,
            took_s=float(spans.took_s[place]),
            bytes_per_s=float(spans.bytes_per_s[place]),
        )


def _clock_bands(offsets: Offsets) -> Floats:
    consistent = np.flatnonzero(offsets.known & ~offsets.suspect)
    middle = (
        offsets.low_ns[consistent] + (offsets.high_ns[consistent] - offsets.low_ns[consistent]) // 2
    )
    ordered = consistent[np.argsort(middle, kind="stable")]
    place = np.linspace(0, len(ordered) - 1, min(len(ordered), _BANDS)).astype(np.int64)
    sampled = ordered[place]
    return np.stack((offsets.low_ns, offsets.high_ns, offsets.best_ns), axis=1)[sampled] / NS_PER_S


def bytes_by_group(run: Run, group: Ints, groups: int, *, segment_ns: int) -> Ints:
    """Return the bytes per segment for groups of functions, without clock correction.

    Parameters
    ----------
    run
        A saved run.
    group
        Group of each row of ``functions``, from 0; shape ``(functions,)``.
    groups
        Number of groups.
    segment_ns
        Length of a segment in nanoseconds.

    Returns
    -------
    numpy.ndarray
        Shape ``(groups, segments)``.

    Raises
    ------
    ValueError
        See ``timeline``.
    """
    grid = segments_of(run, segment_ns)
    # Place the groups one after another on a single time axis.
    group_ns = grid.count * segment_ns
    extended = structs.replace(grid, end_ns=grid.start_ns + groups * group_ns)
    return extended.moved((-group * group_ns,))[0].reshape(groups, grid.count)


def functions_at_work(run: Run, group: Ints, groups: int, *, segment_ns: int) -> Floats:
    """Return the mean number of functions running in each segment, for groups of functions.

    Parameters, shape and errors are those of ``bytes_by_group``. Functions with a negative group
    and functions without a start are ignored.
    """
    grid = segments_of(run, segment_ns)
    group_ns = grid.count * segment_ns
    wanted = counted(run) & (group >= 0)
    start, end = (
        np.clip(run.functions[name][wanted] - grid.start_ns, 0, group_ns) + group[wanted] * group_ns
        for name in ("start_ns", "end_ns")
    )
    return mean_in_flight(start, end, segment_ns, groups * grid.count).reshape(groups, grid.count)
