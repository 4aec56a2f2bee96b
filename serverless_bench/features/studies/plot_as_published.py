"""Pictures of a study's runs in the form of the publication."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import numpy as np

from serverless_bench.base.escaping import for_terminal
from serverless_bench.features.page.charts import drawing
from serverless_bench.features.plot.charts import Chart, Row, number, values
from serverless_bench.features.plot.picture import Picture, column, figure, panel
from serverless_bench.features.studies.definition import UNITS, Plot
from serverless_bench.features.studies.observations import CellRuns, operation_sizes
from serverless_bench.features.studies.plot_series import looks_of, series_encodings
from serverless_bench.features.studies.report import Report
from serverless_bench.rundir.run import load_run
from serverless_bench.rundir.tables import Floats

SHAPED_STORE: Final = ", on a shaped store"
"""Mark of a panel whose store has a configured behaviour."""
_WIDTH: Final = 700
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
    each = [panel(chart, "", _WIDTH // len(panels)) for chart in charts]
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
