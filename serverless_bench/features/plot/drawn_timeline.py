"""Timelines with as many segments as a picture shows."""

from collections.abc import Iterator
from itertools import count
from typing import Final

import numpy as np
from msgspec import structs

from serverless_bench.base.units import NS_PER_S
from serverless_bench.metrics.clock_offsets import Offsets
from serverless_bench.metrics.timeline import Timeline, added_up, segments_of
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import Floats

_LEAST_STEP_NS: Final = 10_000_000
"""Shortest segment; worker clocks are not known much more precisely."""
_DRAWN_SEGMENTS: Final = 240
"""Maximum number of points of a line over time."""


def timeline_to_draw(on_one_clock: Run, offsets: Offsets) -> Timeline | None:
    """Return a timeline with a segment length that suits the duration; None without bytes.

    Parameters
    ----------
    on_one_clock
        A run with all timestamps on the driver's clock.
    offsets
        Offsets used to correct the timestamps.
    """
    try:
        grid = segments_of(on_one_clock, _LEAST_STEP_NS)
    except ValueError:
        return None
    segment_ns = step_ns(grid.end_ns - grid.start_ns, _DRAWN_SEGMENTS)
    return added_up(structs.replace(grid, segment_ns=segment_ns), offsets)


def clock_band(series: Timeline) -> tuple[Floats, Floats]:
    """Return the rates of a timeline for the two extremes of the clock offsets."""
    shifted = [np.diff(moved, prepend=0) for moved in (series.earliest, series.latest)]
    for moved in shifted:
        # Bytes outside of the timeline were added to the first and the last segment.
        moved[[0, -1]] = series.segment_bytes[[0, -1]]
    candidates, per_s = [series.segment_bytes, *shifted], NS_PER_S / series.segment_ns
    return np.min(candidates, axis=0) * per_s, np.max(candidates, axis=0) * per_s


def step_ns(span_ns: int, most: int) -> int:
    """Return the shortest of 10, 20, 50, 100 ... ms that yields at most ``most`` segments."""
    steps: Iterator[int] = (
        _LEAST_STEP_NS * 10**n * factor for n in count() for factor in (1, 2, 5)
    )
    return next(step for step in steps if span_ns <= step * most)
