"""From sides to verdicts, shown and turned into an exit code."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from statistics import median
from typing import Any, Final

import click
import numpy as np
import orjson

from serverless_bench.analysis.compare import ALPHA, MIN_RUNS, Comparison, Verdict, compare
from serverless_bench.analysis.samples import (
    Sample,
    check_comparable,
    in_turns,
    more_is_better,
    what_differs,
)
from serverless_bench.cli.exit_codes import ExitCode
from serverless_bench.units import format_count, format_rate, format_seconds, format_size

_CODES: Final[Mapping[Verdict, ExitCode]] = {
    Verdict.FASTER: ExitCode.OK,
    Verdict.SAME: ExitCode.OK,
    Verdict.UNDECIDED: ExitCode.UNDECIDED,
    Verdict.NOT_ENOUGH_RUNS: ExitCode.UNDECIDED,
    Verdict.SLOWER: ExitCode.SLOWER,
}
_METRICS: Final[Mapping[str, str]] = {
    "ack_s": "last byte to ack",
    "cpu_s_per_gib": "processor time per GiB",
    "makespan_s": "makespan",
    "max_rss_bytes": "most memory resident",
    "peak_1s_bytes_per_s": "peak throughput, best 1 s",
    "peak_5s_bytes_per_s": "peak throughput, best 5 s",
    "per_function_bytes_per_s": "throughput per function",
    "span_s": "span",
    "steady_bytes_per_s": "steady throughput",
    **{f"t{n}_s": f"time until {n}% of the functions were done" for n in (50, 90, 99, 100)},
    "ttfb_s": "time to first byte",
    "whole_bytes_per_s": "whole throughput",
}
"""Metrics in words; what is not here is its own name."""
_TOO_MANY_RUNS: Final = 100
"""Nobody is advised to make more per side."""


def conclude(
    sides: Sequence[Sample], *, metric: str, threshold: float, allowed: Collection[str], style: str
) -> ExitCode:
    """Compare every side with the first, print the verdicts and return the exit code.

    Slower comes before undecided, and that before everything else.

    Raises
    ------
    UsageError
        If the metric is unknown, a run lacks it, or the sides cannot be compared.
    """
    better = more_is_better(metric)
    check_comparable(sides, allowed=allowed)
    values = [side.metric(metric) for side in sides]
    results = [
        compare(values[0], other, threshold=threshold, more_is_better=better)
        for other in values[1:]
    ]
    found = {
        "metric": metric,
        "more_is_better": better,
        "threshold": threshold,
        "alpha": ALPHA,
        "sides": [
            {
                "label": side.label,
                "directory": str(side.directory),
                "runs": len(numbers),
                "median": median(numbers),
                "spread": spread(numbers),
                "values": numbers,
            }
            for side, numbers in zip(sides, values, strict=True)
        ],
        "differing": what_differs(sides),
        "in_turns": in_turns(sides),
        "comparisons": [
            {"baseline": sides[0].label, "other": side.label, **asdict(result)}
            for side, result in zip(sides[1:], results, strict=True)
        ],
    }
    if style == "json":
        click.echo(orjson.dumps(found))
    else:
        for line in _STYLES[style](found, results):
            click.echo(line)
    order = list(_CODES)
    return _CODES[max((result.verdict for result in results), key=order.index)]


def spread(numbers: Sequence[float]) -> float | None:
    """Return the standard deviation of the logarithms, nearly that of n over their mean."""
    return float(np.log(numbers).std(ddof=1)) if len(numbers) > 1 else None


def format_metric(metric: str, value: float) -> str:
    """Return a metric's value with its unit."""
    field = metric.partition(".")[0]
    if field.endswith("bytes_per_s"):
        return format_rate(value)
    if field.endswith("_bytes"):
        return format_size(round(value))
    return format_seconds(value) if field.endswith("_s") else f"{value:.3g}"


def _text(found: Mapping[str, Any], results: Sequence[Comparison]) -> Iterator[str]:
    yield _headline(found)
    width = max(len(side["directory"]) for side in found["sides"])
    for side in found["sides"]:
        yield f"{side['label']}  {side['directory']:<{width}}  {_side(found, side)}"
    yield from _remarks(found)
    for index, result in enumerate(results, 1):
        yield _sentence(found, index, result)


def _markdown(found: Mapping[str, Any], results: Sequence[Comparison]) -> Iterator[str]:
    yield _headline(found)
    yield ""
    yield "| side | directory | runs |"
    yield "| --- | --- | --- |"
    for side in found["sides"]:
        yield f"| {side['label']} | {side['directory']} | {_side(found, side)} |"
    yield ""
    for index, result in enumerate(results, 1):
        yield f"- **{result.verdict}**: {_sentence(found, index, result)}"
    for remark in _remarks(found):
        yield f"- {remark}"


_STYLES: Final[Mapping[str, Callable[[Mapping[str, Any], Sequence[Comparison]], Iterator[str]]]] = {
    "text": _text,
    "markdown": _markdown,
}


def _headline(found: Mapping[str, Any]) -> str:
    direction = "more" if found["more_is_better"] else "less"
    return (
        f"{_in_words(found['metric'])}, {direction} is better;"
        f" a difference below {found['threshold'] * 100:.3g}% does not matter; alpha {ALPHA}"
    )


def _in_words(metric: str) -> str:
    field, _, part = metric.partition(".")
    words = _METRICS.get(field, field)
    return f"{words}, {part}" if part else words


def _ratio(value: float) -> str:
    """Return a ratio as all are shown: to a thousandth, or three digits if it is small."""
    return f"{value:.3f}" if value >= 0.1 else f"{value:.3g}"


def _side(found: Mapping[str, Any], side: Mapping[str, Any]) -> str:
    median_text = format_metric(found["metric"], side["median"])
    text = f"{format_count(side['runs'], 'run')}, median {median_text}"
    return text if side["spread"] is None else f"{text}, spread {side['spread']:.1%}"


def _remarks(found: Mapping[str, Any]) -> Iterator[str]:
    if not found["differing"]:
        yield "nothing differs in their settings"
    for name, values in found["differing"].items():
        yield f"{name} differs: {', '.join(map(str, values))}"
    if not found["in_turns"]:
        yield "note: one side was through before the other began; sbench ab takes turns"


def _sentence(found: Mapping[str, Any], index: int, result: Comparison) -> str:
    baseline, other = found["sides"][0], found["sides"][index]
    pair, evidence = f"{other['label']} against {baseline['label']}", result.evidence
    if evidence is None:
        return (
            f"{pair}: {result.verdict}, {MIN_RUNS} per side at least"
            f" (x{_ratio(result.ratio)}, which may be chance)"
        )
    within = evidence.interval
    text = (
        f"{pair}: {result.verdict}, x{_ratio(result.ratio)}"
        f" ({_ratio(within.low)} to {_ratio(within.high)} with {within.confidence:.1%} confidence),"
        f" p {evidence.mann_whitney_p:.2g} by ranks, {evidence.permutation_p:.2g} by means"
    )
    if result.verdict is not Verdict.UNDECIDED:
        return text
    if evidence.runs_needed > _TOO_MANY_RUNS:
        return f"{text}; too much spread for this threshold"
    return (
        f"{text}; if they are the same, a new comparison of about {evidence.runs_needed} runs per"
        " side shows it (more runs beside these are a second look: docs/compare.md)"
    )
