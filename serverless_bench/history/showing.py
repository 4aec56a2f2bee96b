"""A check, as text, Markdown or JSON."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from serverless_bench.analysis.display import Printed
from serverless_bench.analysis.samples import more_is_better
from serverless_bench.escaping import for_markdown
from serverless_bench.history.judging import (
    MIN_SESSIONS,
    MOST_SESSIONS,
    Finding,
    overall,
    ratio_of,
)
from serverless_bench.reporters.comparison import format_metric
from serverless_bench.reporters.text_table import table
from serverless_bench.statistics.paired import MIN_ROUNDS
from serverless_bench.statistics.power import ENOUGH
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
            least = MIN_ROUNDS if self.in_turns else MIN_SESSIONS
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
        "spread": one.spread if not in_turns or one.gain is None else one.gain.sd,
        "correlation": None if in_turns else one.correlation,
    }
