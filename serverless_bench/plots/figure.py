"""PyWren's four panels and the aggregate timeline in one figure."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from serverless_bench.archive import Run
from serverless_bench.plots.jobs import draw_jobs
from serverless_bench.plots.rates import draw_rates
from serverless_bench.plots.throughput import draw_throughput


def figure(runs: Sequence[Run]) -> Figure:
    """Return a figure with a row of two panels per run and their timelines below.

    Parameters
    ----------
    runs
        Usually a write and the read of its objects.

    Returns
    -------
    matplotlib.figure.Figure
        Not shown and not registered with pyplot; save it, or display it in a notebook.
    """
    drawn = Figure(figsize=(11, 3.4 * (len(runs) + 1)), layout="constrained")
    grid = drawn.add_gridspec(len(runs) + 1, 2, width_ratios=(1.6, 1))
    for row, run in enumerate(runs):
        draw_jobs(run, drawn.add_subplot(grid[row, 0]))
        draw_rates(run, drawn.add_subplot(grid[row, 1]))
    below = drawn.add_subplot(grid[len(runs), :])
    for run in runs:
        draw_throughput(run, below)
    return drawn
