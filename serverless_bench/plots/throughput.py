"""All functions' throughput together, over time."""

from typing import Final

import numpy as np
from matplotlib.axes import Axes

from serverless_bench.analysis.attempt_stats import throttles_per_s
from serverless_bench.analysis.timeline import timeline
from serverless_bench.escaping import for_picture
from serverless_bench.palette import LIGHT
from serverless_bench.plots.style import Style, legend_beside, style_of
from serverless_bench.rundir.run import Run
from serverless_bench.units import NS_PER_S

_SEGMENTS = 120
_IMPORTED: Final = "imported"


def draw_throughput(run: Run, axes: Axes, *, style: Style | None = None) -> None:
    """Draw bytes moved in each segment of time, from the progress inside each object.

    The area below the line is the bytes of the run. The light band is where the line would
    be if all workers' clocks were as far behind, or ahead, as their evidence allows;
    throttled attempts are drawn in red.

    Parameters
    ----------
    run
        A saved run.
    axes
        Where to draw; another run may be there already.
    style
        Name and colour; the workload's without it.
    """
    style = style or style_of(run)
    axes.set(xlabel="seconds since the first request", ylabel="MB/s", title="aggregate throughput")
    try:
        whole = timeline(run)
    except ValueError:
        return
    span_ns = whole.end_ns - whole.start_ns
    step_ns = max(NS_PER_S // 10, span_ns // _SEGMENTS)
    series = timeline(run, segment_ns=step_ns)
    edges = [*series.seconds, series.seconds[-1] + step_ns / NS_PER_S]
    axes.stairs(
        series.bytes_per_s / 1e6,
        edges,
        color=style.color,
        label=f"{style.label}, {step_ns / NS_PER_S:.1f} s steps{_assumed(run)}",
        fill=True,
        alpha=0.5,
    )
    # Where the line is if all clocks are wrong one way, and the other. How far single
    # segments can be off (series.at_most) would hide the line where clocks are unknown.
    shifted = [np.diff(moved, prepend=0) for moved in (series.earliest, series.latest)]
    for moved in shifted:
        # What would lie outside has been put into these two.
        moved[[0, -1]] = series.segment_bytes[[0, -1]]
    low, high = (
        pick([series.segment_bytes, *shifted], axis=0) * (NS_PER_S / step_ns) / 1e6
        for pick in (np.min, np.max)
    )
    label = "if all clocks were wrong" if float((high - low).max()) > 0 else None
    axes.stairs(high, edges, baseline=low, color=style.color, fill=True, alpha=0.15, label=label)
    for prefix, counts in throttles_per_s(run, series.start_ns).items():
        axes.stairs(
            counts, label=f"throttled attempts per s, {for_picture(prefix)}", color=LIGHT.failed
        )
    # By hand: the second run on these axes may reach higher than the first.
    axes.set_ylim(0, max(axes.get_ylim()[1], float(high.max()) * 1.05))
    legend_beside(axes)


def _assumed(run: Run) -> str:
    """Return what is not measured: other tools do not say how an operation went on."""
    return "\n(even within each operation)" if run.job.executor == _IMPORTED else ""
