"""A check, and what a history holds, as text, Markdown or JSON."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log
from statistics import median
from typing import Any, Final

import numpy as np

from serverless_bench.analysis.display import Printed
from serverless_bench.analysis.samples import more_is_better
from serverless_bench.clock import utc_stamp
from serverless_bench.escaping import for_markdown
from serverless_bench.history.judging import (
    MIN_SESSIONS,
    MOST_SESSIONS,
    Finding,
    overall,
    ratio_of,
    sessions,
)
from serverless_bench.history.recorded import FIGURES, RecordedRun
from serverless_bench.reporters.comparison import format_metric
from serverless_bench.reporters.text_table import table
from serverless_bench.statistics.power import ENOUGH
from serverless_bench.statistics.ratio import MIN_BLOCKS
from serverless_bench.statistics.verdict import ALPHA, Verdict
from serverless_bench.units import format_count

_NOT_IN_TURNS: Final = (
    "recorded runs were made at other times: a change of the store, the network or the machine"
    " looks like one of the code; where the old version still runs, --old and --new take turns"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryCheck(Printed):
    """What a check of new runs found; ``print`` shows it as ``sbench history check`` does.

    Examples
    --------
    >>> found = sbench.history_check(again, "history")
    >>> [one["figure"] for one in found.to_json()["figures"]]
    ['whole_bytes_per_s', 't99_s']
    """

    key: str
    in_turns: bool
    """Whether old and new were run in turns, and not held against what was recorded."""
    old: str
    """What the new runs are held against, in words."""
    new: str
    tolerance: float
    loss: float
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()
    """Settings and versions that differ, and what was left out, in words."""

    def __str__(self) -> str:
        return "\n".join(self.lines("text"))

    @property
    def verdict(self) -> Verdict:
        """Of all figures."""
        return overall(self.findings)

    def to_json(self) -> dict[str, Any]:
        """Return the document of ``--format json``; docs/history.md lists its fields."""
        return {
            "verdict": self.verdict.value,
            "key": self.key,
            "in_turns": self.in_turns,
            "old": self.old,
            "new": self.new,
            "tolerance": self.tolerance,
            "loss": self.loss,
            "alpha": ALPHA,
            "notes": list(self.notes),
            "figures": [_figure(finding, self.in_turns) for finding in self.findings],
        }

    def lines(self, style: str) -> list[str]:
        """Return the lines of the check as text or Markdown."""
        header = ("figure", "old", "new", "new / old", "95% interval", "p", "verdict", "finds")
        rows = [self._cells(finding) for finding in self.findings]
        remarks = [*self._remarks()]
        if style == "markdown":
            return [
                f"### {for_markdown(f'{self.verdict}: {self.key}')}",
                "",
                for_markdown(f"{self.new} against {self.old}"),
                "",
                *table(header, rows, style),
                "",
                *(f"- {for_markdown(remark)}" for remark in remarks),
                "",
            ]
        return [
            f"{self.key}: {self.new} against {self.old}",
            *table(header, rows, style),
            *remarks,
            self.verdict,
        ]

    def _cells(self, finding: Finding) -> tuple[str, ...]:
        one, inside, ratio = finding.evidence, _interval(finding), ratio_of(finding)
        return (
            one.figure,
            "-" if one.old is None else format_metric(one.figure, one.old),
            format_metric(one.figure, one.new),
            "-" if ratio is None else f"x{ratio:.3f}",
            "-" if inside is None else f"{inside[0]:.3f} to {inside[1]:.3f}",
            "-" if one.gain is None else f"{finding.p:.2g}",
            finding.verdict,
            "-" if one.gain is None else f"{finding.power:.0%}",
        )

    def _remarks(self) -> Iterator[str]:
        yield (
            f"a loss below {100 * self.tolerance:.3g}% does not matter; finds: the share of such"
            f" checks that finds one of {100 * self.loss:.3g}%; p: of all figures taken together"
        )
        for finding in self.findings:
            if text := self._advice(finding):
                yield f"{finding.evidence.figure}: {text}"
        yield from self.notes
        if not self.in_turns:
            yield _NOT_IN_TURNS

    def _advice(self, finding: Finding) -> str:
        """Return what would tell where this check does not, or may not."""
        gain, what = finding.evidence.gain, "block" if self.in_turns else "recorded session"
        if gain is None:
            least = MIN_BLOCKS if self.in_turns else MIN_SESSIONS
            return f"{format_count(least, what)} at least; with fewer there is no verdict"
        if finding.power >= ENOUGH:
            return ""
        if finding.needed is None:
            most = (
                "no number of blocks that anybody runs"
                if self.in_turns
                else (f"no number of recorded sessions up to {MOST_SESSIONS}")
            )
            return f"{most} finds that loss in {ENOUGH:.0%} of checks: its spread is too large"
        return (
            f"{format_count(finding.needed, what)} would find that loss in {ENOUGH:.0%} of checks"
        )


def _interval(finding: Finding) -> tuple[float, float] | None:
    """Return the interval of new over old in the figure's own direction."""
    inside = finding.interval
    if inside is None:
        return None
    if more_is_better(finding.evidence.figure):
        return inside.low, inside.high
    return 1 / inside.high, 1 / inside.low


def _figure(finding: Finding, in_turns: bool) -> dict[str, Any]:  # noqa: FBT001 - as the field
    one = finding.evidence
    return {
        "figure": one.figure,
        "more_is_better": more_is_better(one.figure),
        "verdict": finding.verdict.value,
        "old": one.old,
        "new": one.new,
        "ratio": ratio_of(finding),
        "interval": _interval(finding),
        "p": finding.p,
        "power": finding.power,
        "needed": finding.needed,
        "spread": one.recorded.between if one.recorded else one.gain and one.gain.sd,
        "correlation": one.recorded.correlation if one.recorded else None if in_turns else 0.0,
    }


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
