"""Pages of multiple runs: a comparison, and `sbench scale`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from serverless_bench.base.units import format_count
from serverless_bench.features.answers.answer import Drawing
from serverless_bench.features.compare.report import comparison_texts, drawings, format_metric
from serverless_bench.features.compare.run_comparison import RunComparison
from serverless_bench.features.compare.verdict import Verdict
from serverless_bench.features.page.charts import figure
from serverless_bench.features.page.document import Html, document, tag
from serverless_bench.features.page.values import Figures, all_figures, flat, table, terms
from serverless_bench.features.plot.answer_charts import answer_chart

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
    question, verdicts, remarks = comparison_texts(comparison)
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
    runs, ratios = (figure(answer_chart(drawing)) for drawing in drawings(comparison))
    parts = [
        ("Runs", [runs, _sides(comparison, figures)]),
        ("Ratios", [ratios, *_ratios(comparison, figures)]),
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


def _sides(comparison: RunComparison, figures: Figures) -> Html:
    names = ("directory", "runs", "simulated", "median", "spread")
    rows = figures.rows("sides", len(comparison.sides), ("label", *names))
    header = ("side", *names)
    return table(header, rows, names=2, caption="Sides, the baseline first")


def _ratios(comparison: RunComparison, figures: Figures) -> Iterator[Html]:
    baseline, *others = comparison.sides
    pairs = [f"{side.label} over {baseline.label}" for side in others]
    ratio_cells = figures.rows("comparisons", len(pairs), _RATIO_COLUMNS)
    cells = [[pair, *row] for pair, row in zip(pairs, ratio_cells, strict=True)]
    yield table(("pair", *_RATIO_COLUMNS.values()), cells, names=2, caption="Verdicts")


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
