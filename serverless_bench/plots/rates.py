"""How the functions' rates are distributed."""

from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from serverless_bench.analysis.timeline import function_spans
from serverless_bench.plots.style import Style, style_of
from serverless_bench.rundir.run import Run

_FEW: Final = 20
"""Functions that are dots, one by one: bars of so few say less."""


def draw_rates(run: Run, axes: Axes, *, style: Style | None = None) -> None:
    """Draw a histogram of each function's bytes over its first start to last end.

    Few functions are a dot each, in the order of their rates.

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
    rates = function_spans(run).bytes_per_s / 1e6
    axes.set(xlabel="MB/s", ylabel="functions", title=f"{style.label}: rate per function")
    if not len(rates):
        return
    if len(rates) < _FEW:
        axes.plot(np.sort(rates), np.arange(1, len(rates) + 1), "o", color=style.color)
        axes.set_ylim(0, len(rates) + 0.5)
    else:
        axes.hist(rates, bins="auto", color=style.color, alpha=0.7)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    middle = float(np.median(rates))
    axes.axvline(middle, color="black", linewidth=1)
    axes.set_title(f"{style.label}: rate per function, median {middle:.1f} MB/s")
