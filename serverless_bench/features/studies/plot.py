"""Pictures of a study: measured cells beside published rows, and in the form of the publication."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import numpy as np

from serverless_bench.base.errors import UsageError
from serverless_bench.base.escaping import for_terminal
from serverless_bench.features.page.charts import drawing
from serverless_bench.features.plot import palette
from serverless_bench.features.plot.charts import Chart, Row, Spec, log_axis, number, values
from serverless_bench.features.plot.picture import Picture, column, figure, panel
from serverless_bench.features.studies.cells import Cell, baseline
from serverless_bench.features.studies.contradictions import contradictions, is_doubted
from serverless_bench.features.studies.definition import (
    UNITS,
    Axis,
    Plot,
    PublishedRow,
    Study,
    Value,
)
from serverless_bench.features.studies.observations import CellRuns, operation_sizes
from serverless_bench.features.studies.plot_series import looks_of, series_encodings
from serverless_bench.features.studies.report import Report
from serverless_bench.features.studies.table import title_of
from serverless_bench.rundir.run import load_run
from serverless_bench.rundir.tables import Floats

SHAPED_STORE: Final = ", on a shaped store"
"""Mark of a panel whose store has a configured behaviour."""
_PUBLISHED_WIDTH: Final = 700
"""Total width of the axes of all panels, without the legend."""
_HALF: Final = (25, 50, 75)
"""Percentiles: bounds of the band, and the line in it."""


def runs_as_plotted(report: Report, plot: Plot) -> Picture | None:
    """Return the panels of ``sbench plot`` for the median run of each cell.

    None without runs.
    """
    paths = list[Path]()
    for cell in report.observed:
        rounds = cell.by_round(report.study.metric(plot.y))
        ordered = [cell.results[n - 1].path for n in sorted(rounds, key=rounds.__getitem__)]
        paths += filter(_is_kept, ordered[(len(ordered) - 1) // 2 :][:1])
    if not paths:
        return None
    title = _title(report, "the run in the middle of each cell")
    return figure([load_run(path) for path in paths], title=title)


def rates_of_operations(report: Report, plot: Plot) -> Picture | None:
    """Return the rates of operations by bytes written, and by number for growing arrays.

    None without runs.
    """
    lines, published = dict[str, Floats](), list[Row]()
    unit = report.study.metric(plot.y).unit
    rows = [row for row in report.rows if any(_is_kept(r.path) for r in row.observed.results)]
    names = [axis.name for axis in report.study.axes if axis.name != plot.x]
    names = [n for n in names if len({str(row.observed.cell.at.get(n)) for row in rows}) > 1]
    for row in rows:
        label = for_terminal(", ".join(str(row.observed.cell.at.get(name)) for name in names))
        lines[label] = np.vstack([*lines.get(label, ()), _operations(row.observed)])
        if row.row is not None and (at := row.row.range(plot.y)):
            published.append({"series": label, "value": at[0]})
    if not lines:
        return None
    panels = {"bytes written (GB)": 1}
    if not plot.x:
        panels = {"number of the write": 2, **panels}
    headers = ", ".join(report.study.axis(name).header for name in names)
    scale = {"type": "log", "nice": False, "padding": 10}
    parts = {
        "published": values(published),
        **{field: number(field, unit, scale=scale) for field in ("value", "low")},
        **series_encodings(
            looks_of(lines), f"{headers}\ndotted: published mean" if published else headers
        ),
    }
    says = "Median and middle half of all writes."
    drawn = [
        drawing(
            "rates of operations",
            [
                {"series": label, **row}
                for label, written in lines.items()
                for row in _halves(written[:, column], written[:, 0] / UNITS[unit])
            ],
            x=number("x", x, scale={"zero": True, "nice": False}),
            **parts,
        )
        for x, column in panels.items()
    ]
    charts = [
        Chart(title=f"By {x}", says=says, spec=spec, height=320)
        for x, spec in zip(panels, drawn, strict=True)
    ]
    each = [panel(chart, "", _PUBLISHED_WIDTH // len(panels)) for chart in charts]
    return column([{"hconcat": each}], _title(report, "median and middle half of all writes"))


AS_PUBLISHED: Final[Mapping[str, Callable[[Report, Plot], Picture | None]]] = {
    "operations": rates_of_operations,
    "runs": runs_as_plotted,
}
"""Pictures by their kind."""


def _is_kept(path: Path) -> bool:
    return (path / "run.json").is_file()


def _title(report: Report, shown: str) -> str:
    shaped = SHAPED_STORE * report.shaped_store
    return f"{report.study.title}: measured, --scale {report.plan.scale}{shaped}; {shown}"


def _operations(cell: CellRuns) -> Floats:
    """Return a row for each operation of a cell: rate, bytes written in GB, number in its run."""
    rows = [np.empty((0, 3))]
    for path in (result.path for result in cell.results if result.figures is not None):
        moved, rates = operation_sizes(load_run(path, detail=False))
        written = np.cumsum(moved) if cell.cell.settings.get("operation") == "append" else moved
        rows.append(np.stack([rates, written / UNITS["GB"], np.arange(1, len(moved) + 1)], axis=1))
    return np.vstack(rows)


def _halves(x: Floats, y: Floats) -> list[Row]:
    """Return the median of the values at each place, and their quartiles."""
    return [
        {"x": place, **dict(zip(("low", "value", "high"), middle, strict=True))}
        for place in np.unique(x).tolist()
        for middle in [np.percentile(y[x == place], _HALF).tolist()]
    ]


_WIDTH: Final = 720
"""Total width of the axes of all panels, without the legend."""
_BESIDE: Final = 620
"""The same for bars with labels."""
_HEIGHT: Final = 330
_BAR: Final = 24
"""Height of a bar."""
_LEAST_BARS: Final = 5
"""Panels are as high as these many bars."""
_SWITCHES: Final = ("on", "off", "none", "control")
"""Values that say nothing without the name of their axis."""
_CROWDED: Final = 8
"""With more words than this, the labels of an axis are rotated."""
_MARGIN: Final = 1.4
"""Factor above and below the values on a logarithmic axis."""
_COMPARABLE: Final = 10
"""Panels share a scale if the ratio of their largest values is below this."""

Within = tuple[float, float, float]
"""A figure, and the bounds of its range."""


@dataclass(frozen=True, slots=True)
class Point:
    """A cell, or a published row."""

    label: str
    """Label of the cell, distinct within the picture."""
    series: str
    x: Value | None
    within: Within
    doubted: bool = False
    """Whether a figure of a published row contradicts others; such points are hollow."""


def save_plot(report: Report, path: Path) -> None:
    """Draw a study according to its file, and save the picture.

    Raises
    ------
    UsageError
        If the file has no plot, or there is nothing to draw.
    ArchiveError
        If the picture cannot be written.
    """
    picture(report).save(path)


def picture(report: Report) -> Picture:
    """Return the picture of a study, in the published form or with a bar or point per cell.

    Lines need several values of x at this scale; otherwise there are bars. The published form
    needs the runs, not only their figures.

    Raises
    ------
    UsageError
        If the file has no plot, or there is nothing to draw.
    """
    study, plot = report.study, report.study.plot
    if plot is None or not plot.y:
        raise UsageError(f"study {study.name} has no [plot] with a y")
    drawn = AS_PUBLISHED[plot.kind](report, plot) if plot.kind in AS_PUBLISHED else None
    if drawn is not None:
        return drawn
    drawing = _CellPlot(report, plot)
    if not drawing.measured:
        raise UsageError(f"study {study.name}: there is nothing to draw")
    return drawing.draw()


class _CellPlot:
    """The picture of a report: its points and their distinction."""

    def __init__(self, report: Report, plot: Plot) -> None:
        self.report = report
        self.study = report.study
        self.plot = plot
        shown = [(one, found) for one in report.rows if (found := one.entries[plot.y].measured)]
        cells = [one.observed.cell for one, _ in shown]
        self.lines = plot.kind == "lines" and len({str(cell.at.get(plot.x)) for cell in cells}) > 1
        if self.lines:
            # Control cells may have no value of x.
            shown = [(one, found) for one, found in shown if plot.x in one.observed.cell.at]
            cells = [one.observed.cell for one, _ in shown]
        # Lines show all published rows with a value of x; bars only those with a measured cell.
        doubts = contradictions(self.study)
        rows: list[tuple[Mapping[str, Value], Cell | None, PublishedRow]] = [
            (one.observed.cell.at, one.observed.cell, one.row) for one, _ in shown if one.row
        ]
        if self.lines:
            rows = [(row.at, None, row) for row in self.study.published if plot.x in row.at]
        published = [
            (at, cell, at_y, is_doubted(doubts, row))
            for at, cell, row in rows
            if (at_y := row.range(plot.y))
        ]
        points = [cell.at for cell in cells] + [at for at, *_ in published if self.lines]
        names = [axis.name for axis in self.study.axes]
        self.told_apart = [n for n in names if len({str(at.get(n)) for at in points}) > 1]
        # Axes shown by colour: for lines, all axes that vary, except x.
        self.series = [
            n for n in self.told_apart if (n != plot.x if self.lines else n == plot.series)
        ]
        self.shaped = all(cell.shaped_store for cell in cells)
        self.measured = [
            self._point(cell.at, cell, (found.at, found.low, found.high))
            for cell, (_, found) in zip(cells, shown, strict=True)
        ]
        self.published = [self._point(*one) for one in published]

    def draw(self) -> Picture:
        """Return the picture."""
        shaped = SHAPED_STORE * self.shaped
        panels = {f"measured, --scale {self.report.plan.scale}{shaped}": self.measured}
        if self.published:
            hollow = any(point.doubted for point in self.published)
            title = f"published, {for_terminal(self.study.seed.date)}"
            panels[title + "; hollow: in doubt" * hollow] = self.published
        domains, shared = _domains(list(panels.values()), ratios=self.lines and self.plot.log_y)
        headers = ", ".join(self.study.axis(name).header for name in self.series)
        looks = looks_of(point.series for points in panels.values() for point in points)
        parts = series_encodings(looks, f"{headers}\nmeasured{shaped}" if shaped else headers)
        width = (_WIDTH if self.lines else _BESIDE) // len(panels)
        each = list[Spec]()
        for (title, points), domain in zip(panels.items(), domains, strict=True):
            # A published row stands beside its cell, unless most cells have none.
            beside = 2 * len(points) > len(self.measured)
            names = [point.label for point in (self.measured if beside else points)]
            chart = Chart(
                title=title,
                says="" if shared else "(a scale of its own)",
                spec=self._panel(
                    points, domain, names=names, labels=not (each and beside), parts=parts
                ),
                height=_HEIGHT if self.lines else _BAR * max(_LEAST_BARS, len(names)),
            )
            each.append(panel(chart, "", width))
        return column([{"hconcat": each}], self.study.title)

    def _panel(
        self,
        points: Sequence[Point],
        domain: Spec,
        *,
        names: Sequence[str],
        labels: bool,
        parts: Mapping[str, Spec],
    ) -> Spec:
        """Return a panel of lines, or of bars with these names, whose labels may be omitted."""
        title = title_of(self.study.metric(self.plot.y))
        rows = [
            {**asdict(point), **dict(zip(("value", "low", "high"), point.within, strict=True))}
            for point in points
        ]
        colors = {"halo": palette.color("background"), "ink": palette.color("text"), **parts}
        is_log = domain.get("type") == "log"
        axis = log_axis(*domain["domain"]) if is_log else {}
        # Layers with different titles of an axis would have all of them.
        values = {f: number(f, title, scale=domain, axis=axis) for f in ("value", "low")}
        if self.lines:
            return drawing("lines of cells", rows, x=self._across(points), **values, **colors)
        axis = {"minExtent": 0, "maxExtent": 600, "labelLimit": 600, "grid": False}
        y = {
            "field": "label",
            "type": "nominal",
            "title": None,
            "scale": {"domain": names},
            "axis": {**axis, "labels": labels},
        }
        return drawing("bars of cells", rows, labels=y, **values, **colors)

    def _across(self, points: Sequence[Point]) -> Spec:
        """Return the encoding of the axis x: its values, or words in their order."""
        values = [point.x for point in points if point.x is not None]
        title = self.study.axis(self.plot.x).header
        if all(isinstance(value, int | float) for value in values):
            scale: Spec = {"zero": False, "nice": False, "padding": 20}
            if self.plot.log:
                scale |= {"type": "log", "base": 2}
            axis = {"values": sorted({*values}), "grid": False, "format": ",~g"}
            return number("x", title, scale=scale, axis=axis)
        names = list(dict.fromkeys(map(for_terminal, map(str, values))))
        words = {"labelAngle": -45 if len(names) > _CROWDED else 0, "grid": False}
        return {"field": "x", "type": "ordinal", "title": title, "sort": names, "axis": words}

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
        names = [str(at.get(name, "not stated")) for name in self.series]
        series = for_terminal(series or ", ".join(names))
        return Point(for_terminal(label), series, at.get(self.plot.x), within, doubted)

    def _label(self, cell: Cell) -> str:
        """Return the label that distinguishes a cell within the picture."""
        names = self.told_apart
        if self.report.plan.one_factor and not cell.name:
            scale = self.report.plan.scale
            base = {name: baseline(self.study.axis(name), scale) for name in names}
            names = [name for name in names if str(cell.at.get(name)) != str(base[name])]
            if not names:
                return "baseline"
        return in_words(self.study, cell, names)


def in_words(study: Study, cell: Cell, names: Iterable[str]) -> str:
    """Return the name of a cell, or its values of these axes: minio, 1 process, unsigned."""
    words = [
        _value_in_words(study.axis(name), cell.at[name])
        for name in names
        # The usual choice, beside which others are named.
        if cell.at[name] != "library"
    ]
    return cell.name or ", ".join(words) or cell.label


def _value_in_words(axis: Axis, value: Value) -> str:
    """Return a value of an axis: 1 process, pre-stat off, PUT."""
    if isinstance(value, str) and value not in _SWITCHES:
        return value
    name = axis.name.replace("_", " ")
    if isinstance(value, str) or not name.endswith("s"):
        return f"{name} {value}"
    if value == 1:
        name = name.removesuffix("es" if name.endswith("sses") else "s")
    return f"{value} {name}"


def _domains(panels: Sequence[Sequence[Point]], *, ratios: bool) -> tuple[list[Spec], bool]:
    """Return the scale of each panel, and whether all panels share it.

    They share a scale from 0 if their values are comparable; on a logarithmic scale, equal ratios
    have equal heights.
    """
    if ratios:
        ends = [end for points in panels for point in points for end in point.within if end > 0]
        domain = [min(ends, default=1) / _MARGIN, max(ends, default=1) * _MARGIN]
        return [{"type": "log", "domain": domain, "nice": False}] * len(panels), True
    most = [max(point.within[2] for point in points) for points in panels]
    alike = 0 < max(most) < _COMPARABLE * min(most)
    tops = [max(most) if alike else own for own in most]
    return (
        [{"domain": [0, 1.05 * top if top > 0 else 1], "nice": False} for top in tops],
        alike or len(panels) == 1,
    )
