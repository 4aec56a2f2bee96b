"""Pictures of an experiment's runs in the form in which their figures were published."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from serverless_bench.escaping import for_picture
from serverless_bench.palette import LIGHT
from serverless_bench.reporters.plots import figure
from serverless_bench.reporters.plots.style import dress
from serverless_bench.rundir.run import load_run
from serverless_bench.rundir.tables import Floats
from serverless_bench.studies.definition import UNITS, Plot
from serverless_bench.studies.observations import CellRuns, operation_sizes
from serverless_bench.studies.plot_series import SeriesStyle, draw_legend, looks_of
from serverless_bench.studies.report import Report

SHAPED_STORE: Final = ", on a shaped store"
"""Mark of a panel whose store was told how to behave."""
_SIZE: Final = (11.0, 4.2)
"""Inches."""
_HALF: Final = (25, 50, 75)
"""Percentiles at each place: ends of the band, and the line in it."""


def runs_as_plotted(report: Report, plot: Plot) -> Figure | None:
    """Return the panels of ``sbench plot``, of the run in the middle of each cell.

    None if no run is there.
    """
    paths = list[Path]()
    for cell in report.observed:
        rounds = cell.by_round(report.experiment.metric(plot.y))
        ordered = [cell.results[n - 1].path for n in sorted(rounds, key=rounds.__getitem__)]
        paths += filter(_is_kept, ordered[(len(ordered) - 1) // 2 :][:1])
    if not paths:
        return None
    drawn = figure([load_run(path) for path in paths])
    _title(drawn, report, "the run in the middle of each cell")
    return drawn


def rates_of_operations(report: Report, plot: Plot) -> Figure | None:
    """Return the rates of operations by bytes written, and by their number where arrays grow.

    None if no run is there.
    """
    lines, published = dict[str, Floats](), dict[str, float]()
    unit = report.experiment.metric(plot.y).unit
    rows = [row for row in report.rows if any(_is_kept(r.path) for r in row.observed.results)]
    names = [axis.name for axis in report.experiment.axes if axis.name != plot.x]
    names = [n for n in names if len({str(row.observed.cell.at.get(n)) for row in rows}) > 1]
    for row in rows:
        label = ", ".join(str(row.observed.cell.at.get(name)) for name in names)
        lines[label] = np.vstack([*lines.get(label, ()), _operations(row.observed)])
        if row.row is not None and (at := row.row.range(plot.y)):
            published[label] = at[0]
    if not lines:
        return None
    panels = {"bytes written (GB)": 1}
    if not plot.x:
        panels = {"number of the write": 2, **panels}
    drawn = Figure(figsize=_SIZE, layout="constrained")
    _title(drawn, report, "median and middle half of all writes")
    looks = looks_of(lines)
    panel_axes = drawn.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axes, (x, column) in zip(panel_axes, panels.items(), strict=True):
        for label, written in lines.items():
            rates = written[:, 0] / UNITS[unit]
            _draw_half(axes, label, written[:, column], rates, looks[label])
        for label, mean in published.items():
            text = f"{label}: published mean"
            axes.axhline(mean, color=looks[label].color, linestyle=":", label=text)
        dress(axes, title="", x=x, y=unit if axes is panel_axes[0] else "")
        # What was published may be ten times as fast.
        axes.set_yscale("log")
    headers = [report.experiment.axis(name).header for name in names]
    draw_legend(drawn, panel_axes, title=for_picture(", ".join(headers)))
    return drawn


AS_PUBLISHED: Final[Mapping[str, Callable[[Report, Plot], Figure | None]]] = {
    "operations": rates_of_operations,
    "runs": runs_as_plotted,
}
"""Pictures by their kind."""


def _is_kept(path: Path) -> bool:
    return (path / "run.json").is_file()


def _title(drawn: Figure, report: Report, shown: str) -> None:
    shaped = SHAPED_STORE * report.shaped_store
    text = f"{report.experiment.title}: measured, --scale {report.plan.scale}{shaped}; {shown}"
    drawn.suptitle(for_picture(text), color=LIGHT.ink, x=0.01, ha="left")


def _operations(cell: CellRuns) -> Floats:
    """Return a row for each operation of a cell: rate, bytes written in GB, number in its run."""
    rows = [np.empty((0, 3))]
    for path in (result.path for result in cell.results if result.figures is not None):
        moved, rates = operation_sizes(load_run(path, detail=False))
        written = np.cumsum(moved) if cell.cell.settings.get("operation") == "append" else moved
        rows.append(np.stack([rates, written / UNITS["GB"], np.arange(1, len(moved) + 1)], axis=1))
    return np.vstack(rows)


def _draw_half(axes: Axes, label: str, x: Floats, y: Floats, style: SeriesStyle) -> None:
    """Draw a line through the medians, and the band that holds half of the values."""
    across = np.unique(x)
    low, middle, high = np.array([np.percentile(y[x == place], _HALF) for place in across]).T
    axes.fill_between(across, low, high, color=style.color, alpha=0.2, linewidth=0)
    axes.plot(across, middle, label=label, color=style.color, marker=style.marker, markersize=3)
