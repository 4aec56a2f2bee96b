"""How long operations took, over time and by kind."""

from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from serverless_bench.analysis.clock_offsets import aligned, worker_offsets
from serverless_bench.analysis.latency import Latencies, latencies
from serverless_bench.analysis.timeline import good_operations
from serverless_bench.palette import LIGHT
from serverless_bench.reporters.plots.style import Style, dress, key_above, marker_of, style_of
from serverless_bench.rundir.run import Run

_MS_PER_S: Final = 1000
_SUBDIVISIONS: Final = ((1e4, (1,)), (10, (1, 2, 5)), (3, (1, 2, 3, 5, 7)), (0, range(1, 10)))
"""Where the axis has a tick in each decade, by how many times its end is its begin."""


def draw_latency(run: Run, axes: Axes, *, style: Style | None = None) -> None:
    """Draw p50 (line) and p99 (marks) of each kind of operation in each segment of time.

    In an open loop they are of the response time, which counts from the intended start.

    Parameters
    ----------
    run
        A saved run.
    axes
        Where to draw; its vertical axis becomes logarithmic.
    style
        Name; the workload's without it. Kinds of operations have colours of their own.
    """
    style = style or style_of(run)
    found = latencies_of(run)
    time = "response time" if found.open_loop else "latency"
    dress(
        axes,
        title=f"{style.label}: {time}, p50 as lines and p99 as marks",
        x="seconds since the first operation was due",
        y=f"{time}, ms",
    )
    if found.segment_s is None:
        axes.set(xlim=(0, 1), ylim=(0, 1))
        return
    axes.set_yscale("log")
    for one in found.over_time:
        at = (np.arange(len(one.count)) + 0.5) * found.segment_s
        color, marker = LIGHT.of(one.kind), marker_of(one.kind)
        # A latency of nothing, on a clock that is coarse, has no logarithm.
        p50, p99 = (
            np.array([value or np.nan for value in values], dtype=np.float64) * _MS_PER_S
            for values in (one.p50_s, one.p99_s)
        )
        axes.plot(at, p50, "-", color=color, label=one.kind, marker=marker, markersize=2)
        axes.plot(at, p99, marker, color=color, markersize=5, fillstyle="none")
    axes.set_xlim(0, found.segment_s * max(len(one.count) for one in found.over_time))
    _plain_numbers(axes)
    key_above(axes, columns=8)


def _plain_numbers(axes: Axes) -> None:
    """Write 6 for what a logarithmic axis would call 6 x 10^0, also over a part of a decade."""
    low, high = axes.dataLim.intervaly
    # Values that are all the same stand in the middle.
    low, high = min(0.85 * low, 0.7 * high), max(1.2 * high, 1.4 * low)
    axes.set_ylim(low, high)
    inside = next(parts for above, parts in _SUBDIVISIONS if high > above * low)
    axes.yaxis.set_major_locator(LogLocator(subs=inside))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
    axes.yaxis.set_minor_locator(NullLocator())


def latencies_of(run: Run) -> Latencies:
    """Return how long the operations of a run took, its clocks corrected."""
    run = aligned(run, worker_offsets(run))
    return latencies(run, good_operations(run))
