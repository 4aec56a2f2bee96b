"""One line per function over time, and how many were active."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.ticker import MaxNLocator

from serverless_bench.analysis.timeline import timeline
from serverless_bench.palette import LIGHT
from serverless_bench.plots.style import Style, legend_beside, style_of
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import ABSENT, is_text
from serverless_bench.units import NS_PER_S


def draw_jobs(run: Run, axes: Axes, *, style: Style | None = None) -> None:
    """Draw when each function ran (PyWren: "jobs over time").

    Functions are sorted by start. Failed ones are red; lost ones have no times and stand
    as a number in the title. The black line counts the operations in flight.

    Parameters
    ----------
    run
        A saved run.
    axes
        Where to draw.
    style
        Name and colour; the workload's without it.
    """
    style = style or style_of(run)
    functions = run.functions
    there = np.flatnonzero(functions["start_ns"] != ABSENT)
    there = there[np.argsort(functions["start_ns"][there], kind="stable")]
    lost = int(is_text(functions["status"], "lost").sum())
    title = f"{style.label}: jobs over time" + (f", {lost} lost" if lost else "")
    axes.set(xlabel="seconds", ylabel="functions", title=title)
    if not len(there):
        return
    origin = functions["start_ns"][there[0]]
    begin = (functions["start_ns"][there] - origin) / NS_PER_S
    end = (functions["end_ns"][there] - origin) / NS_PER_S
    height = np.arange(1, len(there) + 1)
    failed = is_text(functions["status"], "failed")[there]
    lines = np.stack([np.stack([begin, height], 1), np.stack([end, height], 1)], 1)
    colors = np.where(failed, LIGHT.failed, style.color)
    # A rectangle a function high would vanish for thousands: a line keeps a width.
    axes.add_collection(
        LineCollection(list(lines), colors=colors.tolist(), linewidths=1, alpha=0.6)
    )
    axes.set(xlim=(0, max(float(end.max()), 1e-3)), ylim=(0, len(there) + 0.5))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    try:
        active = timeline(run, segment_ns=max(1, round(float(end.max()) * NS_PER_S / 200)))
    except ValueError:
        return
    shift = (active.start_ns - origin) / NS_PER_S
    # Threads may have more operations under way than there are functions.
    axes.set_ylim(0, max(len(there), float(active.in_flight.max())) + 0.5)
    axes.step(
        active.seconds + shift, active.in_flight, where="post", color=LIGHT.ink, label="active"
    )
    legend_beside(axes)
