"""A comparison as text."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from serverless_bench.base.errors import PluginError
from serverless_bench.base.escaping import for_markdown, for_terminal
from serverless_bench.base.units import (
    format_count,
    format_per_s,
    format_rate,
    format_seconds,
    format_size,
)
from serverless_bench.features.answers.answer import Drawing, Mark
from serverless_bench.features.compare.run_comparison import Comparison, RunComparison
from serverless_bench.features.compare.verdict import ALPHA, MIN_BLOCKS, Verdict
from serverless_bench.report.text_table import table

_METRICS: Final[Mapping[str, str]] = {
    "ack_s": "last byte to ack",
    "cpu_s_per_gib": "CPU time per GiB",
    "latency_s": "latency",
    "makespan_s": "makespan",
    "peak_rss_bytes": "peak RSS",
    "ops_per_s": "operations per second",
    "peak_1s_bytes_per_s": "peak throughput, best 1 s",
    "peak_5s_bytes_per_s": "peak throughput, best 5 s",
    "per_function_bytes_per_s": "throughput per function",
    "elapsed_s": "elapsed time",
    "steady_bytes_per_s": "steady throughput",
    "completion_s": "completion time",
    "ttfb_s": "time to first byte",
    "throughput_bytes_per_s": "average throughput",
}
"""Descriptions of metrics; others are shown by name."""
_TOO_MANY_RUNS: Final = 100
"""Maximum number of runs per side that is recommended."""
_STYLES: Final = ("text", "markdown")


def lines(comparison: RunComparison, style: str) -> list[str]:
    """Return the lines of a comparison; ``style`` is text or markdown."""
    if style not in _STYLES:
        raise PluginError(
            f"unknown format {style!r} of a comparison", hint=f"choose one of {', '.join(_STYLES)}"
        )
    document, (question, verdicts, remarks) = comparison.to_json(), comparison_texts(comparison)
    sides = [
        (side["label"], side["directory"], _side(document, side)) for side in document["sides"]
    ]
    if style == "text":
        width = max(len(directory) for _, directory, _ in sides)
        side_lines = [f"{label}  {directory:<{width}}  {runs}" for label, directory, runs in sides]
        report = [question, *side_lines, *remarks, *verdicts]
    else:
        results = zip(comparison.comparisons, verdicts, strict=True)
        report = [
            for_markdown(question),
            "",
            *table(("side", "directory", "runs"), sides, style),
            *(f"- **{result.verdict}**: {for_markdown(text)}" for result, text in results),
            *(f"- {for_markdown(remark)}" for remark in remarks),
        ]
    return [for_terminal(line) for line in report]


def headline(comparison: RunComparison) -> str:
    """Return the verdicts in a few words."""
    return ", ".join(
        f"{side.label} {result.verdict} x{format_ratio(result.ratio)}"
        for side, result in zip(comparison.sides[1:], comparison.comparisons, strict=True)
    )


def drawings(comparison: RunComparison) -> tuple[Drawing, ...]:
    """Return the value of each run, and the ratios with their intervals."""
    field, _, part = comparison.metric.partition(".")
    factor = 1e6 if field.endswith("bytes_per_s") else 1.0
    runs = tuple(
        Mark(at=side.label, value=value / factor, group=side.label)
        for side in comparison.sides
        for value in side.metric(comparison.metric)
    )
    name = " ".join(filter(None, (_METRICS.get(field, field), part)))
    return (
        Drawing(
            title="Runs",
            says="Each dot is a run.",
            at="side",
            value=f"{name}, MB/s" if factor > 1 else name,
            marks=runs,
        ),
        ratio_drawing(
            (
                (f"{side.label} over {comparison.sides[0].label}", result)
                for side, result in zip(comparison.sides[1:], comparison.comparisons, strict=True)
            ),
            at="sides",
            threshold=comparison.threshold,
        ),
    )


def ratio_drawing(
    results: Iterable[tuple[str, Comparison]], *, at: str, threshold: float
) -> Drawing:
    """Return a chart of named comparisons; ``at`` is the title of the names."""
    return Drawing(
        title="Ratios",
        says="Ratio of the geometric means; bars are the intervals of the report. Between the"
        " dashed lines a difference does not matter.",
        at=at,
        value="ratio",
        marks=tuple(
            Mark(
                at=name,
                value=result.ratio,
                low=result.evidence.interval.low if result.evidence else None,
                high=result.evidence.interval.high if result.evidence else None,
                group=result.verdict,
            )
            for name, result in results
        ),
        limits=(1 / (1 + threshold), 1 + threshold),
    )


def comparison_texts(comparison: RunComparison) -> tuple[str, list[str], list[str]]:
    """Return the compared metric, the verdicts as sentences, and remarks about the runs."""
    document = comparison.to_json()
    verdicts = [_sentence(document, at, item) for at, item in enumerate(comparison.comparisons, 1)]
    return question_text(document), verdicts, list(remark_texts(document))


def format_metric(metric: str, value: float) -> str:
    """Return a metric's value with the unit."""
    field, _, part = metric.partition(".")
    if "ops_per_s" in {field, part}:
        return format_per_s(value)
    if field.endswith("bytes_per_s"):
        return format_rate(value)
    if field.endswith("_bytes"):
        return format_size(round(value))
    # Parts of a kind of operation are its latencies.
    in_seconds = field.endswith("_s") or (part and field not in _METRICS)
    return format_seconds(value) if in_seconds else f"{value:.3g}"


def question_text(document: Mapping[str, Any]) -> str:
    """Return the compared metric, with the threshold."""
    direction = "more" if document["more_is_better"] else "less"
    field, *part = document["metric"].split(".", 1)
    return (
        f"{', '.join((_METRICS.get(field, field), *part))}, {direction} is better;"
        f" tolerance {document['threshold'] * 100:.3g}%; alpha {ALPHA}"
    )


def format_ratio(value: float) -> str:
    """Format a ratio with three decimals, or three significant digits if it is small."""
    return f"{value:.3f}" if value >= 0.1 else f"{value:.3g}"


def _side(document: Mapping[str, Any], side: Mapping[str, Any]) -> str:
    median_text = format_metric(document["metric"], side["median"])
    runs = format_count(side["runs"], "run")
    if side["simulated"]:
        runs += f" ({side['simulated']} SIMULATED)"
    text = f"{runs}, median {median_text}"
    return text if side["spread"] is None else f"{text}, spread {side['spread']:.1%}"


def remark_texts(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield how the sides differ, and what the test assumes."""
    if not document["differing"]:
        yield "their settings are the same"
    for name, values in document["differing"].items():
        yield f"{name} differs: {', '.join(f'{value!s:.80}' for value in values)}"
    if not document["interleaved"]:
        yield "note: one side ended before the other started; sbench ab runs them in turns"
    yield f"test: {document['assumes']}"


def _sentence(document: Mapping[str, Any], index: int, result: Comparison) -> str:
    baseline, other = document["sides"][0], document["sides"][index]
    pair, evidence = f"{other['label']} against {baseline['label']}", result.evidence
    if evidence is None:
        return (
            f"{pair}: {result.verdict}, at least {MIN_BLOCKS} per side are needed"
            f" ({document['compared']} x{format_ratio(result.ratio)}, which may be chance)"
        )
    within, order = evidence.interval, "runs without blocks"
    if document["blocks"]:
        order = f"blocks {' '.join(document['blocks'])}"
    text = (
        f"{pair}: {result.verdict}, {document['compared']} x{format_ratio(result.ratio)}"
        f" ({format_ratio(within.low)} to {format_ratio(within.high)} with"
        f" {within.confidence:.0%} confidence),"
        f" p {evidence.p_different:.2g}, {order}"
    )
    if result.verdict is not Verdict.UNDECIDED:
        return text
    if evidence.runs_needed > _TOO_MANY_RUNS:
        return f"{text}; too much spread for this threshold"
    return (
        f"{text}; if they are the same, a new comparison of {evidence.runs_needed} runs per"
        " side shows it (more runs beside these are a second look, see"
        ' "Comparisons" in the documentation)'
    )
