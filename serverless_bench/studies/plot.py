"""An experiment's picture: each cell once, measured on the left, published on the right."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from serverless_bench.errors import UsageError
from serverless_bench.escaping import for_picture
from serverless_bench.palette import LIGHT
from serverless_bench.reporters.plots.style import dress
from serverless_bench.rundir.files import replacing
from serverless_bench.rundir.tables import Floats
from serverless_bench.studies.cells import Cell, baseline
from serverless_bench.studies.contradictions import contradictions, is_doubted
from serverless_bench.studies.definition import Plot, PublishedRow, Value
from serverless_bench.studies.plot_as_published import AS_PUBLISHED, SHAPED_STORE
from serverless_bench.studies.plot_series import SeriesStyle, draw_legend, looks_of
from serverless_bench.studies.report import Report
from serverless_bench.studies.table import title_of

_WIDTH: Final = 11.0
_HEIGHT: Final = 4.2
_BAR: Final = 0.28
"""Inches for each bar."""
_OWN_SCALE: Final = "\n(a scale of its own)"
_CAPS: Final = (3, 5, 7)
"""Half of the ends of error bars: of those on one spot each is seen beside the next."""
_CROWDED: Final = 8
"""More words than these below an axis are turned."""
_HOLE: Final = 12
"""Square points, of the white in a hollow mark."""
_HALO: Final = 3.5
"""Points across, of the light line below an error bar, which is seen on its bar, too."""
_MARGIN: Final = 1.4
"""Above and below what is drawn, where ratios are heights."""
_COMPARABLE: Final = 10
"""Panels whose largest values differ by less than so many times share their scale."""


Within = tuple[float, float, float]
"""A figure, and the ends of its range."""


@dataclass(frozen=True, slots=True)
class Point:
    """One cell, or one published row."""

    label: str
    """Whose, among all of the picture."""
    series: str
    x: Value | None
    within: Within
    doubted: bool = False
    """Whether any figure of a published row contradicts others; such are drawn hollow."""


def save_plot(report: Report, path: Path) -> None:
    """Draw an experiment as its file says, and save the picture.

    Raises
    ------
    UsageError
        If the file has no plot, there is nothing to draw, or the picture cannot be written.
    """
    drawn = picture(report)
    try:
        with replacing(path) as file:
            drawn.savefig(file, dpi=120, format=path.suffix.removeprefix(".") or None)
    except (OSError, ValueError) as exc:
        raise UsageError(f"cannot write --plot {path}: {exc}") from exc


def picture(report: Report) -> Figure:
    """Return the picture of an experiment, as it was published or one bar or point for each cell.

    Lines need several values of x at this scale; without them there are bars. What is drawn as
    published needs the runs, not only their figures.

    Raises
    ------
    UsageError
        If the file has no plot, or there is nothing to draw.
    """
    experiment, plot = report.experiment, report.experiment.plot
    if plot is None or not plot.y:
        raise UsageError(f"experiment {experiment.name} has no [plot] with a y")
    drawn = AS_PUBLISHED[plot.kind](report, plot) if plot.kind in AS_PUBLISHED else None
    if drawn is not None:
        return drawn
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
        shown = [(one, found) for one in report.rows if (found := one.entries[plot.y].measured)]
        cells = [one.observed.cell for one, _ in shown]
        self.lines = plot.kind != "bars" and len({str(cell.at.get(plot.x)) for cell in cells}) > 1
        if self.lines:
            # Controls may be nowhere on it.
            shown = [(one, found) for one, found in shown if plot.x in one.observed.cell.at]
            cells = [one.observed.cell for one, _ in shown]
        # Lines have all published rows that are on the axis x; bars those beside their cells.
        doubts = contradictions(self.experiment)
        rows: list[tuple[Mapping[str, Value], Cell | None, PublishedRow]] = [
            (one.observed.cell.at, one.observed.cell, one.row) for one, _ in shown if one.row
        ]
        if self.lines:
            rows = [(row.at, None, row) for row in self.experiment.published if plot.x in row.at]
        published = [
            (at, cell, at_y, is_doubted(doubts, row))
            for at, cell, row in rows
            if (at_y := row.range(plot.y))
        ]
        points = [cell.at for cell in cells] + [at for at, *_ in published if self.lines]
        names = [axis.name for axis in self.experiment.axes]
        self.told_apart = [n for n in names if len({str(at.get(n)) for at in points}) > 1]
        # Axes that a colour stands for: of a line, all that differ but x.
        self.series = [
            n for n in self.told_apart if (n != plot.x if self.lines else n == plot.series)
        ]
        self.shaped = all(cell.shaped_store for cell in cells)
        self.measured = [
            self._point(cell.at, cell, (found.at, found.low, found.high))
            for cell, (_, found) in zip(cells, shown, strict=True)
        ]
        self.published = [self._point(*one) for one in published]

    def draw(self) -> Figure:
        """Return the picture."""
        shaped = SHAPED_STORE * self.shaped
        panels = {f"measured, --scale {self.report.plan.scale}{shaped}": self.measured}
        if self.published:
            hollow = any(point.doubted for point in self.published)
            title = f"published, {for_picture(self.experiment.seed.date)}"
            panels[title + "; hollow: in doubt" * hollow] = self.published
        height = _HEIGHT if self.lines else max(_HEIGHT, 1.4 + _BAR * len(self.measured))
        drawn = Figure(figsize=(_WIDTH, height), layout="constrained")
        drawn.suptitle(for_picture(self.experiment.title), color=LIGHT.ink, x=0.01, ha="left")
        each = drawn.subplots(1, len(panels), sharey=not self.lines, squeeze=False)[0]
        looks = looks_of(point.series for points in panels.values() for point in points)
        for axes, points in zip(each, panels.values(), strict=True):
            if self.lines:
                _draw_lines(axes, points, looks, log=self.plot.log)
            else:
                _draw_bars(axes, points, looks, [point.label for point in self.measured])
        if not self.lines:
            each[0].invert_yaxis()
        if self.lines and self.plot.log_y:
            shared = _share_ratios(list(panels.values()), each)
        else:
            shared = _share(list(panels.values()), each, "ylim" if self.lines else "xlim")
        value = for_picture(title_of(self.experiment.metric(self.plot.y)))
        for axes, title in zip(each, panels, strict=True):
            x, y = value, ""
            if self.lines:
                x = for_picture(self.experiment.axis(self.plot.x).header)
                y = value if axes is each[0] else ""
            dress(axes, title=title if shared else title + _OWN_SCALE, x=x, y=y)
            axes.grid(visible=self.lines, axis="y")
        headers = [self.experiment.axis(name).header for name in self.series]
        named = for_picture(", ".join(headers))
        draw_legend(drawn, each, title=f"{named}\nmeasured{shaped}" if shaped else named)
        return drawn

    def _point(
        self,
        at: Mapping[str, Value],
        cell: Cell | None,
        within: Within,
        doubted: bool = False,  # noqa: FBT001, FBT002 - the last of what a published row has
    ) -> Point:
        label = "" if cell is None else self._label(cell)
        if cell is not None and cell.shaped_store and not self.shaped:
            label += SHAPED_STORE
        series = cell.name if self.lines and cell is not None else ""
        names = [str(at.get(name, "not said")) for name in self.series]
        series = for_picture(series or ", ".join(names))
        return Point(for_picture(label), series, at.get(self.plot.x), within, doubted)

    def _label(self, cell: Cell) -> str:
        """Return what tells a cell from all others of the picture."""
        names = self.told_apart
        if self.report.plan.one_factor and not cell.name:
            scale = self.report.plan.scale
            base = {name: baseline(self.experiment.axis(name), scale) for name in names}
            names = [name for name in names if str(cell.at.get(name)) != str(base[name])]
            if not names:
                return "baseline"
        return cell.name or " ".join(f"{n}={cell.at[n]}" for n in names) or cell.label


def _draw_bars(
    axes: Axes, points: Sequence[Point], looks: Mapping[str, SeriesStyle], labels: Sequence[str]
) -> None:
    """Draw a bar beside each label."""
    for series, own, at, reach in _by_series(points):
        places = [labels.index(point.label) for point in own]
        color = looks[series].color
        bars = axes.barh(
            places, at, xerr=reach, color=color, ecolor=LIGHT.ink, label=series, capsize=3
        )
        for part in (*bars.errorbar[1], *bars.errorbar[2]) if bars.errorbar else ():
            part.set_path_effects([withStroke(linewidth=_HALO, foreground=LIGHT.surface)])
        for bar, point in zip(bars.patches, own, strict=True):
            if point.doubted:
                bar.set(facecolor="none", edgecolor=color)
    axes.set_yticks(range(len(labels)), labels)


def _draw_lines(
    axes: Axes, points: Sequence[Point], looks: Mapping[str, SeriesStyle], *, log: bool
) -> None:
    """Draw a line for each series."""
    values = [point.x for point in points if point.x is not None]
    numeric = all(isinstance(value, int | float) for value in values)
    if numeric:
        values.sort(key=float)
    order = list(dict.fromkeys(map(str, values)))
    for number, (series, own, at, reach) in enumerate(_by_series(points)):
        x = [float(p.x or 0) if numeric else order.index(str(p.x)) for p in own]
        axes.errorbar(
            x,
            at,
            yerr=reach,
            label=series,
            color=looks[series].color,
            marker=looks[series].marker,
            capsize=_CAPS[number % len(_CAPS)],
        )
        hollow = [n for n, point in enumerate(own) if point.doubted]
        axes.scatter([x[n] for n in hollow], at[hollow], color=LIGHT.surface, s=_HOLE, zorder=3)
    if log and numeric:
        axes.set_xscale("log", base=2)
    places = [float(text) for text in order] if numeric else range(len(order))
    axes.set_xticks(places, map(for_picture, order))
    if len(order) > _CROWDED:
        axes.tick_params(axis="x", labelrotation=45)
    if numeric:
        axes.minorticks_off()


def _by_series(points: Sequence[Point]) -> Iterator[tuple[str, list[Point], Floats, Floats | None]]:
    """Yield each series with its points, their values, and the reach below and above them."""
    for series in dict.fromkeys(point.series for point in points):
        own = [point for point in points if point.series == series]
        at, low, high = np.array([point.within for point in own]).T
        reach = np.array([at - low, high - at])
        yield series, own, at, reach if reach.any() else None


def _share(panels: Sequence[Sequence[Point]], each: Sequence[Axes], limits: str) -> bool:
    """Give panels one scale from 0 if their values are comparable; tell whether they have."""
    most = [max(point.within[2] for point in points) for points in panels]
    alike = 0 < max(most) < _COMPARABLE * min(most)
    for axes, own in zip(each, most, strict=True):
        top = max(most) if alike else own
        if top > 0:
            axes.set(**{limits: (0, 1.05 * top)})
    return alike or len(panels) == 1


def _share_ratios(panels: Sequence[Sequence[Point]], each: Sequence[Axes]) -> bool:
    """Give panels one scale on which equal ratios are equally high."""
    ends = [end for points in panels for point in points for end in point.within if end > 0]
    for axes in each:
        axes.set_yscale("log")
        axes.set_ylim(min(ends, default=1) / _MARGIN, max(ends, default=1) * _MARGIN)
    return True
