"""How the functions' rates are distributed."""

import numpy as np
from matplotlib.axes import Axes

from serverless_bench.archive import Run
from serverless_bench.plots.style import color_of
from serverless_bench.reduce import function_rates


def draw_rates(run: Run, axes: Axes) -> None:
    """Draw a histogram of each function's bytes over its first start to last end.

    Parameters
    ----------
    run
        A saved run.
    axes
        Where to draw.
    """
    rates = function_rates(run) / 1e6
    axes.set_xlabel("MB/s")
    axes.set_ylabel("functions")
    axes.set_title(f"{run.job.workload}: rate per function")
    if not len(rates):
        return
    axes.hist(rates, bins="auto" if len(rates) > 1 else 1, color=color_of(run), alpha=0.7)
    middle = float(np.median(rates))
    axes.axvline(middle, color="black", linewidth=1, label=f"median {middle:.1f}")
    axes.legend(loc="upper right")
