"""One line per function over time, and how many operations were in flight."""

from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MaxNLocator

from serverless_bench.analysis.clock_offsets import aligned, worker_offsets
from serverless_bench.analysis.timeline import operations_in_flight
from serverless_bench.palette import LIGHT
from serverless_bench.reporters.plots.style import Style, dress, key_above, style_of
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import ABSENT, Floats, is_text
from serverless_bench.units import NS_PER_S, format_count

_BROAD: Final = 50
"""Fewer functions than this are broad lines."""
_SEGMENTS: Final = 200
"""Of the line of operations in flight, about."""


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
    run = aligned(run, worker_offsets(run))
    functions = run.functions
    there = np.flatnonzero(functions["start_ns"] != ABSENT)
    there = there[np.argsort(functions["start_ns"][there], kind="stable")]
    lost = int(is_text(functions["status"], "lost").sum())
    title = f"{style.label}: functions over time" + (f", {lost} lost" if lost else "")
    dress(axes, title=title, x="seconds since the first function began", y="functions, operations")
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set(xlim=(0, 1), ylim=(0, 1))
    if not len(there):
        return
    origin = functions["start_ns"][there[0]]
    begin = (functions["start_ns"][there] - origin) / NS_PER_S
    end = (functions["end_ns"][there] - origin) / NS_PER_S
    failed = is_text(functions["status"], "failed")[there]
    # Each in the middle of its own unit: so many lines reach exactly as high as their number.
    height = np.arange(len(there)) + 0.5
    lines = np.stack([np.stack([begin, height], 1), np.stack([end, height], 1)], 1)
    # A rectangle a function high would vanish for thousands: a line keeps a width.
    each = axes.bbox.height / axes.figure.dpi * 72 / len(there)
    width = min(max(0.6 * each, 0.8), 6.0)
    _draw_lines(axes, lines[~failed], style.color, "function", width, alpha=0.65)
    bad = format_count(int(failed.sum()), "failed function")
    _draw_lines(axes, lines[failed], LIGHT.failed, bad, max(width, 2.0), alpha=1)
    axes.set(xlim=(0, max(float(end.max()), 1e-3)), ylim=(0, 1.03 * len(there)))
    _draw_in_flight(run, axes, int(origin), float(end.max()), len(there))
    key_above(axes, columns=3)


def _draw_in_flight(run: Run, axes: Axes, origin_ns: int, width_s: float, functions: int) -> None:
    """Draw the operations in flight over so many functions, if there were any."""
    segment_ns = max(1, round(width_s * NS_PER_S / _SEGMENTS))
    try:
        start_ns, in_flight = operations_in_flight(run, segment_ns=segment_ns)
    except ValueError:
        return
    most = float(in_flight.max())
    # On broad lines of functions it is seen by its edge, which would hide thin ones.
    few = functions < _BROAD
    # Threads may have more operations under way than there are functions.
    axes.set_ylim(0, 1.03 * max(functions, most))
    axes.step(
        (np.arange(len(in_flight)) * segment_ns + (start_ns - origin_ns)) / NS_PER_S,
        in_flight,
        where="post",
        color=LIGHT.ink,
        label=f"operations in flight, at most {most:.0f}",
        path_effects=[withStroke(linewidth=3.5, foreground=LIGHT.surface)] if few else None,
    )


def _draw_lines(
    axes: Axes, lines: Floats, color: str, label: str, width: float, *, alpha: float
) -> None:
    if not len(lines):
        return
    axes.add_collection(
        LineCollection(
            list(lines),
            colors=color,
            linewidths=width,
            alpha=alpha,
            capstyle="butt",
            label=label,
        )
    )
