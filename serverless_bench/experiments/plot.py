"""An experiment's picture: each cell once, measured on the left, published on the right."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from serverless_bench.errors import UsageError
from serverless_bench.experiments.cells import Cell, baseline
from serverless_bench.experiments.definition import Experiment, Plot, PublishedRow, Value
from serverless_bench.experiments.report import Report
from serverless_bench.experiments.table import TableRow, title_of
from serverless_bench.plots.style import color_of_phase
from serverless_bench.rundir.tables import Floats

_WIDTH: Final = 11.0
_HEIGHT: Final = 4.2
_BAR: Final = 0.28
"""Inches for each bar."""
_COMPARABLE: Final = 10
"""Panels whose largest values differ by less than so many times share their scale."""


@dataclass(frozen=True, slots=True)
class Point:
    """One cell, or one published row."""

    label: str
    """Whose, among all of the picture."""
    series: str
    x: Value | None
    at: float
    low: float
    high: float


def save_plot(report: Report, path: Path) -> None:
    """Draw an experiment as its file says, and save the picture.

    Raises
    ------
    UsageError
        If the file has no plot, there is nothing to draw, or the picture cannot be written.
    """
    drawn = picture(report)
    try:
        drawn.savefig(path, dpi=120)
    except (OSError, ValueError) as exc:
        raise UsageError(f"cannot write --plot {path}: {exc}") from exc


def picture(report: Report) -> Figure:
    """Return the picture of an experiment: one bar, or one point of a line, for each cell.

    Lines need several values of x at this scale; without them there are bars.

    Raises
    ------
    UsageError
        If the file has no plot, or there is nothing to draw.
    """
    experiment, plot = report.experiment, report.experiment.plot
    if plot is None or not plot.y:
        raise UsageError(f"experiment {experiment.name} has no [plot] with a y")
    drawing = _Picture(report, plot)
    if not drawing.measured:
        raise UsageError(f"experiment {experiment.name}: there is nothing to draw")
    return drawing.draw()


class _Picture:
    """What is drawn of a report, and how it is told apart."""

    def __init__(self, report: Report, plot: Plot) -> None:
        self.report = report
        self.experiment = report.experiment
        self.plot = plot
        shown = [line for line in report.rows if line.entries[plot.y].measured is not None]
        xs = {str(line.observed.cell.at.get(plot.x)) for line in shown}
        self.lines = plot.kind == "lines" and len(xs) > 1
        rows = [] if not self.lines else list(_rows_on(self.experiment, plot))
        self.told_apart = _varying(
            self.experiment,
            [*(line.observed.cell.at for line in shown), *(row.at for row, _ in rows)],
        )
        self.measured = [self._measured(line) for line in shown]
        self.published = (
            [self._point("", "", row.at, within) for row, within in rows]
            if self.lines
            else [point for line in shown if (point := self._beside(line)) is not None]
        )

    def draw(self) -> Figure:
        """Return the picture."""
        panels = {f"measured, --scale {self.report.plan.scale}": self.measured}
        if self.published:
            panels[f"published, {self.experiment.seed.date}"] = self.published
        height = _HEIGHT if self.lines else max(_HEIGHT, 1.4 + _BAR * len(self.measured))
        drawn = Figure(figsize=(_WIDTH, height), layout="constrained")
        drawn.suptitle(self.experiment.title)
        each = drawn.subplots(1, len(panels), sharey=not self.lines, squeeze=False)[0]
        colors = _colors([point for points in panels.values() for point in points])
        value = title_of(self.experiment.metric(self.plot.y))
        for axes, (title, points) in zip(each, panels.items(), strict=True):
            axes.set_title(title)
            if self.lines:
                _draw_lines(axes, points, colors, log=self.plot.log)
                axes.set(xlabel=self.experiment.axis(self.plot.x).header, ylabel=value)
            else:
                _draw_bars(axes, points, colors, [point.label for point in self.measured])
                axes.set_xlabel(value)
        if not self.lines:
            each[0].invert_yaxis()
        _share(list(panels.values()), each, "ylim" if self.lines else "xlim")
        headers = [self.experiment.axis(name).header for name in self._series_axes()]
        _legend(drawn, each, title=", ".join(headers))
        return drawn

    def _measured(self, line: TableRow) -> Point:
        found, cell = line.entries[self.plot.y].measured, line.observed.cell
        if found is None:
            raise ValueError(f"{cell.label} has no {self.plot.y}")
        within = (found.at, found.low, found.high)
        return self._point(self._label(cell), cell.name if self.lines else "", cell.at, within)

    def _beside(self, line: TableRow) -> Point | None:
        """Return the published row of a cell that is drawn."""
        within = None if line.row is None else line.row.range(self.plot.y)
        cell = line.observed.cell
        return None if within is None else self._point(self._label(cell), "", cell.at, within)

    def _point(
        self, label: str, series: str, at: Mapping[str, Value], within: tuple[float, float, float]
    ) -> Point:
        names = [str(at.get(name, "-")) for name in self._series_axes()]
        return Point(label, series or ", ".join(names), at.get(self.plot.x), *within)

    def _series_axes(self) -> list[str]:
        """Return the axes that a colour stands for: of a line, all that differ but x."""
        if self.lines:
            return [name for name in self.told_apart if name != self.plot.x]
        return [name for name in self.told_apart if name == self.plot.series]

    def _label(self, cell: Cell) -> str:
        """Return what tells a cell from all others of the picture."""
        names = self.told_apart
        if self.report.plan.one_factor and not cell.name:
            axes = [self.experiment.axis(name) for name in names]
            base = {axis.name: str(baseline(axis, self.report.plan.scale)) for axis in axes}
            names = [name for name in names if str(cell.at.get(name)) != base[name]]
            if not names:
                return "baseline"
        return cell.name or " ".join(f"{n}={cell.at[n]}" for n in names) or cell.label


def _rows_on(
    experiment: Experiment, plot: Plot
) -> Iterator[tuple[PublishedRow, tuple[float, float, float]]]:
    """Yield all published rows that are on the axis x and have a y, with it."""
    for row in experiment.published:
        within = row.range(plot.y)
        if within is not None and plot.x in row.at:
            yield row, within


def _varying(experiment: Experiment, points: Sequence[Mapping[str, Value]]) -> list[str]:
    """Return the axes in which points differ."""
    names = [axis.name for axis in experiment.axes]
    return [name for name in names if len({str(at.get(name)) for at in points}) > 1]


def _draw_bars(
    axes: Axes, points: Sequence[Point], colors: Mapping[str, str], labels: Sequence[str]
) -> None:
    """Draw a bar beside each label."""
    for series, own in _by_series(points).items():
        places = [labels.index(point.label) for point in own]
        at, reach = _heights(own)
        axes.barh(places, at, xerr=reach, color=colors[series], label=series, capsize=3)
    axes.set_xlim(left=0)
    axes.set_yticks(range(len(labels)), labels)


def _draw_lines(
    axes: Axes, points: Sequence[Point], colors: Mapping[str, str], *, log: bool
) -> None:
    """Draw a line for each series."""
    order = _order(points)
    numeric = all(isinstance(point.x, int | float) for point in points)
    for series, own in _by_series(points).items():
        x = [float(p.x or 0) if numeric else order.index(str(p.x)) for p in own]
        at, reach = _heights(own)
        axes.errorbar(x, at, yerr=reach, label=series, color=colors[series], marker="o", capsize=3)
    if log and numeric:
        axes.set_xscale("log", base=2)
    axes.set_xticks([float(text) for text in order] if numeric else range(len(order)), order)
    if numeric:
        axes.minorticks_off()
    axes.set_ylim(bottom=0)


def _share(panels: Sequence[Sequence[Point]], each: Sequence[Axes], limits: str) -> None:
    """Give panels one scale if their values are comparable; say so if they have not."""
    most = [max(point.high for point in points) for points in panels]
    alike = 0 < max(most) < _COMPARABLE * min(most)
    for axes in each:
        if alike:
            axes.set(**{limits: (0, 1.05 * max(most))})
        elif len(panels) > 1:
            axes.set_title(f"{axes.get_title()}\n(a scale of its own)")


def _legend(drawn: Figure, each: Sequence[Axes], *, title: str) -> None:
    """Name each colour once, beside the panels, where it covers nothing."""
    shown = {
        label: handle
        for axes in each
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    if any(shown):
        drawn.legend(shown.values(), shown.keys(), title=title, loc="outside right upper")


def _by_series(points: Sequence[Point]) -> dict[str, list[Point]]:
    found: dict[str, list[Point]] = {}
    for point in points:
        found.setdefault(point.series, []).append(point)
    return found


def _colors(points: Sequence[Point]) -> dict[str, str]:
    """Return a colour for every series, the same in all panels."""
    names = dict.fromkeys(point.series for point in points)
    return {name: color_of_phase(name) or f"C{n % 10}" for n, name in enumerate(names)}


def _heights(points: Sequence[Point]) -> tuple[Floats, Floats | None]:
    """Return the values, shape (points,), and their reach below and above; None for none."""
    at = np.array([point.at for point in points])
    reach = np.array(
        [[point.at - point.low for point in points], [point.high - point.at for point in points]]
    )
    return at, reach if reach.any() else None


def _order(points: Sequence[Point]) -> list[str]:
    values = [point.x for point in points if point.x is not None]
    if all(isinstance(value, int | float) for value in values):
        values.sort(key=float)
    return list(dict.fromkeys(map(str, values)))
