"""An experiment's picture: measured on the left, what was published on the right."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from serverless_bench.archive import Run, load_run
from serverless_bench.columns import Floats
from serverless_bench.errors import UsageError
from serverless_bench.experiments.cells import CELL
from serverless_bench.experiments.figures import operation_rates
from serverless_bench.experiments.report import Report
from serverless_bench.experiments.schema import Metric, Plot, Row, Value
from serverless_bench.experiments.table import Line
from serverless_bench.plots import figure as figure_of_runs

_SIZE: Final = (11.0, 4.2)
_TICK_CHARACTERS: Final = 40
"""Names below an axis that are longer together are turned."""
Points = list[tuple[Value, float, float, float]]
"""x, y, and how far the interval reaches below and above."""


def save_plot(report: Report, path: Path) -> None:
    """Draw an experiment as its file says, and save the picture.

    Raises
    ------
    UsageError
        If the file has no plot, there is nothing to draw, or the picture cannot be written.
    """
    plot = report.experiment.plot
    if plot is None:
        raise UsageError(f"experiment {report.experiment.name} has no [plot]")
    drawn = _DRAW[plot.kind](report, plot)
    try:
        drawn.savefig(path, dpi=120)
    except (OSError, ValueError) as exc:
        raise UsageError(f"cannot write --plot {path}: {exc}") from exc


def _lines(report: Report, plot: Plot) -> Figure:
    def draw(axes: Axes, series: Mapping[str, Points]) -> None:
        order, numeric = _order(series)
        for name, points in series.items():
            x = [float(p[0]) if numeric else order.index(str(p[0])) for p in points]
            y, reach = _heights(points)
            axes.errorbar(x, y, yerr=reach, label=name or None, marker="o", capsize=3)
        _ticks(axes, order, log=plot.log, numeric=numeric)

    return _panels(report, plot, draw)


def _bars(report: Report, plot: Plot) -> Figure:
    def draw(axes: Axes, series: Mapping[str, Points]) -> None:
        order, _ = _order(series)
        width = 0.8 / max(1, len(series))
        for number, (name, points) in enumerate(series.items()):
            shift = (number - (len(series) - 1) / 2) * width
            x = [order.index(str(p[0])) + shift for p in points]
            y, reach = _heights(points)
            axes.bar(x, y, width, yerr=reach, label=name or None, capsize=3)
        _ticks(axes, order, log=False, numeric=False)

    return _panels(report, plot, draw)


def _panels(
    report: Report, plot: Plot, draw: Callable[[Axes, Mapping[str, Points]], None]
) -> Figure:
    experiment = report.experiment
    if not plot.x or not plot.y:
        raise UsageError(f"experiment {experiment.name}: [plot] needs x and y")
    metric = experiment.metric(plot.y)
    shown = [
        (f"measured, --scale {report.scale}", _measured(report.lines, plot)),
        (f"published, {experiment.seed.date}", _published(report, plot)),
    ]
    panels = [(title, series) for title, series in shown if series]
    if not panels:
        raise UsageError(f"experiment {experiment.name}: there is nothing to draw")
    drawn = Figure(figsize=_SIZE, layout="constrained")
    drawn.suptitle(experiment.title)
    for number, (title, series) in enumerate(panels, 1):
        axes = drawn.add_subplot(1, len(panels), number)
        draw(axes, series)
        axes.set_title(title)
        axes.set_xlabel(plot.x if plot.x == CELL else experiment.axis(plot.x).header)
        axes.set_ylabel(_label(metric))
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
        # Once is enough for both panels, and hides less.
        if any(series) and (number == 1 or set(series) != set(panels[0][1])):
            axes.legend()
    return drawn


def _measured(lines: Sequence[Line], plot: Plot) -> dict[str, Points]:
    series: dict[str, Points] = {}
    for line in lines:
        cell, found = line.observed.cell, line.entries[plot.y].measured
        x = cell.value(plot.x)
        if found is not None and x is not None and x != "":
            name = str(cell.value(plot.series)) if plot.series else ""
            point = (x, found.at, found.at - found.low, found.high - found.at)
            series.setdefault(name, []).append(point)
    return series


def _published(report: Report, plot: Plot) -> dict[str, Points]:
    series: dict[str, Points] = {}
    for row in report.experiment.published:
        x = row.cell if plot.x == CELL else row.at.get(plot.x)
        value = row.values.get(plot.y)
        if x is None or x == "" or value is None or isinstance(value, str):
            continue
        low, high = value if isinstance(value, tuple) else (value, value)
        middle = (low + high) / 2
        name = _series_of(row, plot)
        series.setdefault(name, []).append((x, middle, middle - low, high - middle))
    return series


def _series_of(row: Row, plot: Plot) -> str:
    return str(row.at.get(plot.series, "")) if plot.series else ""


def _heights(points: Points) -> tuple[Floats, Floats | None]:
    """Return y of shape (points,), and its reach below and above, None if nobody knows."""
    table = np.array([point[1:] for point in points], dtype=np.float64).T
    return table[0], table[1:] if table[1:].any() else None


def _order(series: Mapping[str, Points]) -> tuple[list[str], bool]:
    values = [point[0] for points in series.values() for point in points]
    numeric = all(isinstance(value, int | float) for value in values)
    if numeric:
        values.sort(key=float)
    return list(dict.fromkeys(map(str, values))), numeric


def _ticks(axes: Axes, order: Sequence[str], *, log: bool, numeric: bool) -> None:
    if numeric:
        if log:
            axes.set_xscale("log", base=2)
        axes.set_xticks([float(text) for text in order], order)
        axes.minorticks_off()
    else:
        axes.set_xticks(range(len(order)), order)
        if sum(map(len, order)) > _TICK_CHARACTERS:
            axes.tick_params("x", rotation=25)
            for label in axes.get_xticklabels():
                label.set_horizontalalignment("right")
                label.set_rotation_mode("anchor")


def _label(metric: Metric) -> str:
    unit = f" ({metric.unit})" if metric.unit and metric.unit not in metric.header else ""
    return f"{metric.header}{unit}"


def _operations(report: Report, plot: Plot) -> Figure:
    """Draw the rate of every operation against its number, of each cell's first run."""
    del plot
    drawn = Figure(figsize=(_SIZE[0] * 0.7, _SIZE[1]), layout="constrained")
    axes = drawn.add_subplot()
    for label, run in _first_runs(report):
        rates = operation_rates(run) / 1e9
        axes.plot(np.arange(1, len(rates) + 1), rates, label=label)
    axes.set_title(f"{report.experiment.title}\nmeasured, --scale {report.scale}")
    axes.set_xlabel("number of the operation")
    axes.set_ylabel("GB/s")
    axes.set_ylim(bottom=0)
    axes.legend()
    return drawn


def _runs(report: Report, plot: Plot) -> Figure:
    """Draw PyWren's panels of each cell's first run."""
    del plot
    return figure_of_runs([run for _, run in _first_runs(report)])


def _first_runs(report: Report) -> Iterator[tuple[str, Run]]:
    found = False
    for one in report.observed:
        for result in one.results:
            if result.figures is not None:
                found = True
                yield one.cell.label, load_run(result.path, detail=False)
                break
    if not found:
        raise UsageError(f"experiment {report.experiment.name}: there is nothing to draw")


_DRAW: Final[Mapping[str, Callable[[Report, Plot], Figure]]] = {
    "bars": _bars,
    "lines": _lines,
    "operations": _operations,
    "runs": _runs,
}
