"""The page of `sbench scale`: throughput against the number of functions, and fitted laws."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from serverless_bench.reporters.definitions import terms
from serverless_bench.reporters.page import palette
from serverless_bench.reporters.page.charts import Chart, Row, colors, figure, number, values
from serverless_bench.reporters.page.document import Part, document
from serverless_bench.reporters.page.markup import Html, tag
from serverless_bench.reporters.page.values import Figures, all_figures, table
from serverless_bench.units import format_count

Curve = Sequence[tuple[float, float]]
"""Numbers of functions, and the bytes per second that a law says they get."""
_HUES: Final = ("orange", "purple")
"""Of the laws."""
_COLUMNS: Final = {
    "number": "functions",
    "runs": "runs",
    "median": "median",
    "efficiency": "efficiency",
}


def page(
    found: Mapping[str, Mapping[str, Any]],
    laws: Mapping[str, Sequence[str]],
    curves: Mapping[str, Mapping[str, Curve]],
) -> str:
    """Return the page of fits.

    Parameters
    ----------
    found
        The JSON document, by metric.
    laws
        What each metric's laws say, in sentences.
    curves
        Of each metric, by the law's name.
    """
    figures = Figures(found, terms(), "scale")
    first = next(iter(laws.values()), ())
    parts = [
        Part(title=metric, content=_fit(metric, fitted, figures, laws[metric], curves[metric]))
        for metric, fitted in found.items()
    ]
    lead = tag("div", (tag("p", text, class_="verdict") for text in first[:1]))
    some = next(iter(found.values()), {}).get("simulated")
    mark = f" ({format_count(some, 'run')} SIMULATED)" if some else ""
    title = f"Throughput by the number of functions{mark}"
    return document(title, lead, [*parts, all_figures(figures)], figures.definitions())


def _fit(
    metric: str,
    fitted: Mapping[str, Any],
    figures: Figures,
    laws: Sequence[str],
    curves: Mapping[str, Curve],
) -> Iterator[Html]:
    yield figure(_chart(fitted["rows"], curves))
    yield tag("ul", (tag("li", text) for text in laws))
    rows = [
        [figures.value(f"{metric}.rows[{at}].{name}") for name in _COLUMNS]
        for at in range(len(fitted["rows"]))
    ]
    header = list(_COLUMNS.values())
    yield table(header, rows, names=1, caption="Runs by the number of functions")


def _chart(rows: Sequence[Mapping[str, Any]], curves: Mapping[str, Curve]) -> Chart:
    lines: list[Row] = [
        {"n": n, "rate": rate / 1e6, "what": name}
        for name, curve in curves.items()
        for n, rate in curve
    ]
    points: list[Row] = [{"n": row["number"], "rate": row["median"] / 1e6} for row in rows]
    x = number("n", "functions", scale={"type": "log", "nice": False}, axis={"tickCount": 6})
    tints = {name: palette.color(hue) for name, hue in zip(curves, _HUES, strict=False)}
    return Chart(
        title="Throughput, MB/s",
        says="Dots are the medians of the runs with so many functions; lines are the fitted laws.",
        spec={
            "layer": [
                {
                    "data": values(lines),
                    "mark": {"type": "line"},
                    "encoding": {"x": x, "y": number("rate"), "color": colors(tints, "stroke")},
                },
                {
                    "data": values(points),
                    "mark": {"type": "point", "filled": True, "size": 80}
                    | {"color": palette.color("blue")},
                    "encoding": {
                        "x": x,
                        "y": number("rate"),
                        "tooltip": [
                            number("n", "functions"),
                            number("rate", "MB/s", format=".5~g"),
                        ],
                    },
                },
            ]
        },
        height=260,
    )
