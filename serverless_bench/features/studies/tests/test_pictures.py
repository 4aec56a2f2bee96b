"""Every study's picture shows each cell of its table once, at its height."""

from dataclasses import replace
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from docs.experiment_figures import from_data
from docs.make_experiments import page
from serverless_bench.features.plot.palette import LIGHT
from serverless_bench.features.plot.picture import Picture
from serverless_bench.features.studies import names
from serverless_bench.features.studies.loading import load_study
from serverless_bench.features.studies.observations import CellRun, CellRuns
from serverless_bench.features.studies.plan import Plan
from serverless_bench.features.studies.plot import picture
from serverless_bench.features.studies.report import Report, make_report
from serverless_bench.features.studies.table import (
    TableRow,
    Writer,
    grid,
    left_over,
    number,
    title_of,
)
from tests.data.pictures import panels, rows
from tests.house.members import skipped_without, uses

PAGES = Path(__file__).parents[1] / "results"
Interval = tuple[float, float, float]
"""Height, and the ends of its error bar."""


def drawn_up(name: str, scale: str) -> Report:
    """Every cell of a study with runs of its own, all with different figures."""
    study = load_study(name)
    plan = Plan(study=study, scale=scale, repeats=5)
    rng = np.random.default_rng(7)
    figures = {metric.of for metric in study.metrics} | {"bytes", "elapsed_s"}
    # Cells that cannot run on this machine can run on others.
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
    return make_report(*from_data(load_study(name), data))


def reports() -> list[Any]:
    """The committed pages, and every study with synthetic runs at both scales.

    The tests make them: every worker of a test run collects all tests.
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
    with skipped_without():
        found: Report = request.param()
    return found


@pytest.fixture(scope="module")
def drawn(report: Report) -> Picture:
    """Drawn once for all tests."""
    return picture(report)


def y_metric(report: Report) -> str:
    assert report.study.plot is not None
    return report.study.plot.y


def expected(report: Report) -> list[tuple[TableRow, Interval]]:
    """Values of the table, in its order."""
    found = []
    for line in report.rows:
        at = line.entries[y_metric(report)].measured
        if at is not None:
            found.append((line, (at.at, at.low, at.high)))
    return found


def first(drawn: Picture) -> dict[str, Any]:
    """Return the panel with the measured values."""
    return next(panels(drawn.spec))


def has_bars(panel: dict[str, Any]) -> bool:
    return "y" in panel["encoding"]


def artists(panel: dict[str, Any]) -> list[tuple[Any, Interval]]:
    """Return the label or x of each bar or point, and its height with its error bar."""
    across = "label" if has_bars(panel) else "x"
    return [(row[across], (row["value"], row["low"], row["high"])) for row in rows(panel)]


def scale_of_values(panel: dict[str, Any]) -> dict[str, Any]:
    layer = panel["layer"][0 if has_bars(panel) else 1]
    scale: dict[str, Any] = layer["encoding"]["x" if has_bars(panel) else "y"]["scale"]
    return scale


def test_each_cell_is_one_bar_or_point_as_the_table_has_it(report: Report, drawn: Picture) -> None:
    panel = first(drawn)
    table, shown = expected(report), artists(panel)
    heights, wanted = (sorted(pair for _, pair in found) for found in (shown, table))
    assert len(heights) == len(wanted)
    np.testing.assert_allclose(heights, wanted, rtol=1e-5)
    plot = report.study.plot
    assert plot is not None
    if has_bars(panel):
        # From top to bottom, in the order of the table, each with a label of its own.
        assert [label for label, _ in shown] == panel["encoding"]["y"]["scale"]["domain"]
        np.testing.assert_allclose([pair for _, pair in shown], [p for _, p in table], rtol=1e-5)
        assert len({label for label, _ in shown}) == len(table)
        return
    if all(isinstance(line.observed.cell.at[plot.x], int | float) for line, _ in table):
        places = sorted((float(line.observed.cell.at[plot.x]), *pair) for line, pair in table)
        np.testing.assert_allclose(sorted((at, *pair) for at, pair in shown), places, rtol=1e-5)
    # No line goes back: cells that differ in another setting are not joined.
    points = [(row["series"], row["x"]) for row in rows(panel)]
    assert len(set(points)) == len(points)


def test_a_legend_has_a_title_and_is_beside_the_panels(drawn: Picture) -> None:
    for panel in panels(drawn.spec):
        colors = panel["layer"][0]["encoding"].get("color") or panel["encoding"]["color"]
        names = colors["scale"]["domain"]
        assert len(set(names)) == len(names)
        if names != [""]:
            assert colors["legend"]["orient"] == "right"
            assert all(colors["legend"]["title"])


def test_the_heights_are_the_figures_of_the_printed_table(report: Report, drawn: Picture) -> None:
    metric = report.study.metric(y_metric(report))
    cells = [text for row in grid(report.study, report.rows).rows for text in row]
    for _, interval in expected(report):
        texts = [number(metric, value) for value in interval]
        assert f"{texts[0]} ({texts[1]} to {texts[2]})" in cells or texts[0] in cells
    assert title_of(metric) in " ".join(grid(report.study, report.rows).header)


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_no_table_is_wider_than_a_terminal(report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for table in (grid(report.study, report.rows), left_over(report.study, ())):
        out = Terminal()
        Writer(out, markdown=False).table(table)
        assert max(map(len, out.getvalue().splitlines()), default=0) <= 80
        words = out.getvalue().split()
        assert all(word in words for row in table.rows for text in row for word in text.split())


@pytest.mark.parametrize("path", sorted(PAGES.glob("*.json")), ids=lambda path: path.stem)
def test_a_page_follows_from_its_figures(path: Path) -> None:
    text = path.with_suffix(".md").read_text(encoding="utf-8")
    assert text == page(path.stem), "docs/make_experiments.py --pages"
    assert len(text.split()) < 450


def test_published_bars_stand_beside_their_cells_if_most_cells_have_one() -> None:
    measured, published = panels(picture(drawn_up("skyrise-latency", "small")).spec)
    assert measured["encoding"]["y"]["scale"] == published["encoding"]["y"]["scale"]
    assert published["encoding"]["y"]["axis"]["labels"] is False
    report = drawn_up("s3-client-libraries", "small")
    measured, published = panels(picture(report).spec)
    assert published["encoding"]["y"]["axis"]["labels"] is True
    given = {label: at for label, (at, _, _) in artists(published)}
    labels = [label for label, _ in artists(measured)]
    lines = [line for line, _ in expected(report)]
    assert len(given) == 3
    for label, at in given.items():
        row = lines[labels.index(label)].row
        assert row is not None
        assert row.values["mib_per_s"] == at


def test_every_series_looks_different(drawn: Picture) -> None:
    for panel in panels(drawn.spec):
        if not has_bars(panel):
            shapes = panel["layer"][2]["encoding"]["shape"]["scale"]["range"]
            looks = list(zip(panel["encoding"]["color"]["scale"]["range"], shapes, strict=True))
            assert len(set(looks)) == len(looks)


def test_figures_in_doubt_are_hollow_and_marked() -> None:
    lines = list(panels(picture(drawn_up("sebs-flow-parallel-download", "small")).spec))[1]
    hollow = sorted(row["value"] for row in rows(lines) if row["doubted"])
    assert hollow == [0.093, 1.146, 1.601]
    assert lines["layer"][3]["mark"]["fill"] == LIGHT.surface
    assert "hollow" in lines["title"]["text"]
    report = drawn_up("small-objects-stores", "small")
    bars = list(panels(picture(report).spec))[1]
    assert [row["value"] for row in rows(bars) if row["doubted"]] == [42.6]
    assert bars["layer"][1]["mark"]["filled"] is False
    texts = [text for row in grid(report.study, report.rows).rows for text in row]
    assert [text for text in texts if text.endswith("(!)")] == [
        *("42.6 (!)", "605.695 (!)", "680.959 (!)"),
        *("42.6 (!)", "605.695 (!)", "680.959 (!)"),
    ]
    whole = list(panels(picture(drawn_up("s3-client-libraries", "small")).spec))[1]
    assert "hollow" not in whole["title"]["text"]


def test_panels_share_their_scale_or_say_that_they_do_not(report: Report, drawn: Picture) -> None:
    shown = list(panels(drawn.spec))
    if len(shown) < 2:
        return
    measured, published = shown
    shared = scale_of_values(measured) == scale_of_values(published)
    assert shared != ("(a scale of its own)" in measured["title"]["subtitle"]), report.study.name


@uses("workload read")
def test_writes_are_green_and_reads_are_blue_here_too() -> None:
    scale = first(picture(drawn_up("pywren-scaling", "small")))["encoding"]["color"]["scale"]
    found = dict(zip(scale["domain"], scale["range"], strict=True))
    assert found == {"write": LIGHT.hues["green"], "read": LIGHT.hues["blue"]}
