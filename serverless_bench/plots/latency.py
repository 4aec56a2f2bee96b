"""How long operations took, over time and by kind."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter, NullFormatter

from serverless_bench.analysis.clock_offsets import aligned, worker_offsets
from serverless_bench.analysis.latency import Latencies, latencies
from serverless_bench.analysis.timeline import good_operations
from serverless_bench.palette import LIGHT
from serverless_bench.plots.style import Style, legend_beside, style_of
from serverless_bench.rundir.run import Run


def draw_latency(run: Run, axes: Axes, *, style: Style | None = None) -> None:
    """Draw p50 (solid) and p99 (dotted) of each kind of operation in each segment of time.

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
    title = f"{style.label}: {time}, p50 and p99"
    axes.set(xlabel="seconds since the first operation was due", ylabel=time, title=title)
    if found.segment_s is None:
        return
    axes.set_yscale("log")
    for one in found.over_time:
        at = (np.arange(len(one.count)) + 0.5) * found.segment_s
        color = LIGHT.of(one.kind)
        for values, dash, label in ((one.p50_s, "-", one.kind), (one.p99_s, ":", None)):
            # A latency of nothing, on a clock that is coarse, has no logarithm.
            shown = np.array([value or np.nan for value in values], dtype=np.float64)
            axes.plot(at, shown, dash, color=color, label=label, marker=".", markersize=3)
    _in_seconds(axes)
    legend_beside(axes)


def _in_seconds(axes: Axes) -> None:
    """Write 6 ms for what a logarithmic axis would call 6 x 10^-3."""
    low, high = axes.get_ylim()
    axes.yaxis.set_major_formatter(EngFormatter(unit="s"))
    within_a_decade = high < 10 * low
    axes.yaxis.set_minor_formatter(EngFormatter(unit="s") if within_a_decade else NullFormatter())


def latencies_of(run: Run) -> Latencies:
    """Return how long the operations of a run took, its clocks corrected."""
    run = aligned(run, worker_offsets(run))
    return latencies(run, good_operations(run))
