"""The page of a comparison."""

from collections.abc import Iterator, Mapping
from typing import Any

from serverless_bench.analysis.run_comparison import RunComparison
from serverless_bench.reporters.comparison import format_metric, told
from serverless_bench.reporters.definitions import terms
from serverless_bench.reporters.page import palette
from serverless_bench.reporters.page.charts import Chart, Row, figure, number, values
from serverless_bench.reporters.page.document import Part, document
from serverless_bench.reporters.page.markup import Html, tag
from serverless_bench.reporters.page.values import Figures, all_figures, table
from serverless_bench.statistics.verdict import Verdict

_BAD = frozenset({Verdict.SLOWER})


def page(comparison: RunComparison) -> str:
    """Return the page of a comparison."""
    found = comparison.to_json()
    figures = Figures(found, terms(), "comparison", _words(found, comparison.metric))
    asked, verdicts, remarks = told(comparison)
    state = ("bad" if one.verdict in _BAD else None for one in comparison.comparisons)
    lead = tag(
        "div",
        (
            tag("p", text, class_=f"verdict {style or ''}".strip())
            for text, style in zip(verdicts, state, strict=True)
        ),
        tag("p", asked, class_="soft"),
        tag("ul", (tag("li", text) for text in remarks)),
    )
    parts = [
        Part(title="Runs", content=[figure(_runs(comparison)), _sides(comparison, figures)]),
        Part(title="Ratios", content=_ratios(comparison, figures)),
        all_figures(figures),
    ]
    labels = " and ".join(side.label for side in comparison.sides)
    return document(f"Comparison of {labels}", lead, parts, figures.definitions())


def _words(found: Mapping[str, Any], metric: str) -> dict[str, str]:
    """Return the metric's values with their unit, by path."""
    values_of = {
        f"sides[{at}].{path}": value
        for at, side in enumerate(found["sides"])
        for path, value in (
            ("median", side["median"]),
            *((f"values[{number}]", one) for number, one in enumerate(side["values"])),
        )
    }
    return {path: format_metric(metric, value) for path, value in values_of.items()}


def _runs(comparison: RunComparison) -> Chart:
    """Return every run's value, and the median of its side."""
    sides = [(side.label, side.metric(comparison.metric)) for side in comparison.sides]
    rows: list[Row] = [
        {"side": label, "value": value, "shown": format_metric(comparison.metric, value)}
        for label, numbers in sides
        for value in numbers
    ]
    side = {"field": "side", "type": "nominal", "title": None}
    x = number("value", comparison.metric, scale={"zero": False}, axis={"format": "~s"})
    dots = {"type": "point", "filled": True, "size": 70, "opacity": 0.7}
    return Chart(
        title="Each run",
        says="A dot is a run; the line is the median of its side.",
        spec={
            "data": values(rows),
            "encoding": {"y": side},
            "layer": [
                {
                    "mark": {**dots, "color": palette.color("blue")},
                    "encoding": {
                        "x": x,
                        "tooltip": [
                            {"field": "side", "title": "side"},
                            {"field": "shown", "title": comparison.metric},
                        ],
                    },
                },
                {
                    "mark": {"type": "tick", "thickness": 3, "color": palette.color("orange")},
                    "encoding": {"x": {**x, "aggregate": "median"}},
                },
            ],
        },
        height=44 * len(sides),
    )


def _sides(comparison: RunComparison, figures: Figures) -> Html:
    rows = [
        [
            figures.value(f"sides[{at}].{name}")
            for name in ("label", "directory", "runs", "simulated", "median", "spread")
        ]
        for at in range(len(comparison.sides))
    ]
    header = ("side", "directory", "runs", "simulated", "median", "spread")
    return table(header, rows, names=2, caption="Sides, the baseline first")


def _ratios(comparison: RunComparison, figures: Figures) -> Iterator[Html]:
    rows: list[Row] = []
    cells = []
    for at, (side, one) in enumerate(
        zip(comparison.sides[1:], comparison.comparisons, strict=True)
    ):
        pair = f"{side.label} over {comparison.sides[0].label}"
        paths = [f"comparisons[{at}].{name}" for name in ("verdict", "ratio")]
        more = ("interval.low", "interval.high", "mann_whitney_p", "permutation_p")
        paths += [f"comparisons[{at}].evidence.{name}" for name in more if one.evidence]
        cells.append([pair, *map(figures.value, paths), *("-" for _ in more if not one.evidence)])
        row: dict[str, object] = {"pair": pair, "ratio": one.ratio}
        if one.evidence:
            row |= {"low": one.evidence.interval.low, "high": one.evidence.interval.high}
        rows.append(row)
    yield figure(_forest(rows, comparison.threshold))
    header = ("pair", "verdict", "ratio", "from", "to", "p by ranks", "p by means")
    yield table(header, cells, names=2, caption="Verdicts")


def _forest(rows: list[Row], threshold: float) -> Chart:
    """Return the ratios with their intervals, and what does not matter between them."""
    near = {"low": 1 / (1 + threshold), "high": 1 + threshold}
    x = number("low", "other over baseline", scale={"type": "log", "nice": False, "padding": 30})
    pair = {"field": "pair", "type": "nominal", "title": None}
    return Chart(
        title="Other over baseline",
        says="The dot is the estimate, the bar its interval; within the grey band a difference"
        " does not matter.",
        spec={
            "layer": [
                {
                    "data": values([near]),
                    "mark": {"type": "rect", "color": palette.color("gray"), "opacity": 0.25},
                    "encoding": {"x": x, "x2": {"field": "high"}},
                },
                {
                    "data": values(rows),
                    "mark": {"type": "rule", "strokeWidth": 3, "color": palette.color("blue")},
                    "encoding": {"x": x, "x2": {"field": "high"}, "y": pair},
                },
                {
                    "data": values(rows),
                    "mark": {"type": "point", "filled": True, "size": 90}
                    | {"color": palette.color("orange")},
                    "encoding": {
                        "x": number("ratio"),
                        "y": pair,
                        "tooltip": [
                            {"field": "pair", "title": "pair"},
                            *(number(n, n, format=".4~f") for n in ("ratio", "low", "high")),
                        ],
                    },
                },
            ]
        },
        height=44 * len(rows),
    )
