"""Format checks and histories as text, Markdown or JSON."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

import numpy as np

from serverless_bench.base.clock import utc_stamp
from serverless_bench.base.escaping import for_markdown
from serverless_bench.base.units import format_count
from serverless_bench.features.compare.ratio import ENOUGH
from serverless_bench.features.compare.report import format_metric
from serverless_bench.features.compare.samples import more_is_better
from serverless_bench.features.compare.verdict import ALPHA, Verdict
from serverless_bench.features.history.judging import (
    MOST_SESSIONS,
    Finding,
    overall,
    ratio_of,
    sessions,
)
from serverless_bench.features.history.recorded import FIGURES, RecordedRun
from serverless_bench.metrics.display import Printed
from serverless_bench.report.text_table import table

_NOT_IN_TURNS: Final = (
    "recorded runs were made at other times: changes of the store, the network or the machine"
    " look like changes of the code; if the old version still runs, use --old and --new"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryCheck(Printed):
    """Result of a check of new runs; ``print`` shows it like ``sbench history check``.

    Examples
    --------
    >>> found = sbench.history_check(again, "history")
    >>> [one["figure"] for one in found.to_json()["figures"]]
    ['throughput_bytes_per_s', 'ops_per_s', 'latency_s.p99']
    """

    key: str
    interleaved: bool
    """Whether old and new ran in turns, instead of a comparison with recorded runs."""
    old: str
    """Description of the runs that the new runs are compared with."""
    new: str
    tolerance: float
    loss: float
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()
    """Descriptions of settings and versions that differ, and of excluded runs."""

    def __str__(self) -> str:
        return "\n".join(self.lines("text"))

    @property
    def verdict(self) -> Verdict:
        """Overall verdict on all metrics."""
        return overall(self.findings)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON document of ``--format json``; see "History" in the documentation."""
        return {
            "verdict": self.verdict.value,
            "key": self.key,
            "interleaved": self.interleaved,
            "old": self.old,
            "new": self.new,
            "tolerance": self.tolerance,
            "loss": self.loss,
            "alpha": ALPHA,
            "notes": list(self.notes),
            "figures": [_figure(finding, self.interleaved) for finding in self.findings],
        }

    def lines(self, style: str, width: int = sys.maxsize) -> list[str]:
        """Return the lines of the check as Markdown, or as text with tables of this width."""
        header = ("figure", "old", "new", "new / old", "95% interval", "p", "verdict", "power")
        rows = [self._cells(finding) for finding in self.findings]
        remarks = [*self._remarks()]
        if style == "markdown":
            return [
                f"### {for_markdown(f'{self.verdict}: {self.key}')}",
                "",
                for_markdown(f"{self.new} against {self.old}"),
                "",
                *table(header, rows, style),
                *(f"- {for_markdown(remark)}" for remark in remarks),
                "",
            ]
        return [
            f"{self.key}: {self.new} against {self.old}",
            *table(header, rows, style, width=width),
            *remarks,
            self.verdict,
        ]

    def _cells(self, finding: Finding) -> tuple[str, ...]:
        evidence, bounds, ratio = finding.evidence, _interval(finding), ratio_of(finding)
        return (
            evidence.figure,
            "-" if evidence.old is None else format_metric(evidence.figure, evidence.old),
            format_metric(evidence.figure, evidence.new),
            "-" if ratio is None else f"x{ratio:.3f}",
            "-" if bounds is None else f"{bounds[0]:.3f} to {bounds[1]:.3f}",
            "-" if evidence.gain is None else f"{finding.p:.2g}",
            finding.verdict,
            "-" if evidence.gain is None else f"{finding.power:.0%}",
        )

    def _remarks(self) -> Iterator[str]:
        yield (
            f"tolerance {100 * self.tolerance:.3g}%; power: chance of detecting a"
            f" {100 * self.loss:.3g}% loss; p: Holm-adjusted over all metrics"
        )
        advice = ((finding.evidence.figure, self._advice(finding)) for finding in self.findings)
        yield from (f"{figure}: {text}" for figure, text in advice if text)
        yield from self.notes
        if not self.interleaved:
            yield _NOT_IN_TURNS

    def _advice(self, finding: Finding) -> str:
        """Return a recommendation if the power of this check is insufficient."""
        gain, unit = finding.evidence.gain, "block" if self.interleaved else "recorded session"
        if gain is None:
            missing = format_count(finding.evidence.missing, f"more {unit}")
            span = "" if self.interleaved else "; runs within an hour are a session"
            return f"a verdict needs {missing}{span}"
        if finding.power >= ENOUGH:
            return ""
        if finding.needed is None:
            number = (
                "no practical number of blocks"
                if self.interleaved
                else (f"no number of recorded sessions up to {MOST_SESSIONS}")
            )
            return f"{number} detects that loss in {ENOUGH:.0%} of checks: the spread is too large"
        return (
            f"{format_count(finding.needed, unit)} would detect that loss in {ENOUGH:.0%} of checks"
        )


def _interval(finding: Finding) -> tuple[float, float] | None:
    """Return the interval of new to old in the orientation of the metric."""
    inside = finding.interval
    if inside is None:
        return None
    if more_is_better(finding.evidence.figure):
        return inside.low, inside.high
    return 1 / inside.high, 1 / inside.low


def _figure(finding: Finding, interleaved: bool) -> dict[str, Any]:  # noqa: FBT001 - as the field
    evidence = finding.evidence
    return {
        "figure": evidence.figure,
        "more_is_better": more_is_better(evidence.figure),
        "verdict": finding.verdict.value,
        "old": evidence.old,
        "new": evidence.new,
        "ratio": ratio_of(finding),
        "interval": _interval(finding),
        "p": finding.p,
        "power": finding.power,
        "needed": finding.needed,
        "spread": evidence.recorded.between
        if evidence.recorded
        else evidence.gain and evidence.gain.sd,
        "correlation": evidence.recorded.correlation
        if evidence.recorded
        else None
        if interleaved
        else 0.0,
    }


_FIGURE_HEADER: Final = ("figure", "median", "spread", "last", "trend")
"""Header for ``_figure_cells``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The recorded runs of a key, by age."""

    key: str
    runs: tuple[RecordedRun, ...]

    def values(self, figure: str) -> list[float]:
        """Return the values of a metric of all runs that have it."""
        return [run.figures[figure] for run in self.runs if figure in run.figures]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON document of ``show --format json``."""
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
    """Return the ratio of last to first from the median slope of all pairs (Theil and Sen)."""
    if len(values) < 3:
        return None
    logs = np.log(values[-MOST_SESSIONS:])
    first, second = np.triu_indices(len(logs), 1)
    slope = float(np.median((logs[second] - logs[first]) / (second - first)))
    return float(np.exp(slope * (len(logs) - 1)))


def overview(series: Sequence[Series], style: str, width: int = sys.maxsize) -> list[str]:
    """Return a line for each key."""
    header = ("key", "runs", "sessions", "from", "to", *_FIGURE_HEADER)
    return [*table(header, [_overview_row(item) for item in series], style, width=width)]


def _overview_row(item: Series) -> tuple[str, ...]:
    figure = next(name for name in FIGURES if item.values(name))
    days = [utc_stamp(run.created_ns, separators=True)[:10] for run in item.runs]
    return (
        item.key,
        str(len(item.runs)),
        str(len(sessions(item.runs))),
        days[0],
        days[-1],
        *_figure_cells(figure, item.values(figure)),
    )


def details(item: Series, style: str, width: int = sys.maxsize) -> list[str]:
    """Return the metrics of a key, and the runs."""
    last = item.runs[-1]
    about = {**last.job, **last.machine}
    description = ", ".join(f"{name} {value}" for name, value in about.items() if value is not None)
    figures = [_figure_cells(name, values) for name in FIGURES if (values := item.values(name))]
    runs = [
        (
            utc_stamp(run.created_ns, separators=True),
            run.run_id,
            run.label or "-",
            ", ".join(f"{name} {version[:12]}" for name, version in run.versions.items()),
            "restart" if run.restart else "",
        )
        for run in item.runs
    ]
    heading = f"{item.key}: {description}"
    return [
        for_markdown(heading) if style == "markdown" else heading,
        "",
        *table(_FIGURE_HEADER, figures, style, width=width),
        "",
        *table(("begun", "run", "label", "versions", ""), runs, style, width=width),
    ]


def _figure_cells(figure: str, values: Sequence[float]) -> tuple[str, ...]:
    statistics = _of_figure(values)
    spread, trend = statistics["spread"], statistics["trend"]
    return (
        figure,
        format_metric(figure, median(values)),
        "-" if spread is None else f"{spread:.1%}",
        format_metric(figure, values[-1]),
        "-" if trend is None else f"{trend - 1:+.1%}",
    )
