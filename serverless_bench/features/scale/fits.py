"""Output of fitted scaling laws."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import click
import numpy as np

from serverless_bench.base.units import format_count, format_rate
from serverless_bench.cli.flags.options import PAGE
from serverless_bench.cli.output.terminal import say, say_json
from serverless_bench.features.answers.answer import Curve, Drawing, Mark
from serverless_bench.features.scale.measure import METRICS, ScaleFit
from serverless_bench.features.scale.scaling import Fit, Scaling
from serverless_bench.report.text_table import table

_NAMES: Final = {"capped": "linear up to a cap", "usl": "universal scalability law"}
_TITLES: Final = {
    "throughput_bytes_per_s": "Whole throughput, MB/s",
    "steady_bytes_per_s": "Steady throughput, MB/s",
}
"""Titles of the charts, by metric."""
_TOO_FAR: Final = 0.5
"""Relative error of predictions above which a law is withheld."""
_POINTS: Final = 60
"""Number of points in the curve of a law."""
_FORMS: Final[Mapping[str, Callable[[float], str]]] = {
    "per_function": format_rate,
    "cap": format_rate,
    "contention": "{:.3g}".format,
    "coherency": "{:.3g}".format,
    "knee": "{:.3g}".format,
}
"""Format functions for the parameters of the laws, in the order of the report."""
_NEXT: Final = ";\n  "


def show(fitted: ScaleFit, *, predict: int | None, style: str) -> None:
    """Print the fits.

    Parameters
    ----------
    fitted
        Fits by metric.
    predict
        Number of functions to predict the throughput for.
    style
        text, json, markdown or html.

    Raises
    ------
    UsageError
        If the number to predict is beyond the range of the fits.
    """
    data = fitted.to_json(predict)
    if style == "json":
        say_json(data)
        return
    if style == PAGE:
        from serverless_bench.features.page.runs import scaling_page

        laws = {
            metric: [" ".join(law.split()) for law in _laws(document)]
            for metric, document in data.items()
        }
        click.echo(scaling_page(data, laws, drawings(fitted)), nl=False)
        return
    say(*lines(fitted, predict, style))


def lines(fitted: ScaleFit, predict: int | None, style: str) -> Iterator[str]:
    """Yield the lines of the fits as text or Markdown."""
    data, simulated = fitted.to_json(predict), fitted.simulated
    mark = f", {format_count(simulated, 'run')} SIMULATED" if simulated else ""
    for metric, document in data.items():
        yield f"{metric}{mark}"
        for line in (*_table(document["rows"], style), *_laws(document)):
            yield from line.split("\n")
    yield from (f"no fit of {metric}: some runs do not have it" for metric in METRICS[len(data) :])


def headline(fitted: ScaleFit) -> str:
    """Return the knee of the better law in a few words."""
    document = next(iter(fitted.to_json().values()))
    knee = document[document["better"] or "usl"]["knee"]
    return f"knee {_value(knee, _FORMS['knee'], 'not met')}"


def drawings(fitted: ScaleFit) -> tuple[Drawing, ...]:
    """Return the throughput by the number of functions, with the curves of the laws."""
    return tuple(
        Drawing(
            title=_TITLES[metric],
            says="Dots are the medians of the runs with so many functions; lines are the fitted"
            " laws.",
            at="functions",
            value="MB/s",
            marks=tuple(
                Mark(at=row.number, value=row.median / 1e6, group="median of the runs")
                for row in scaling.rows
            ),
            curves=tuple(
                Curve(group=law, points=tuple((at, rate / 1e6) for at, rate in points))
                for law, points in _curves(scaling).items()
            ),
        )
        for metric, scaling in fitted.fits.items()
    )


def _curves(scaling: Scaling) -> dict[str, list[tuple[float, float]]]:
    """Return the curve of each law between the smallest and the largest number of functions."""
    numbers = [row.number for row in scaling.rows]
    at = np.geomspace(min(numbers), max(numbers), _POINTS)
    laws: dict[str, Fit[Any]] = {"usl": scaling.usl, "capped": scaling.capped}
    return {
        _NAMES[name]: list(zip(at.tolist(), fitted.law.at(at).tolist(), strict=True))
        for name, fitted in laws.items()
        if (fitted.off or 0) <= _TOO_FAR
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


def _laws(fitted: Mapping[str, Any]) -> Iterator[str]:
    for key, title in _NAMES.items():
        law = fitted[key]
        if (law["off"] or 0) > _TOO_FAR:
            yield f"{title}: withheld, off by {law['off']:.0%} at a number left out"
            continue
        words = [
            f"{name.replace('_', ' ')} {_value(law[name], form, 'not met')}"
            for name, form in _FORMS.items()
            if name in law
        ]
        if law["off"] is not None:
            words.append(f"off by {law['off']:.1%} at a number left out")
        if "predicted" in law:
            rate = _value(law["predicted"], format_rate, "-")
            words.append(f"{format_count(law['predicted']['number'], 'function')} get {rate}")
        better = ", the better fit" if fitted["better"] == key else ""
        # A Markdown renderer joins these lines into a paragraph.
        yield f"{title}{better}: {_NEXT.join(words)}"
    yield (
        "Knee: the number of functions beyond which more of them add no throughput."
        f" In brackets: {fitted['confidence']:.0%} intervals, from resampled runs of each number."
        f" The fit makes no prediction beyond {fitted['reach']} functions."
    )


def _value(value: Mapping[str, float | None], form: Callable[[float], str], absent: str) -> str:
    at, low, high = (value.get(name) for name in ("value", "low", "high"))
    text = absent if at is None else form(at)
    if "low" not in value or low is None:
        return text
    if high is None:
        # The interval has no upper end, and may have no lower one.
        return f"{text} (above {form(low)})" if low else text
    return f"{text} ({form(low)} to {form(high)})"
