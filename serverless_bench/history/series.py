"""What a history holds, as text, Markdown or JSON."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from statistics import median
from typing import Any, Final

import numpy as np

from serverless_bench.clock import utc_stamp
from serverless_bench.escaping import for_markdown
from serverless_bench.history.judging import MOST_SESSIONS, sessions
from serverless_bench.history.recorded import FIGURES, RecordedRun
from serverless_bench.reporters.comparison import format_metric
from serverless_bench.reporters.text_table import table

_BARS: Final = "▁▂▃▄▅▆▇█"
_DRAWN: Final = 24
"""Runs in a sparkline, the last ones."""
_FIGURE_HEADER: Final = ("figure", "median", "spread", "last", "trend", "")
"""Of ``_figure_cells``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The recorded runs of one key, by age."""

    key: str
    runs: tuple[RecordedRun, ...]

    def values(self, figure: str) -> list[float]:
        """Return a figure of all runs that have it."""
        return [run.figures[figure] for run in self.runs if figure in run.figures]

    def to_json(self) -> dict[str, Any]:
        """Return the document of ``show --format json``."""
        figures = [name for name in FIGURES if self.values(name)]
        return {
            "key": self.key,
            "runs": [_for_json(run) for run in self.runs],
            "sessions": len(sessions(self.runs)),
            "figures": {name: _of_figure(self.values(name)) for name in figures},
        }


def _for_json(run: RecordedRun) -> dict[str, Any]:
    return {
        "created": utc_stamp(run.created_ns, separators=True),
        "run_id": run.run_id,
        "label": run.label,
        "restart": run.restart,
        "versions": dict(run.versions),
        "figures": dict(run.figures),
    }


def _of_figure(values: Sequence[float]) -> dict[str, float | None]:
    logs = np.log(values)
    return {
        "median": median(values),
        "spread": float(logs.std(ddof=1)) if len(values) > 1 else None,
        "last": values[-1],
        "trend": _trend(values),
    }


def _trend(values: Sequence[float]) -> float | None:
    """Return the last over the first, as the median slope of all pairs has it (Theil and Sen)."""
    if len(values) < 3:
        return None
    logs = np.log(values[-MOST_SESSIONS:])
    first, second = np.triu_indices(len(logs), 1)
    slope = float(np.median((logs[second] - logs[first]) / (second - first)))
    return float(np.exp(slope * (len(logs) - 1)))


def sparkline(values: Sequence[float]) -> str:
    """Return a bar per value, the lowest and the highest as far apart as can be."""
    shown = [log(value) for value in values[-_DRAWN:]]
    low, high = min(shown), max(shown)
    step = (high - low) / (len(_BARS) - 1) or 1.0
    return "".join(_BARS[round((value - low) / step)] for value in shown)


def overview(series: Sequence[Series], style: str) -> list[str]:
    """Return a line for each key."""
    header = ("key", "runs", "sessions", "from", "to", *_FIGURE_HEADER)
    return [*table(header, [_overview_row(one) for one in series], style)]


def _overview_row(one: Series) -> tuple[str, ...]:
    figure = next(name for name in FIGURES if one.values(name))
    days = [utc_stamp(run.created_ns, separators=True)[:10] for run in one.runs]
    return (
        one.key,
        str(len(one.runs)),
        str(len(sessions(one.runs))),
        days[0],
        days[-1],
        *_figure_cells(figure, one.values(figure)),
    )


def details(one: Series, style: str) -> list[str]:
    """Return the figures of one key, and its runs."""
    last = one.runs[-1]
    about = {**last.job, **last.machine}
    named = ", ".join(f"{name} {value}" for name, value in about.items() if value is not None)
    figures = [_figure_cells(name, found) for name in FIGURES if (found := one.values(name))]
    runs = [
        (
            utc_stamp(run.created_ns, separators=True),
            run.run_id,
            run.label or "-",
            ", ".join(f"{name} {version[:12]}" for name, version in run.versions.items()),
            "restart" if run.restart else "",
        )
        for run in one.runs
    ]
    heading = f"{one.key}: {named}"
    return [
        for_markdown(heading) if style == "markdown" else heading,
        "",
        *table(_FIGURE_HEADER, figures, style),
        "",
        *table(("begun", "run", "label", "versions", ""), runs, style),
    ]


def _figure_cells(figure: str, values: Sequence[float]) -> tuple[str, ...]:
    found = _of_figure(values)
    spread, trend = found["spread"], found["trend"]
    return (
        figure,
        format_metric(figure, median(values)),
        "-" if spread is None else f"{spread:.1%}",
        format_metric(figure, values[-1]),
        "-" if trend is None else f"{trend - 1:+.1%}",
        sparkline(values),
    )
