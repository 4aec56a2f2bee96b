"""PyWren's four panels, the aggregate timeline and latencies in one figure."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from serverless_bench.escaping import for_picture
from serverless_bench.plots.jobs import draw_jobs
from serverless_bench.plots.latency import draw_latency, latencies_of
from serverless_bench.plots.rates import draw_rates
from serverless_bench.plots.style import styles_of
from serverless_bench.plots.throughput import draw_throughput
from serverless_bench.rundir.run import Run


def figure(runs: Sequence[Run], *, latency: bool = False) -> Figure:
    """Return a figure with a row of two panels per run, and their timelines below.

    Each run has a time axis of its own: a write and its read may differ tenfold.

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
    rows = max(1, 2 * len(runs) + len(timed))
    styles = dict(zip(map(id, runs), styles_of(runs), strict=True))
    drawn = Figure(figsize=(11, 3.4 * rows), layout="constrained")
    grid = drawn.add_gridspec(rows, 2, width_ratios=(1.6, 1))
    for row, run in enumerate(runs):
        draw_jobs(run, drawn.add_subplot(grid[row, 0]), style=styles[id(run)])
        draw_rates(run, drawn.add_subplot(grid[row, 1]), style=styles[id(run)])
    models = dict.fromkeys(run.simulated for run in runs if run.simulated is not None)
    if models:
        names = ", ".join(map(for_picture, models))
        drawn.suptitle(f"SIMULATED with the model {names}: nothing of it was measured")
    first = None
    for row, run in enumerate(runs, len(runs)):
        first = drawn.add_subplot(grid[row, :], sharey=first)
        draw_throughput(run, first, style=styles[id(run)])
    for row, run in enumerate(timed, 2 * len(runs)):
        draw_latency(run, drawn.add_subplot(grid[row, :]), style=styles[id(run)])
    return drawn
