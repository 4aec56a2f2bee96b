"""How the functions' rates are distributed."""

from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MaxNLocator

from serverless_bench.analysis.timeline import function_spans
from serverless_bench.palette import LIGHT
from serverless_bench.reporters.plots.style import Style, dress, key_above, style_of, unit_for
from serverless_bench.rundir.run import Run

_FEW: Final = 20
"""Functions that are dots, one by one: bars of so few say less."""


def draw_rates(run: Run, axes: Axes, *, style: Style | None = None) -> None:
    """Draw a histogram of each function's bytes over its first start to last end.

    Few functions are a dot each, in the order of their rates. Rates begin at 0, so that
    functions that are nearly alike look alike.

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
    rates = function_spans(run).bytes_per_s
    factor, unit = unit_for(float(rates.max(initial=0)))
    few = len(rates) < _FEW
    dress(
        axes,
        title=f"{style.label}: rates",
        x=f"rate of each function, {unit}",
        y="functions, by their rate" if few else "functions",
    )
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set(xlim=(0, 1), ylim=(0, 1))
    if not len(rates):
        return
    shown = np.sort(rates) / factor
    if few:
        axes.plot(shown, np.arange(1, len(shown) + 1), "o", color=style.color, zorder=3)
        axes.set_ylim(0, len(shown) + 0.5)
    else:
        axes.hist(shown, bins="auto", color=style.color, edgecolor=LIGHT.surface, linewidth=0.5)
        axes.autoscale(axis="y")
    axes.set_xlim(0, max(1.05 * float(shown[-1]), 1e-3))
    middle = float(np.median(shown))
    axes.axvline(
        middle,
        color=LIGHT.ink,
        linewidth=1.5,
        linestyle="--",
        label=f"median {middle:.1f} {unit}",
        # On bars it is seen by its edge.
        path_effects=[withStroke(linewidth=3.5, foreground=LIGHT.surface)],
    )
    key_above(axes, columns=1)
