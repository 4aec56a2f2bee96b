"""An experiment's report: the question, the table, what holds, and what is wrong with it."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, TextIO

import orjson
from msgspec import structs, to_builtins

from serverless_bench.errors import UsageError
from serverless_bench.statistics.power import ENOUGH, MOST_ROUNDS, UPPER
from serverless_bench.statistics.verdict import ALPHA, Interval
from serverless_bench.studies.comparisons import Effect, Judged, Judgement, Power, Verdicts
from serverless_bench.studies.contradictions import contradictions
from serverless_bench.studies.definition import Experiment, Value, kind_of
from serverless_bench.studies.hypotheses import judge
from serverless_bench.studies.knee import WITHIN, Knee
from serverless_bench.studies.observations import CellRuns
from serverless_bench.studies.plan import Plan
from serverless_bench.studies.table import (
    DOUBTFUL,
    TableRow,
    Writer,
    grid,
    left_over,
    table_rows,
)

if TYPE_CHECKING:
    from serverless_bench.statistics.scaling import Usl

REPORT_SCHEMA: Final = 1
FORMATS: Final = ("text", "markdown", "json")
_PUBLISHED: Final = (
    *("name", "title", "question", "null_hypothesis", "seed", "published", "checks", "errata"),
)
"""What an experiment's file says and its report repeats."""
_PAPER_ONLY: Final = "published, at values that were not run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything that a report shows."""

    experiment: Experiment
    plan: Plan
    rows: tuple[TableRow, ...]
    verdicts: Verdicts

    @property
    def observed(self) -> list[CellRuns]:
        """Every cell with its runs."""
        return [row.observed for row in self.rows]

    @property
    def shaped_store(self) -> bool:
        """Whether a store was told how to behave, so that its cells try the method only."""
        return any(row.observed.cell.shaped_store for row in self.rows)

    @property
    def complete(self) -> bool:
        """Whether all runs that can be made here are there and count."""
        return all(one.cell.skipped or one.counted == one.planned for one in self.observed)

    def problems(self) -> list[str]:
        """Return what is wrong with each cell; cells that cannot be, included."""
        return [
            f"{one.cell.label}: {what}"
            for one in self.observed
            for what in ([one.cell.skipped] if one.cell.skipped else one.problems())
        ]


def make_report(plan: Plan, observed: Sequence[CellRuns]) -> Report:
    """Return the report of an experiment.

    Parameters
    ----------
    plan
        What was planned.
    observed
        What was found, see ``observe``.
    """
    experiment = plan.experiment
    return Report(
        experiment=experiment,
        plan=plan,
        rows=table_rows(experiment, observed),
        verdicts=judge(experiment, plan.scale, observed, one_factor=plan.one_factor),
    )


def show(report: Report, out: TextIO, style: str) -> None:
    """Write a report.

    Raises
    ------
    UsageError
        If the style is none of ``FORMATS``.
    """
    write = _begun(report.experiment, out, style, lambda: to_json(report))
    if write is not None:
        tell(report, write)


def tell(report: Report, write: Writer) -> None:
    """Write what a report says after its head."""
    experiment, scale = report.experiment, report.experiment.scales[report.plan.scale]
    repeats = report.plan.repeats
    rounds = "1 round that holds" if repeats == 1 else f"{repeats} rounds that hold"
    write.line(
        f"measured: --scale {report.plan.scale}{f' ({scale.about})' if scale.about else ''},"
        f" {rounds} each cell once{_run_lengths(report)}"
    )
    if report.shaped_store:
        shaped = sum(row.observed.cell.shaped_store for row in report.rows)
        write.line(
            f"shaped store: {shaped} of {len(report.rows)} cells have a store here that was told"
            " how late, slow or broken to be; what is told apart there says that the method works,"
            " and nothing of the stores that were published"
        )
    write.table(grid(experiment, report.rows))
    write.line(_interval_note(report))
    rest = left_over(experiment, report.rows)
    if rest.rows:
        write.title(_PAPER_ONLY)
        write.table(rest)
    if report.verdicts.effects:
        metric = report.verdicts.effects[0].metric
        write.title(f"what each change does to {metric} by itself, the largest first")
        for effect in report.verdicts.effects:
            write.line(_effect(effect), deep=1)
    if report.verdicts.judged:
        among = report.verdicts.among
        sharing = "1 comparison has" if among == 1 else f"{among} comparisons share"
        write.title("hypotheses")
        write.line(f"ratios within rounds; {sharing} {ALPHA:.0%} of false alarms (Holm)")
        for one in report.verdicts.judged:
            _hypothesis(write, one)
    _bullets(write, "remarks on cells", report.problems())
    _bullets(write, "notes on the published rows", _notes(report))
    _checks(write, experiment)
    _bullets(write, "errata of the publication", experiment.errata)


def show_reference(experiment: Experiment, out: TextIO, style: str) -> None:
    """Write what was published, and nothing else.

    Raises
    ------
    UsageError
        If the style is none of ``FORMATS``.
    """
    write = _begun(experiment, out, style, lambda: _reference_json(experiment))
    if write is None:
        return
    write.table(left_over(experiment, ()))
    claims = [
        f"{one.id}: {one.text}{f' Published: {one.published}' if one.published else ''}"
        for one in experiment.hypotheses
    ]
    _bullets(write, "claims", claims)
    _checks(write, experiment)
    _bullets(write, "errata of the publication", experiment.errata)


def to_json(report: Report) -> dict[str, Any]:
    """Return the JSON document of a report; docs/experiments/README.md has its fields."""
    return {
        "report_schema": REPORT_SCHEMA,
        **_reference_json(report.experiment),
        "scale": report.plan.scale,
        "repeats": report.plan.repeats,
        "among": report.verdicts.among,
        "complete": report.complete,
        "shaped_store": report.shaped_store,
        "cells": [_line_json(line) for line in report.rows],
        "hypotheses": [
            {
                **structs.asdict(one.hypothesis),
                "judgements": [asdict(found) for found in one.judgements],
                "knees": [{"group": dict(group), **asdict(knee)} for group, knee in one.knees],
            }
            for one in report.verdicts.judged
        ],
        "effects": [asdict(effect) for effect in report.verdicts.effects],
        "problems": report.problems(),
    }


def _begun(
    experiment: Experiment, out: TextIO, style: str, document: Callable[[], dict[str, Any]]
) -> Writer | None:
    """Write the head of a text, to go on with; or the whole document as JSON, and return None."""
    if style not in FORMATS:
        raise UsageError(f"there is no format {style!r}", hint=f"known: {', '.join(FORMATS)}")
    if style == "json":
        out.write(orjson.dumps(document()).decode() + "\n")
        return None
    write = Writer(out, markdown=style == "markdown")
    head(experiment, write)
    return write


def head(experiment: Experiment, write: Writer) -> None:
    """Write what an experiment asks, and where it was published."""
    seed = experiment.seed
    write.title(f"{experiment.name}: {experiment.title}", top=True)
    write.line(f"question: {experiment.question}")
    write.line(f"null hypothesis: {experiment.null_hypothesis}")
    where = ", ".join(filter(None, (seed.source, seed.date, seed.url)))
    write.line(f"published: {where}{f' ({seed.setup})' if seed.setup else ''}")


def _bullets(write: Writer, title: str, texts: Sequence[str]) -> None:
    if texts:
        write.title(title)
    for text in texts:
        write.line(text, deep=1)


def _checks(write: Writer, experiment: Experiment) -> None:
    """Write what the published rows must agree with, and below it what does not."""
    if experiment.checks:
        write.title(f"checks of the published rows; in the tables{DOUBTFUL}")
    found = contradictions(experiment)
    for check in experiment.checks:
        own = [one.text for one in found if one.check is check]
        count = f"{len(own)} found" if own else "nothing found"
        write.line(
            f"{kind_of(check)} {', '.join(check.metric_names)}: {check.text} {count}", deep=1
        )
        for text in own:
            write.line(text, deep=2)


def _notes(report: Report) -> list[str]:
    """Return the notes of the rows beside measured ones; the others stand in their table."""
    shown = [line.row for line in report.rows if line.row is not None]
    return [
        f"{row.label}: {row.note}"
        for row in report.experiment.published
        if row.note and row in shown
    ]


def _run_lengths(report: Report) -> str:
    took = [one.run_s for one in report.observed if one.counted]
    if not took:
        return ""
    ends = dict.fromkeys(f"{s:.1f}" for s in (min(took), max(took)))
    return f", runs of {' to '.join(ends)} s"


def _interval_note(report: Report) -> str:
    levels = {
        entry.measured.confidence
        for line in report.rows
        for metric, entry in line.entries.items()
        if entry.measured is not None and not report.experiment.metric(metric).relative
    }
    if not levels:
        return "no run counts"
    if report.plan.repeats == 1:
        return "one run of each cell: no intervals, and no verdicts"
    ends = sorted({min(levels), max(levels)})
    reached = " to ".join(f"{level:.0%}" for level in ends)
    return f"medians over the runs, in brackets their interval ({reached} by order statistics)"


def outcome_of(one: Judged) -> str:
    """Return what a study claims, and what the runs say of it, in a line."""
    counts = Counter(found.outcome for found in one.judgements)
    overall = ", ".join(f"{outcome} {n}x" for outcome, n in counts.items()) or "nothing to judge"
    return f"{one.hypothesis.id}: {one.hypothesis.text} {overall}"


def _hypothesis(write: Writer, one: Judged) -> None:
    claim = one.hypothesis
    published = f"; published: {claim.published}" if claim.published else ""
    write.line(f"{outcome_of(one)}{published}", deep=1)
    for found in one.judgements:
        write.line(_sentence(found), deep=2)
    for group, knee in one.knees if claim.test == "knee" else ():
        law = knee.law()
        if law is not None:
            write.line(f"{_where(group)}{_law(law)}", deep=2)
    about = f"knee of {claim.metric} by {claim.along}"
    for group, knee in one.knees if claim.test != "knee" else ():
        write.line(f"{_where(group)}{about}: {_knee(knee)}", deep=2)


def _sentence(found: Judgement) -> str:
    parts = [_where(found.group)]
    if found.segment is not None:
        parts.append(f"{found.segment[0]} to {found.segment[1]}: ")
    parts.append(str(found.outcome))
    if found.ratio is not None:
        parts.append(f", {_ratio(found.ratio, found.interval)}")
    if found.knee is not None:
        parts.append(f", knee at {_knee(found.knee)}")
    if found.p is not None:
        parts.append(", p < 0.0001" if found.p < 1e-4 else f", p {found.p:.2g}")
    if found.why:
        parts.append(f"; {found.why}")
    if found.power is not None:
        parts.append(f"; {_power(found.power)}")
    return "".join(parts)


def _effect(effect: Effect) -> str:
    change = f"{effect.axis} {effect.base} to {effect.value}"
    why = f"; {effect.why}" if effect.why else ""
    return f"{change}: {effect.verdict}, {_ratio(effect.ratio, effect.interval)}{why}"


def _ratio(ratio: float, within: Interval | None) -> str:
    if within is None:
        return f"x{ratio:.3g}"
    return f"x{ratio:.3g} ({within.low:.3g} to {within.high:.3g}, {within.confidence:.0%})"


def _power(power: Power) -> str:
    few, many = (f"more than {MOST_ROUNDS}" if n is None else str(n) for n in power.rounds)
    needed = few if few == many else f"{few} to {many}"
    low, high = (f"{100 * share:.0f}" for share in power.found)
    found = high if low == high else f"{low} to {high}"
    return (
        f"published x{power.published:.3g}; such an experiment finds a true x{power.ratio:g} in"
        f" {found}% of the cases, and with {needed} runs of each cell,"
        f" {power.run_s:.1f} s long as these, in {ENOUGH:.0%} (ranges from the likely spread to"
        f" its upper {UPPER:.0%} limit)"
    )


def _knee(knee: Knee) -> str:
    return f"{knee.at} ({knee.low} to {knee.high}), the first within {WITHIN:.0%} of the best"


def _law(law: "Usl") -> str:
    most = f"most at {law.knee:,.0f}" if isfinite(law.knee) else "no maximum"
    return (
        "universal scalability law through the medians: contention"
        f" {law.contention:.2g}, coherency {law.coherency:.2g}, {most}"
    )


def _where(group: Mapping[str, Value]) -> str:
    return " ".join(f"{name}={value}" for name, value in group.items()) + ": " * bool(group)


def _reference_json(experiment: Experiment) -> dict[str, Any]:
    document = to_builtins(experiment)
    found = contradictions(experiment)
    for check, shown in zip(experiment.checks, document["checks"], strict=True):
        shown["found"] = [
            {"rows": [dict(row.at) for row in one.rows], "metrics": one.metrics, "text": one.text}
            for one in found
            if one.check is check
        ]
    return {name: document[name] for name in _PUBLISHED}


def _line_json(line: TableRow) -> dict[str, Any]:
    one = line.observed
    return {
        "slug": one.cell.slug,
        "name": one.cell.name,
        "at": dict(one.cell.at),
        "settings": dict(one.cell.settings),
        "skipped": one.cell.skipped,
        "shaped_store": one.cell.shaped_store,
        "bounded_by": one.bounded_by,
        "planned": one.planned,
        "counted": one.counted,
        "metrics": {name: asdict(entry) for name, entry in line.entries.items()},
        "runs": [{"path": str(result.path), "problem": result.problem} for result in one.results],
    }
