"""Fitted laws, shown."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from math import inf, isinf
from operator import attrgetter
from typing import Any, Final

import click
import numpy as np
import orjson

from serverless_bench.analysis.samples import MeasuredRun
from serverless_bench.cli.output.pages import PAGE
from serverless_bench.cli.output.terminal import say, say_json
from serverless_bench.reporters.text_table import table
from serverless_bench.statistics.scaling import CONFIDENCE, Fit, Scaling, fit_scaling
from serverless_bench.units import format_count, format_rate

_METRICS: Final = ("whole_bytes_per_s", "steady_bytes_per_s")
_NAMES: Final = {"capped": "min(linear, cap)", "usl": "universal scalability law"}
_POINTS: Final = 60
"""Of a drawn law."""
_FORMS: Final[Mapping[str, Callable[[float], str]]] = {
    "per_function": format_rate,
    "cap": format_rate,
    "contention": "{:.3g}".format,
    "coherency": "{:.3g}".format,
    "knee": "{:.3g}".format,
}
"""Parameters of the laws, in the order of a report, and how to show them."""
_NEXT: Final = ";\n  "


def fit(runs: Sequence[MeasuredRun], *, seed: int) -> dict[str, Scaling]:
    """Return the fits of the whole throughput, and of the steady one if all runs have it.

    Raises
    ------
    UsageError
        If the runs have too few different numbers of functions.
    """
    found = {}
    for metric in _METRICS:
        by_number: dict[int, list[float]] = {}
        for run in runs:
            value = run.summary.to_json()[metric]
            if value:
                by_number.setdefault(run.summary.planned_concurrency, []).append(value)
        if metric == _METRICS[0] or sum(map(len, by_number.values())) == len(runs):
            found[metric] = fit_scaling(by_number, seed=seed)
    return found


def show(
    found: Mapping[str, Scaling], *, predict: int | None, style: str, simulated: int = 0
) -> None:
    """Print the fits.

    Parameters
    ----------
    found
        By metric.
    predict
        A number of functions to say the throughput of.
    style
        text, json or markdown.
    simulated
        How many of the runs never happened.

    Raises
    ------
    UsageError
        If a number to predict is out of reach.
    """
    if predict is not None:
        for scaling in found.values():
            scaling.check_reach(predict)
    data = {
        metric: {**_to_json(scaling, predict), "simulated": simulated}
        for metric, scaling in found.items()
    }
    if style == "json":
        say_json(orjson.dumps(data))
        return
    if style == PAGE:
        from serverless_bench.reporters.page.runs import scaling_page

        laws = {
            metric: [" ".join(law.split()) for law in _laws(fitted)]
            for metric, fitted in data.items()
        }
        curves = {metric: _curves(scaling) for metric, scaling in found.items()}
        click.echo(scaling_page(data, laws, curves), nl=False)
        return
    mark = f", {format_count(simulated, 'run')} SIMULATED" if simulated else ""
    for metric, fitted in data.items():
        say(f"{metric}{mark}")
        for line in (*_table(fitted["rows"], style), *_laws(fitted)):
            say(*line.split("\n"))
    for metric in _METRICS[len(found) :]:
        say(f"no fit of {metric}: not every run has it")


def _to_json(scaling: Scaling, predict: int | None) -> dict[str, Any]:
    better = scaling.better
    return {
        "rows": [asdict(row) for row in scaling.rows],
        "usl": _law_to_json(scaling.usl, scaling.reach, predict),
        "capped": _law_to_json(scaling.capped, scaling.reach, predict),
        "better": None if better is None else "usl" if better is scaling.usl else "capped",
        "reach": scaling.reach,
        "confidence": CONFIDENCE,
    }


def _law_to_json(one: Fit[Any], reach: int, predict: int | None) -> dict[str, Any]:
    """Return a law; null stands for what has not been met within reach."""

    def value(read: Callable[[Any], float], limit: float = inf) -> dict[str, float | None]:
        interval = one.interval(read)
        found = {"value": read(one.law)}
        if interval is not None:
            found |= {"low": interval[0], "high": interval[1]}
        return {n: None if v > limit or isinf(v) else v for n, v in found.items()}

    parameters = {
        name: value(attrgetter(name), reach if name == "knee" else inf)
        for name in _FORMS
        if hasattr(one.law, name)
    }
    found: dict[str, Any] = {**parameters, "off": one.off}
    if predict is not None:
        number = np.array([float(predict)])
        found["predicted"] = {"number": predict, **value(lambda law: float(law.at(number)[0]))}
    return found


def _curves(scaling: Scaling) -> dict[str, list[tuple[float, float]]]:
    """Return what each law says between the fewest functions and the most that were run."""
    numbers = [row.number for row in scaling.rows]
    at = np.geomspace(min(numbers), max(numbers), _POINTS)
    laws: dict[str, Fit[Any]] = {"usl": scaling.usl, "capped": scaling.capped}
    return {
        _NAMES[name]: list(zip(at.tolist(), fitted.law.at(at).tolist(), strict=True))
        for name, fitted in laws.items()
    }


def _table(rows: Sequence[Mapping[str, Any]], style: str) -> Iterator[str]:
    cells = [
        (
            str(row["number"]),
            str(row["runs"]),
            format_rate(row["median"]),
            f"{row['efficiency']:.0%}",
        )
        for row in rows
    ]
    yield from table(("functions", "runs", "median", "efficiency"), cells, style, align="rrrr")
    if style == "markdown":
        yield ""


def _laws(fitted: Mapping[str, Any]) -> Iterator[str]:
    for key, title in _NAMES.items():
        law = fitted[key]
        words = [
            f"{name.replace('_', ' ')} {_value(law[name], form, 'not met')}"
            for name, form in _FORMS.items()
            if name in law
        ]
        if law["off"] is not None:
            words.append(f"off by {law['off']:.1%} at a number left out")
        if "predicted" in law:
            shown = _value(law["predicted"], format_rate, "-")
            words.append(f"{format_count(law['predicted']['number'], 'function')} get {shown}")
        better = ", the better fit" if fitted["better"] == key else ""
        # Markdown makes one line of it again.
        yield f"{title}{better}: {_NEXT.join(words)}"
    yield (
        f"In brackets: {fitted['confidence']:.0%} intervals, from the runs of each number drawn"
        f" anew. Nothing is said beyond {fitted['reach']} functions."
    )


def _value(value: Mapping[str, float | None], form: Callable[[float], str], absent: str) -> str:
    at, low, high = (value.get(name) for name in ("value", "low", "high"))
    text = absent if at is None else form(at)
    if "low" not in value or low is None:
        return text
    return f"{text} ({form(low)} to {'not met' if high is None else form(high)})"
