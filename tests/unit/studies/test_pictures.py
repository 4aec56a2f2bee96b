"""Every experiment's picture holds each cell of its table once, at its height."""

from dataclasses import replace
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_rgba
from matplotlib.container import BarContainer, ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from docs.experiment_figures import from_data
from serverless_bench.palette import LIGHT
from serverless_bench.studies.loading import load_experiment, names
from serverless_bench.studies.observations import CellRun, CellRuns
from serverless_bench.studies.plan import Plan
from serverless_bench.studies.plot import picture
from serverless_bench.studies.report import Report, make_report, show
from serverless_bench.studies.table import TableRow, Writer, grid, left_over, number, title_of
from tests.house.members import uses

PAGES = Path(__file__).parents[3] / "docs" / "experiments"
Interval = tuple[float, float, float]
"""Height, and the ends of its error bar."""


def drawn_up(name: str, scale: str) -> Report:
    """Every cell of an experiment with runs of its own, all figures different."""
    experiment = load_experiment(name)
    plan = Plan(experiment=experiment, scale=scale, repeats=5)
    rng = np.random.default_rng(7)
    figures = {metric.of for metric in experiment.metrics} | {"bytes", "elapsed_s"}
    # What this machine cannot run, another one can.
    cells = [replace(cell, skipped="") if cell.not_here else cell for cell in plan.cells()]
    observed = [
        CellRuns(
            cell=cell,
            planned=5,
            results=tuple(
                CellRun(path=Path(), figures={f: float(rng.lognormal(16, 1)) for f in figures})
                for _ in range(0 if cell.skipped else 5)
            ),
        )
        for cell in cells
    ]
    return make_report(plan, observed)


def kept(name: str) -> Report:
    """The report of a page that is kept."""
    data = orjson.loads((PAGES / f"{name}.json").read_bytes())
    return make_report(*from_data(load_experiment(name), data))


def reports() -> list[Any]:
    """The pages that are kept, and every experiment with made-up runs at both scales.

    They are made by the tests: every worker of a test run collects all tests.
    """
    pages = [
        pytest.param(partial(kept, path.stem), id=path.stem)
        for path in sorted(PAGES.glob("*.json"))
    ]
    made = [
        pytest.param(partial(drawn_up, name, scale), id=f"{name}-{scale}")
        for name in names()
        for scale in ("small", "paper")
    ]
    return [*pages, *made]


@pytest.fixture(scope="module", params=reports())
def report(request: pytest.FixtureRequest) -> Report:
    found: Report = request.param()
    return found


@pytest.fixture(scope="module")
def drawn(report: Report) -> Figure:
    """Drawn once for all tests."""
    return picture(report)


def y_metric(report: Report) -> str:
    assert report.experiment.plot is not None
    return report.experiment.plot.y


def expected(report: Report) -> list[tuple[TableRow, Interval]]:
    """What the table shows, in its order."""
    found = []
    for line in report.rows:
        at = line.entries[y_metric(report)].measured
        if at is not None:
            found.append((line, (at.at, at.low, at.high)))
    return found


def ends(container: Any, horizontal: bool) -> list[tuple[float, float]]:  # noqa: FBT001
    (bars,) = [part for part in container[2] if isinstance(part, LineCollection)]
    axis = 0 if horizontal else 1
    return [tuple(sorted(np.asarray(s)[:, axis])) for s in bars.get_segments()]


def artists(axes: Axes) -> list[tuple[float, Interval]]:
    """Return where each bar or point is across, and its height with its error bar."""
    found = []
    for one in axes.containers:
        if isinstance(one, BarContainer):
            spans = ends(one.errorbar, horizontal=True) if one.errorbar else None
            for n, bar in enumerate(one.patches):
                width = bar.get_width()
                low, high = spans[n] if spans else (width, width)
                found.append((bar.get_y() + bar.get_height() / 2, (width, low, high)))
        elif isinstance(one, ErrorbarContainer) and axes.lines and not _is_of_bars(axes):
            x, y = one[0].get_data()
            spans = ends(one, horizontal=False) if one.has_yerr else None
            for n, (across, height) in enumerate(zip(x, y, strict=True)):
                low, high = spans[n] if spans else (height, height)
                found.append((float(across), (float(height), low, high)))
    return found


def _is_of_bars(axes: Axes) -> bool:
    return any(isinstance(one, BarContainer) for one in axes.containers)


def test_each_cell_is_one_bar_or_point_as_the_table_has_it(report: Report, drawn: Figure) -> None:
    axes = drawn.axes[0]
    table, shown = expected(report), artists(axes)
    heights, wanted = (sorted(pair for _, pair in rows) for rows in (shown, table))
    assert len(heights) == len(wanted)
    np.testing.assert_allclose(heights, wanted)
    plot = report.experiment.plot
    assert plot is not None
    if _is_of_bars(axes):
        # From the top, in the order of the table, each with a label of its own.
        assert sorted(place for place, _ in shown) == pytest.approx(range(len(table)))
        np.testing.assert_allclose([pair for _, pair in sorted(shown)], [p for _, p in table])
        labels = [label.get_text() for label in axes.get_yticklabels()]
        assert len(set(labels)) == len(table)
    else:
        by_place = sorted((place, *pair) for place, pair in shown)
        if all(isinstance(line.observed.cell.at[plot.x], int | float) for line, _ in table):
            places = sorted((float(line.observed.cell.at[plot.x]), *pair) for line, pair in table)
            np.testing.assert_allclose(by_place, places)
        # No line goes back: cells that differ in something else are not joined.
        for line in axes.lines:
            x = np.asarray(line.get_xdata(), dtype=float)
            assert len(set(x.tolist())) == len(x)


def test_a_legend_has_a_title_and_covers_nothing(drawn: Figure) -> None:
    assert all(axes.get_legend() is None for axes in drawn.axes)
    for legend in drawn.legends:
        assert legend.get_title().get_text()
        texts = [text.get_text() for text in legend.get_texts()]
        assert len(set(texts)) == len(texts)


def test_the_heights_are_the_figures_of_the_printed_table(report: Report, drawn: Figure) -> None:
    metric = report.experiment.metric(y_metric(report))
    cells = [text for row in grid(report.experiment, report.rows).rows for text in row]
    for _, (at, low, high) in artists(drawn.axes[0]):
        texts = [number(metric, value) for value in (at, low, high)]
        assert f"{texts[0]} ({texts[1]} to {texts[2]})" in cells or texts[0] in cells
    assert title_of(metric) in " ".join(grid(report.experiment, report.rows).header)


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_no_table_is_wider_than_a_terminal(report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for table in (grid(report.experiment, report.rows), left_over(report.experiment, ())):
        out = Terminal()
        Writer(out, markdown=False).table(table)
        assert max(map(len, out.getvalue().splitlines()), default=0) <= 80
        words = out.getvalue().split()
        assert all(word in words for row in table.rows for text in row for word in text.split())


@pytest.mark.parametrize("path", sorted(PAGES.glob("*.json")), ids=lambda path: path.stem)
def test_a_page_is_what_its_figures_say(path: Path) -> None:
    plan, observed = from_data(load_experiment(path.stem), orjson.loads(path.read_bytes()))
    out = StringIO()
    show(make_report(plan, observed), out, "markdown")
    page = path.with_suffix(".md").read_text(encoding="utf-8")
    assert page.startswith(out.getvalue().strip()), "docs/make_experiments.py --pages"


def test_published_bars_stand_beside_their_cells() -> None:
    report = drawn_up("s3-client-libraries", "small")
    measured, published = picture(report).axes
    assert published.get_shared_y_axes().joined(measured, published)
    told = {place: at for place, (at, _, _) in artists(published)}
    rows = [line for line, _ in expected(report)]
    assert len(told) == 3
    for place, at in told.items():
        row = rows[round(place)].row
        assert row is not None
        assert row.values["mib_per_s"] == at


def test_no_two_series_look_alike(drawn: Figure) -> None:
    looks = {
        (line.get_label(), line.get_color(), line.get_marker())
        for axes in drawn.axes
        for one in axes.containers
        if isinstance(one, ErrorbarContainer) and isinstance(line := one[0], Line2D)
    }
    assert len({(color, marker) for _, color, marker in looks}) == len(looks)


def test_figures_in_doubt_are_hollow_and_marked() -> None:
    lines = picture(drawn_up("sebs-flow-parallel-download", "small")).axes[1]
    hollow = sorted(
        float(at)
        for marks in lines.collections
        if isinstance(marks, PathCollection)
        for at in np.asarray(marks.get_offsets())[:, 1]
    )
    assert hollow == [0.093, 1.146, 1.601]
    assert "hollow" in lines.get_title(loc="left")
    report = drawn_up("small-objects-stores", "small")
    bars = [
        bar.get_width()
        for one in picture(report).axes[1].containers
        if isinstance(one, BarContainer)
        for bar in one.patches
        if to_rgba(bar.get_facecolor())[3] == 0
    ]
    assert bars == [42.6]
    texts = [text for row in grid(report.experiment, report.rows).rows for text in row]
    assert [text for text in texts if text.endswith("(!)")] == [
        *("42.6 (!)", "605.695 (!)", "680.959 (!)"),
        *("42.6 (!)", "605.695 (!)", "680.959 (!)"),
    ]
    whole = picture(drawn_up("s3-client-libraries", "small")).axes[1]
    assert "hollow" not in whole.get_title(loc="left")


def test_panels_share_their_scale_or_say_that_they_do_not(report: Report, drawn: Figure) -> None:
    if len(drawn.axes) < 2:
        return
    measured, published = drawn.axes
    bars = _is_of_bars(measured)
    shared = (
        measured.get_xlim() == published.get_xlim()
        if bars
        else measured.get_ylim() == published.get_ylim()
    )
    assert shared != ("a scale of its own" in measured.get_title(loc="left")), (
        report.experiment.name
    )


@uses("workload read")
def test_writes_are_green_and_reads_are_blue_here_too() -> None:
    drawn = picture(drawn_up("pywren-scaling", "small"))
    colors = {line.get_label(): line.get_color() for line in drawn.axes[0].lines}
    found = {
        one.get_label(): one[0].get_color()
        for one in drawn.axes[0].containers
        if isinstance(one, ErrorbarContainer)
    }
    assert found == {"write": LIGHT.hues["green"], "read": LIGHT.hues["blue"]}, colors
