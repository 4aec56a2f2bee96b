"""Pages of multiple runs: a comparison, and `sbench scale`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from serverless_bench.base.units import format_count
from serverless_bench.features.answers.answer import Drawing
from serverless_bench.features.compare.report import format_metric, told
from serverless_bench.features.compare.run_comparison import RunComparison
from serverless_bench.features.compare.verdict import Verdict
from serverless_bench.features.page.charts import drawing, figure, filled
from serverless_bench.features.page.document import Html, document, tag
from serverless_bench.features.page.values import Figures, all_figures, flat, table, terms
from serverless_bench.features.plot import palette
from serverless_bench.features.plot.answer_charts import answer_chart
from serverless_bench.features.plot.charts import Chart, Row, number, values

_BAD = frozenset({Verdict.SLOWER})
_RATIO_COLUMNS: Final = {
    "verdict": "verdict",
    "ratio": "ratio",
    "evidence.interval.low": "from",
    "evidence.interval.high": "to",
    "evidence.p_different": "p different",
    "evidence.p_same": "p same",
}
_COLUMNS: Final = {
    "number": "functions",
    "runs": "runs",
    "median": "median",
    "efficiency": "efficiency",
}


def comparison_page(comparison: RunComparison) -> str:
    """Return the page of a comparison."""
    document_json = comparison.to_json()
    figures = Figures(
        document_json, terms(), "comparison", _words(document_json, comparison.metric)
    )
    question, verdicts, remarks = told(comparison)
    state = ("bad" if item.verdict in _BAD else None for item in comparison.comparisons)
    lead = tag(
        "div",
        (
            tag("p", text, class_=f"verdict {style or ''}".strip())
            for text, style in zip(verdicts, state, strict=True)
        ),
        tag("p", question, class_="soft"),
        tag("ul", (tag("li", text) for text in remarks)),
    )
    parts = [
        ("Runs", [figure(_runs(comparison)), _sides(comparison, figures)]),
        ("Ratios", _ratios(comparison, figures)),
        all_figures(figures),
    ]
    labels = " and ".join(side.label for side in comparison.sides)
    return document(f"Comparison of {labels}", lead, parts, figures.definitions())


def _words(document_json: Mapping[str, Any], metric: str) -> dict[str, str]:
    """Return the metric's values with their unit, by path."""
    return {
        f"sides[{at}].{path}": format_metric(metric, value)
        for at, side in enumerate(document_json["sides"])
        for path, value in flat({name: side[name] for name in ("median", "values")})
    }


def _runs(comparison: RunComparison) -> Chart:
    """Return the value of every run, and the median of the side."""
    sides = [(side.label, side.metric(comparison.metric)) for side in comparison.sides]
    rows: list[Row] = [
        {"side": label, "value": value, "shown": format_metric(comparison.metric, value)}
        for label, numbers in sides
        for value in numbers
    ]
    x = number("value", comparison.metric, scale={"zero": False}, axis={"format": "~s"})
    return Chart(
        title="Each run",
        says="A dot is a run; the line is the median of its side.",
        spec=drawing(
            "each run",
            rows,
            x=x,
            median_x={**x, "aggregate": "median"},
            metric=comparison.metric,
            run=palette.color("blue"),
            median=palette.color("orange"),
        ),
        height=44 * len(sides),
    )


def _sides(comparison: RunComparison, figures: Figures) -> Html:
    names = ("directory", "runs", "simulated", "median", "spread")
    rows = figures.rows("sides", len(comparison.sides), ("label", *names))
    header = ("side", *names)
    return table(header, rows, names=2, caption="Sides, the baseline first")


def _ratios(comparison: RunComparison, figures: Figures) -> Iterator[Html]:
    baseline, *others = comparison.sides
    pairs = [f"{side.label} over {baseline.label}" for side in others]
    rows = list[dict[str, object]]()
    for pair, result in zip(pairs, comparison.comparisons, strict=True):
        rows.append({"pair": pair, "ratio": result.ratio})
        if result.evidence:
            rows[-1] |= {"low": result.evidence.interval.low, "high": result.evidence.interval.high}
    yield figure(_forest(rows, comparison.threshold))
    ratio_cells = figures.rows("comparisons", len(pairs), _RATIO_COLUMNS)
    cells = [[pair, *row] for pair, row in zip(pairs, ratio_cells, strict=True)]
    yield table(("pair", *_RATIO_COLUMNS.values()), cells, names=2, caption="Verdicts")


def _forest(rows: Sequence[Row], threshold: float) -> Chart:
    """Return the ratios with their intervals, and the range of irrelevant differences."""
    near = {"low": 1 / (1 + threshold), "high": 1 + threshold}
    x = number("low", "other over baseline", scale={"type": "log", "nice": False, "padding": 30})
    return Chart(
        title="Other over baseline",
        says="The dot is the estimate, the bar its interval; within the grey band a difference"
        " does not matter.",
        spec=filled(
            "ratios",
            near=values([near]),
            ratios=values(rows),
            x=x,
            gray=palette.color("grey"),
            interval=palette.color("blue"),
            estimate=palette.color("orange"),
        ),
        height=44 * len(rows),
    )


def scaling_page(
    fits: Mapping[str, Mapping[str, Any]],
    laws: Mapping[str, Sequence[str]],
    drawings: Sequence[Drawing],
) -> str:
    """Return the page of fitted laws.

    Parameters
    ----------
    fits
        JSON document by metric.
    laws
        Descriptions of the laws of each metric.
    drawings
        Data of the chart of each metric.
    """
    figures = Figures(fits, terms(), "scale")
    first = next(iter(laws.values()), ())
    parts = [
        (metric, _fit(metric, fitted, figures, laws[metric], chart))
        for (metric, fitted), chart in zip(fits.items(), drawings, strict=True)
    ]
    lead = tag("div", (tag("p", text, class_="verdict") for text in first[:1]))
    simulated = next(iter(fits.values()), {}).get("simulated")
    mark = f" ({format_count(simulated, 'run')} SIMULATED)" if simulated else ""
    title = f"Throughput by the number of functions{mark}"
    return document(title, lead, [*parts, all_figures(figures)], figures.definitions())


def _fit(
    metric: str,
    fitted: Mapping[str, Any],
    figures: Figures,
    laws: Sequence[str],
    chart: Drawing,
) -> Iterator[Html]:
    yield figure(answer_chart(chart))
    yield tag("ul", (tag("li", text) for text in laws))
    rows = figures.rows(f"{metric}.rows", len(fitted["rows"]), _COLUMNS)
    header = list(_COLUMNS.values())
    yield table(header, rows, names=1, caption="Runs by the number of functions")
