"""Pictures of a run. Each draws on the caller's Axes; ``figure`` puts them together.

Colours are the ones of the PyWren article of 2016: writes green, reads blue.
"""

from collections.abc import Sequence
from typing import Final

from matplotlib.figure import Figure

from serverless_bench.escaping import for_picture
from serverless_bench.palette import LIGHT
from serverless_bench.reporters.plots.panels import (
    draw_jobs,
    draw_latency,
    draw_rates,
    draw_throughput,
    draw_timeline,
    latencies_of,
    peak_of,
    timeline_of,
)
from serverless_bench.reporters.plots.style import styles_of, unit_for
from serverless_bench.rundir.run import Run

__all__ = ["draw_jobs", "draw_latency", "draw_rates", "draw_throughput", "figure"]


_WIDTH: Final = 11.0
_TALL: Final = 3.4
_FLAT: Final = 2.9
"""Inches."""
_COMPARABLE: Final = 10
"""Runs whose highest throughputs differ by less than so many times share their scale."""


def figure(runs: Sequence[Run], *, latency: bool = False) -> Figure:
    """Return a figure with a row of two panels per run, and their timelines below.

    Each run has a time axis of its own: a write and its read may differ tenfold. Throughputs
    share one scale, unless that would flatten one of them.

    Runs of several kinds or sizes, and of an open loop, have their latencies there, too.

    Parameters
    ----------
    runs
        Usually a write and the read of its objects.
    latency
        Whether to draw the latencies of all runs.

    Returns
    -------
    matplotlib.figure.Figure
        Not shown and not registered with pyplot; save it, or display it in a notebook.
    """
    timed = [run for run in runs if latency or latencies_of(run).notable]
    heights = [*(_TALL for _ in runs), *(_FLAT for _ in runs), *(_TALL for _ in timed)] or [_FLAT]
    styles = dict(zip(map(id, runs), styles_of(runs), strict=True))
    drawn = Figure(figsize=(_WIDTH, sum(heights)), layout="constrained", facecolor=LIGHT.surface)
    drawn.get_layout_engine().set(h_pad=0.1, w_pad=0.1)  # type: ignore[call-arg, union-attr]
    grid = drawn.add_gridspec(len(heights), 2, width_ratios=(1.6, 1), height_ratios=heights)
    for row, run in enumerate(runs):
        draw_jobs(run, drawn.add_subplot(grid[row, 0]), style=styles[id(run)])
        draw_rates(run, drawn.add_subplot(grid[row, 1]), style=styles[id(run)])
    models = dict.fromkeys(run.simulated for run in runs if run.simulated is not None)
    if models:
        names = ", ".join(map(for_picture, models))
        drawn.suptitle(f"SIMULATED with the model {names}: nothing of it was measured")
    timelines = [timeline_of(run) for run in runs]
    peaks = [peak_of(series) for _, series in timelines]
    alike = max(peaks, default=0.0) < _COMPARABLE * min(peaks, default=0.0)
    first = None
    for number, (on_one_clock, series) in enumerate(timelines):
        axes = drawn.add_subplot(grid[len(runs) + number, :], sharey=first)
        unit = unit_for(max(peaks) if alike else peaks[number])
        draw_timeline(on_one_clock, series, axes, styles[id(runs[number])], unit)
        first = axes if alike else None
    for row, run in enumerate(timed, 2 * len(runs)):
        draw_latency(run, drawn.add_subplot(grid[row, :]), style=styles[id(run)])
    return drawn
