"""Report of a study: the question, the table, the verdicts, and remarks."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any, Final, TextIO

import orjson
from msgspec import structs, to_builtins

from serverless_bench.base.errors import UsageError
from serverless_bench.base.units import format_count
from serverless_bench.features.compare.ratio import ENOUGH, MOST_ROUNDS, UPPER
from serverless_bench.features.compare.verdict import ALPHA, Interval
from serverless_bench.features.scale.scaling import Usl
from serverless_bench.features.studies.comparisons import (
    Decision,
    Effect,
    Judged,
    Judgement,
    Power,
    Verdicts,
)
from serverless_bench.features.studies.contradictions import contradictions
from serverless_bench.features.studies.definition import Study, Value, kind_of
from serverless_bench.features.studies.hypotheses import judge
from serverless_bench.features.studies.knee import WITHIN, Knee
from serverless_bench.features.studies.observations import CellRuns
from serverless_bench.features.studies.plan import Plan
from serverless_bench.features.studies.table import (
    DOUBTFUL,
    TableRow,
    Writer,
    grid,
    left_over,
    table_rows,
)

REPORT_SCHEMA: Final = 1
FORMATS: Final = ("text", "markdown", "json")
_PUBLISHED: Final = (
    *("name", "title", "question", "null_hypothesis", "seed", "published", "checks", "errata"),
)
"""Fields of a study's file that a report repeats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Content of a report."""

    study: Study
    plan: Plan
    rows: tuple[TableRow, ...]
    verdicts: Verdicts

    @property
    def observed(self) -> list[CellRuns]:
        """All cells with runs."""
        return [row.observed for row in self.rows]

    @property
    def shaped_store(self) -> bool:
        """Whether a store has a configured behaviour, so that cells test only the method."""
        return any(row.observed.cell.shaped_store for row in self.rows)

    @property
    def complete(self) -> bool:
        """Whether all runs that are possible here exist and count."""
        return all(runs.cell.skipped or runs.counted == runs.planned for runs in self.observed)

    def problems(self) -> list[str]:
        """Return the problems of the cells, including impossible cells."""
        return [
            f"{runs.cell.label}: {problem}"
            for runs in self.observed
            for problem in ([runs.cell.skipped] if runs.cell.skipped else runs.problems())
        ]


def make_report(plan: Plan, observed: Sequence[CellRuns]) -> Report:
    """Return the report of a study.

    Parameters
    ----------
    plan
        Plan of the study.
    observed
        Results of the runs, see ``observe``.
    """
    study = plan.study
    return Report(
        study=study,
        plan=plan,
        rows=table_rows(study, observed),
        verdicts=judge(study, plan.scale, observed, one_factor=plan.one_factor),
    )


def show(report: Report, out: TextIO, style: str) -> None:
    """Write a report.

    Raises
    ------
    UsageError
        If the style is not in ``FORMATS``.
    """
    write = _begun(report.study, out, style, lambda: to_json(report))
    if write is not None:
        tell(report, write)
        # The last lines are what a terminal shows.
        for judged in report.verdicts.judged if style == "text" else ():
            write.line(f"verdict: {outcome_of(judged)}{_deciding(judged)}")


def _deciding(judged: Judged) -> str:
    """Return how many repeats would decide a claim that is not decided; empty if not known."""
    powers = [one.power for one in judged.judgements if one.outcome is Decision.NOT_IDENTIFIABLE]
    needed = [power.rounds[1] if power else None for power in powers]
    known = [number for number in needed if number is not None]
    which = "" if len(known) == len(needed) else f" {len(known)} of them"
    return f"; --repeats {max(known)} would decide{which}" if known else ""


def tell(report: Report, write: Writer) -> None:
    """Write the part of a report that follows the head."""
    study, scale = report.study, report.study.scales[report.plan.scale]
    repeats = report.plan.repeats
    rounds = "1 round that holds" if repeats == 1 else f"{repeats} rounds that hold"
    write.line(
        f"measured: --scale {report.plan.scale}{f' ({scale.about})' if scale.about else ''},"
        f" {rounds} each cell once{_run_lengths(report)}"
    )
    if report.shaped_store:
        shaped = sum(row.observed.cell.shaped_store for row in report.rows)
        write.line(
            f"shaped store: {shaped} of {len(report.rows)} cells use a store with a"
            " configured behaviour; differences between them show that the method works, and say"
            " nothing about the published stores"
        )
    write.table(grid(study, report.rows))
    write.line(_interval_note(report))
    rest = left_over(study, report.rows)
    if rest.rows:
        write.title("published, at values that were not run")
        write.table(rest)
    if report.verdicts.effects:
        metric = report.verdicts.effects[0].metric
        write.title(f"effect of each change alone on {metric}, largest first")
        for effect in report.verdicts.effects:
            write.line(_effect(effect), deep=1)
    if report.verdicts.judged:
        among = report.verdicts.among
        write.title("hypotheses")
        write.line(
            f"ratios within rounds; family-wise error rate {ALPHA:.0%}"
            f" (Holm, {format_count(among, 'comparison')})"
        )
        for judged in report.verdicts.judged:
            _hypothesis(write, judged)
    _bullets(write, "remarks on cells", report.problems())
    _bullets(write, "notes on the published rows", _notes(report))
    _checks(write, study)
    _bullets(write, "errata of the publication", study.errata)


def show_reference(study: Study, out: TextIO, style: str) -> None:
    """Write only the published part of a study.

    Raises
    ------
    UsageError
        If the style is not in ``FORMATS``.
    """
    write = _begun(study, out, style, lambda: _reference_json(study))
    if write is None:
        return
    write.table(left_over(study, ()))
    claims = [
        f"{claim.id}: {claim.text}{f' Published: {claim.published}' if claim.published else ''}"
        for claim in study.hypotheses
    ]
    _bullets(write, "claims", claims)
    _checks(write, study)
    _bullets(write, "errata of the publication", study.errata)


def to_json(report: Report) -> dict[str, Any]:
    """Return the JSON document of a report; README.md explains the fields."""
    return {
        "report_schema": REPORT_SCHEMA,
        **_reference_json(report.study),
        "scale": report.plan.scale,
        "repeats": report.plan.repeats,
        "among": report.verdicts.among,
        "complete": report.complete,
        "shaped_store": report.shaped_store,
        "cells": [_line_json(line) for line in report.rows],
        "hypotheses": [
            {
                **structs.asdict(judged.hypothesis),
                "judgements": [asdict(judgement) for judgement in judged.judgements],
                "knees": [{"group": dict(group), **asdict(knee)} for group, knee in judged.knees],
            }
            for judged in report.verdicts.judged
        ],
        "effects": [asdict(effect) for effect in report.verdicts.effects],
        "problems": report.problems(),
    }


def _begun(
    study: Study, out: TextIO, style: str, document: Callable[[], dict[str, Any]]
) -> Writer | None:
    """Write the head of a text and return the writer; write a JSON document and return None."""
    if style not in FORMATS:
        raise UsageError(f"there is no format {style!r}", hint=f"known: {', '.join(FORMATS)}")
    if style == "json":
        out.write(orjson.dumps(document()).decode() + "\n")
        return None
    write = Writer(out, markdown=style == "markdown")
    head(study, write)
    return write


def head(study: Study, write: Writer) -> None:
    """Write the question and the publication of a study."""
    seed = study.seed
    write.title(f"{study.name}: {study.title}", top=True)
    write.line(f"question: {study.question}")
    write.line(f"null hypothesis: {study.null_hypothesis}")
    origin = ", ".join(filter(None, (seed.source, seed.date, seed.url)))
    write.line(f"published: {origin}{f' ({seed.setup})' if seed.setup else ''}")


def _bullets(write: Writer, title: str, texts: Sequence[str]) -> None:
    if texts:
        write.title(title)
    for text in texts:
        write.line(text, deep=1)


def _checks(write: Writer, study: Study) -> None:
    """Write the checks of the published rows, each followed by its contradictions."""
    if study.checks:
        write.title(f"checks of the published rows; in the tables{DOUBTFUL}")
    findings = contradictions(study)
    for check in study.checks:
        texts = [contradiction.text for contradiction in findings if contradiction.check is check]
        count = f"{len(texts)} found" if texts else "nothing found"
        write.line(
            f"{kind_of(check)} {', '.join(check.metric_names)}: {check.text} {count}", deep=1
        )
        for text in texts:
            write.line(text, deep=2)


def _notes(report: Report) -> list[str]:
    """Return the notes of rows with measurements; the rest are in the table of other rows."""
    rows_in_table = [line.row for line in report.rows if line.row is not None]
    return [
        f"{row.label}: {row.note}"
        for row in report.study.published
        if row.note and row in rows_in_table
    ]


def _run_lengths(report: Report) -> str:
    took = [runs.run_s for runs in report.observed if runs.counted]
    if not took:
        return ""
    ends = dict.fromkeys(f"{s:.1f}" for s in (min(took), max(took)))
    return f", runs of {' to '.join(ends)} s"


def _interval_note(report: Report) -> str:
    levels = {
        entry.measured.confidence
        for line in report.rows
        for metric, entry in line.entries.items()
        if entry.measured is not None and not report.study.metric(metric).relative
    }
    if not levels:
        return "no run counts"
    if report.plan.repeats == 1:
        return "one run of each cell: no intervals, and no verdicts"
    ends = sorted({min(levels), max(levels)})
    reached = " to ".join(f"{level:.0%}" for level in ends)
    return f"medians over the runs, in brackets their interval ({reached} by order statistics)"


def outcome_of(judged: Judged) -> str:
    """Return a claim of a study, and the outcome of the runs, in a line."""
    counts = Counter(judgement.outcome for judgement in judged.judgements)
    overall = ", ".join(f"{outcome} {n}x" for outcome, n in counts.items()) or "nothing to judge"
    return f"{judged.hypothesis.id}: {judged.hypothesis.text} {overall}"


def _hypothesis(write: Writer, judged: Judged) -> None:
    claim = judged.hypothesis
    published = f"; published: {claim.published}" if claim.published else ""
    write.line(f"{outcome_of(judged)}{published}", deep=1)
    for judgement in judged.judgements:
        write.line(_sentence(judgement), deep=2)
    for group, knee in judged.knees if claim.test == "knee" else ():
        law = knee.law()
        if law is not None:
            write.line(f"{_where(group)}{_law(law)}", deep=2)
    knee_title = f"knee of {claim.metric} by {claim.along}"
    for group, knee in judged.knees if claim.test != "knee" else ():
        write.line(f"{_where(group)}{knee_title}: {_knee(knee)}", deep=2)


def _sentence(judgement: Judgement) -> str:
    segment, ratio, knee = judgement.segment, judgement.ratio, judgement.knee
    p, power = judgement.p, judgement.power
    return "".join(
        (
            _where(judgement.group),
            "" if segment is None else f"{segment[0]} to {segment[1]}: ",
            str(judgement.outcome),
            "" if ratio is None else f", {_ratio(ratio, judgement.interval)}",
            "" if knee is None else f", knee at {_knee(knee)}",
            "" if p is None else ", p < 0.0001" if p < 1e-4 else f", p {p:.2g}",
            f"; {judgement.why}" if judgement.why else "",
            "" if power is None else f"; {_power(power)}",
        )
    )


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
    percentages = high if low == high else f"{low} to {high}"
    return (
        f"published x{power.published:.3g}; such a study finds a true x{power.ratio:g} in"
        f" {percentages}% of the cases, and with {needed} runs of each cell,"
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


def _reference_json(study: Study) -> dict[str, Any]:
    document = to_builtins(study)
    findings = contradictions(study)
    for check, check_json in zip(study.checks, document["checks"], strict=True):
        check_json["found"] = [
            {
                "rows": [dict(row.at) for row in contradiction.rows],
                "metrics": contradiction.metrics,
                "text": contradiction.text,
            }
            for contradiction in findings
            if contradiction.check is check
        ]
    return {name: document[name] for name in _PUBLISHED}


def _line_json(line: TableRow) -> dict[str, Any]:
    runs = line.observed
    return {
        "slug": runs.cell.slug,
        "name": runs.cell.name,
        "at": dict(runs.cell.at),
        "settings": dict(runs.cell.settings),
        "skipped": runs.cell.skipped,
        "shaped_store": runs.cell.shaped_store,
        "bottlenecks": runs.bottlenecks,
        "planned": runs.planned,
        "counted": runs.counted,
        "metrics": {name: asdict(entry) for name, entry in line.entries.items()},
        "runs": [{"path": str(result.path), "problem": result.problem} for result in runs.results],
    }
