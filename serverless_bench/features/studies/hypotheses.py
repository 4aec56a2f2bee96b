"""Verdicts on hypotheses, from one comparison per segment and one knee per line. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import log
from typing import Final

from msgspec import structs

from serverless_bench.features.compare.ratio import paired_ratio
from serverless_bench.features.compare.verdict import ALPHA, MIN_BLOCKS, Verdict
from serverless_bench.features.studies.cells import CELL, baseline
from serverless_bench.features.studies.comparisons import (
    TO_PROPORTION,
    CellComparison,
    CellGroup,
    Decision,
    Effect,
    Family,
    Judged,
    Judgement,
    Verdicts,
    family_of,
    power_for,
)
from serverless_bench.features.studies.definition import Hypothesis, Metric, Study, Value
from serverless_bench.features.studies.knee import KneeTest, knee_test, p_across, p_expected
from serverless_bench.features.studies.observations import CellRuns

_Change = tuple[str, Value, Value, CellComparison]
"""An axis, the baseline, the changed value, and the comparison of both."""
_UNKNOWN: Final = Decision.NOT_IDENTIFIABLE
_CONFIRMING: Final[Mapping[str, frozenset[Verdict]]] = {
    "faster": frozenset({Verdict.FASTER}),
    "slower": frozenset({Verdict.SLOWER}),
    "same": frozenset({Verdict.SAME}),
    "no-gain": frozenset({Verdict.SAME, Verdict.SLOWER}),
    "linear": frozenset({Verdict.SAME, Verdict.FASTER}),
    "proportional": frozenset({Verdict.SAME}),
}
"""Verdicts that confirm a claim; other verdicts reject it."""
LAWS: Final = {"flat": "same", "in proportion": "proportional"}
"""Laws that a line may follow, with the test of each value against the first."""
STORE_BOUND: Final = "the store is the bottleneck of all cells, which vary less than the store"
"""Reason for an undecided comparison that additional runs would not decide."""
_UNDECIDED: Final = frozenset({Verdict.UNDECIDED, Verdict.NOT_ENOUGH_RUNS})


@dataclass(frozen=True, slots=True)
class CellLine:
    """Cells that differ along one axis only."""

    group: Mapping[str, Value]
    """Values of the other axes."""
    cells: tuple[tuple[Value, CellRuns], ...]

    @property
    def runs(self) -> CellGroup:
        """All cells of the line."""
        return CellGroup([runs for _, runs in self.cells])


@dataclass(frozen=True, slots=True)
class _Claim:
    """A claim about a line. First all claims are listed, then each is judged by all of them."""

    draft: Judgement
    """The judgement without a decision; final if there is nothing to decide."""

    @property
    def comparisons(self) -> Sequence[CellComparison]:
        """Comparisons on which it rests."""
        return ()

    @property
    def knees(self) -> Mapping[str, tuple[float, float]]:
        """For a claim about a knee, by a key: the p against it, and the p for it."""
        return {}

    def judged(self, family: Family) -> Judgement:
        """Return the judgement, given all comparisons of the study."""
        del family
        return self.draft


def judge(
    study: Study,
    scale: str,
    observed: Sequence[CellRuns],
    *,
    one_factor: bool = False,
) -> Verdicts:
    """Return the verdicts on all hypotheses.

    Parameters
    ----------
    study, scale
        Study and scale.
    observed
        All cells with runs.
    one_factor
        Whether to include the effect of each single change.
    """
    listed, knees = {}, {}
    for hypothesis in study.hypotheses:
        tests = [
            (line, knee_test_of(study, hypothesis, line)) for line in _lines(hypothesis, observed)
        ]
        claims = (
            _knee_claims(hypothesis, tests)
            if hypothesis.test == "knee"
            else _law_claims(study, hypothesis, [line for line, _ in tests])
            if hypothesis.test == "law"
            else _segments(study, scale, hypothesis, [line for line, _ in tests])
        )
        listed[hypothesis.id] = list(claims)
        knees[hypothesis.id] = tuple((line.group, test.knee()) for line, test in tests if test)
    changes = list(_changes(study, scale, observed)) if one_factor else []
    everything = [claim for some in listed.values() for claim in some]
    family = family_of(
        [
            *(comparison for claim in everything for comparison in claim.comparisons),
            *(comparison for *_, comparison in changes if not comparison.cells.crowded),
        ],
        {key: p for claim in everything for key, p in claim.knees.items()},
    )
    effects = [_effect(change, family) for change in changes]
    return Verdicts(
        judged=tuple(
            Judged(
                hypothesis=hypothesis,
                judgements=tuple(_marked(claim.judged(family)) for claim in listed[hypothesis.id]),
                knees=knees[hypothesis.id],
            )
            for hypothesis in study.hypotheses
        ),
        effects=tuple(sorted(effects, key=lambda effect: -abs(log(effect.ratio)))),
        among=len(family.difference),
    )


def _changes(study: Study, scale: str, observed: Sequence[CellRuns]) -> Iterator[_Change]:
    """Yield each change of a single axis.

    The metric is that of the first hypothesis, or the first metric. Without runs of the baseline,
    there are no changes.
    """
    first = study.hypotheses[0].metric if study.hypotheses else ""
    metric = study.metric(first) if first else study.metrics[0]
    base = {axis.name: baseline(axis, scale) for axis in study.axes}
    cells = [runs for runs in observed if not runs.cell.control and not runs.cell.name]
    start = next((runs for runs in cells if runs.cell.matches(base)), None)
    if start is None:
        return
    for runs in cells:
        changed = [name for name, value in runs.cell.at.items() if str(value) != str(base[name])]
        ratio = paired_ratio(start.by_round(metric), runs.by_round(metric))
        if len(changed) == 1 and ratio is not None:
            (axis,) = changed
            comparison = CellComparison(metric=metric, first=start, second=runs, paired=ratio)
            yield axis, base[axis], runs.cell.at[axis], comparison


def _effect(change: _Change, family: Family) -> Effect:
    axis, base, value, comparison = change
    return Effect(
        metric=comparison.metric.name,
        axis=axis,
        base=base,
        value=value,
        verdict=Verdict.UNDECIDED if comparison.cells.crowded else family.verdict(comparison)[0],
        ratio=comparison.paired.ratio,
        interval=comparison.paired.interval(),
        why=comparison.cells.crowded,
    )


def _marked(found: Judgement) -> Judgement:
    """Return a verdict on a store with a configured behaviour as a verdict on the method."""
    if not found.shaped_store or found.outcome is _UNKNOWN:
        return found
    alike = found.verdict is Verdict.SAME
    return replace(found, outcome=Decision.ALIKE if alike else Decision.TOLD_APART)


def _lines(hypothesis: Hypothesis, observed: Sequence[CellRuns]) -> list[CellLine]:
    """Return the cells grouped by everything except the axis of the hypothesis."""
    along, groups = hypothesis.along, dict[tuple[tuple[str, str], ...], list[CellRuns]]()
    for runs in observed:
        if runs.cell.value(along) in {None, ""} or not runs.cell.matches(hypothesis.where):
            continue
        if runs.cell.control and along != CELL:
            continue
        rest = _rest(runs, along)
        groups.setdefault(tuple((n, str(v)) for n, v in rest.items()), []).append(runs)
    return [
        CellLine(
            _rest(members[0], along),
            tuple((runs.cell.value(along) or "", runs) for runs in members),
        )
        for members in groups.values()
        if len(members) > 1
    ]


def _rest(runs: CellRuns, along: str) -> dict[str, Value]:
    """Return a cell's values of the other axes; named cells are compared by name only."""
    return {n: v for n, v in runs.cell.at.items() if along not in {n, CELL}}


def _segment_values(
    study: Study, scale: str, hypothesis: Hypothesis, line: CellLine
) -> Iterator[tuple[Value, Value]]:
    values = [value for value, _ in line.cells]
    segments = hypothesis.segments
    if segments == "neighbours":
        yield from pairwise(values)
    elif segments == "first":
        yield from ((values[0], value) for value in values[1:])
    else:
        value_here: dict[str, Value] = {}
        if hypothesis.along != CELL:
            axis = study.axis(hypothesis.along)
            if axis.paired:
                value_here = dict(
                    zip(map(str, axis.values["paper"]), axis.values[scale], strict=True)
                )
        yield from ((value_here.get(str(a), a), value_here.get(str(b), b)) for a, b in segments)


def _segments(
    study: Study, scale: str, hypothesis: Hypothesis, lines: Sequence[CellLine]
) -> Iterator[_Claim]:
    """Yield each pair of values, compared if both have runs."""
    for line in lines:
        for values in _segment_values(study, scale, hypothesis, line):
            draft = Judgement(group=line.group, segment=values, outcome=_UNKNOWN)
            metric = study.metric(hypothesis.metric)
            comparison = _compared(metric, hypothesis, line, values)
            if isinstance(comparison, str):
                yield _Claim(replace(draft, why=comparison))
            else:
                draft = replace(draft, shaped_store=comparison.cells.shaped_store)
                yield _OfSegment(draft, study, hypothesis, comparison)


def _compared(
    metric: Metric, hypothesis: Hypothesis, line: CellLine, values: tuple[Value, Value]
) -> CellComparison | str:
    """Return a comparison of two cells, or the reason why there is none."""
    by_value = {str(value): runs for value, runs in line.cells}
    cells = []
    for value in values:
        runs = by_value.get(str(value))
        if runs is None:
            return f"{value} is not run at this scale"
        if not any(v > 0 for v in runs.by_round(metric).values()):
            return runs.why_empty(metric.of)
        cells.append(runs)
    first, second = cells
    ratio, published_times = paired_ratio(first.by_round(metric), second.by_round(metric)), 1.0
    if ratio is None:
        return "no round has a run of both"
    if hypothesis.test in TO_PROPORTION:
        times = log(float(values[1]) / float(values[0]))
        ratio = ratio.shifted(-times if metric.better == "more" else times)
        low, high = (float(runs.cell.paper_at[hypothesis.along]) for runs in cells)
        published_times = high / low
    comparison = CellComparison(
        metric=metric,
        first=first,
        second=second,
        paired=ratio,
        test=hypothesis.test,
        threshold=hypothesis.threshold,
        published_times=published_times,
    )
    return comparison.cells.crowded or comparison


def _knee_claims(
    hypothesis: Hypothesis, tests: Sequence[tuple[CellLine, KneeTest | None]]
) -> Iterator[_Claim]:
    """Yield the claims about knees: about each line, and across lines."""
    known_knees = [(line, test, test.knee()) for line, test in tests if test is not None]
    for line, test in tests:
        if test is None:
            why = line.runs.crowded or f"a value has fewer than {MIN_BLOCKS} runs, or is no number"
            yield _Claim(Judgement(group=line.group, segment=None, outcome=_UNKNOWN, why=why))
    if hypothesis.expect is not None:
        for line, test, knee in known_knees:
            draft = Judgement(
                group=line.group,
                segment=None,
                outcome=_UNKNOWN,
                shaped_store=line.runs.shaped_store,
                knee=knee,
                why=f"between {knee.low} and {knee.high}",
            )
            alone = p_expected(test, hypothesis.expect)
            yield _OfKnee(draft, f"{hypothesis.id} {line.group}", alone)
    if hypothesis.across:
        knee_texts = (
            f"{line.group.get(hypothesis.across, '')}: {knee.at} ({knee.low} to {knee.high})"
            for line, _, knee in known_knees
        )
        draft = Judgement(
            group={},
            segment=None,
            outcome=_UNKNOWN,
            shaped_store=any(line.runs.shaped_store for line, *_ in known_knees),
            why=f"knees by {hypothesis.across}: {', '.join(knee_texts) or 'none'}",
        )
        alone = p_across([test for _, test, _ in known_knees])
        yield _OfKnee(draft, f"{hypothesis.id} across", alone)


def _law_claims(
    study: Study, hypothesis: Hypothesis, lines: Sequence[CellLine]
) -> Iterator[_Claim]:
    """Yield each line: all values against the first, by either law."""
    metric = study.metric(hypothesis.metric)
    for line in lines:
        draft = Judgement(
            group=line.group,
            segment=None,
            outcome=_UNKNOWN,
            shaped_store=line.runs.shaped_store,
        )
        first, *others = (value for value, _ in line.cells)
        laws = {
            law: [
                _compared(metric, structs.replace(hypothesis, test=test), line, (first, value))
                for value in others
            ]
            for law, test in LAWS.items()
        }
        why = [
            reason for compared in laws.values() for reason in compared if isinstance(reason, str)
        ]
        if why:
            yield _Claim(replace(draft, why="; ".join(dict.fromkeys(why))))
        else:
            comparisons = {
                law: [
                    comparison for comparison in compared if isinstance(comparison, CellComparison)
                ]
                for law, compared in laws.items()
            }
            yield _OfLaw(draft, hypothesis, comparisons)


@dataclass(frozen=True, slots=True)
class _OfSegment(_Claim):
    """A claim about two values of an axis."""

    study: Study
    hypothesis: Hypothesis
    comparison: CellComparison

    @property
    def comparisons(self) -> Sequence[CellComparison]:
        return (self.comparison,)

    def judged(self, family: Family) -> Judgement:
        comparison = self.comparison
        verdict, p, alone = family.verdict(comparison)
        judgement = replace(
            self.draft,
            verdict=verdict,
            ratio=comparison.paired.ratio,
            interval=comparison.paired.interval(),
            # So few rounds have no p.
            p=None if verdict is Verdict.NOT_ENOUGH_RUNS else p,
            alone=alone,
            among=len(family.difference),
        )
        if verdict not in _UNDECIDED:
            confirmed = verdict in _CONFIRMING[self.hypothesis.test]
            outcome = Decision.CONFIRMED if confirmed else Decision.REJECTED
            return replace(judgement, outcome=outcome)
        why = STORE_BOUND if comparison.cells.store_bound else "too much spread"
        if alone <= ALPHA:
            why = f"p alone would be {alone:.2g}, but there are {judgement.among} comparisons"
        if verdict is Verdict.NOT_ENOUGH_RUNS:
            why = f"{verdict}: {MIN_BLOCKS} rounds with both cells at least"
        return replace(judgement, why=why, power=power_for(self.study, comparison, judgement.among))


@dataclass(frozen=True, slots=True)
class _OfLaw(_Claim):
    """A claim about the law that a line follows."""

    hypothesis: Hypothesis
    laws: Mapping[str, Sequence[CellComparison]]
    """All values against the first, by law."""

    @property
    def comparisons(self) -> Sequence[CellComparison]:
        return [comparison for compared in self.laws.values() for comparison in compared]

    def judged(self, family: Family) -> Judgement:
        verdicts = {
            law: {family.verdict(comparison)[0] for comparison in all_of}
            for law, all_of in self.laws.items()
        }
        holding = [law for law, of_law in verdicts.items() if of_law == {Verdict.SAME}]
        refuted = [law for law, of_law in verdicts.items() if of_law - _UNDECIDED - {Verdict.SAME}]
        law = holding[0] if len(holding) == 1 else ""
        if not law and len(refuted) == len(verdicts):
            law = "neither"
        if not law:
            why = "too much spread, or too few values, to distinguish the laws"
            bound = all(pair.cells.store_bound for pair in self.comparisons)
            return replace(self.draft, why=STORE_BOUND if bound else why)
        outcome = Decision.CONFIRMED if law == self.hypothesis.expect else Decision.REJECTED
        among = len(family.difference)
        return replace(self.draft, outcome=outcome, among=among, why=f"the law: {law}")


@dataclass(frozen=True, slots=True)
class _OfKnee(_Claim):
    """A claim about the knee of a line, or about the knees of all lines."""

    key: str
    """Unique in the study."""
    alone: tuple[float, float]
    """The p against it and for it, without the other comparisons."""

    @property
    def knees(self) -> Mapping[str, tuple[float, float]]:
        return {self.key: self.alone}

    def judged(self, family: Family) -> Judgement:
        judgement = replace(self.draft, among=len(family.difference))
        against, for_it = family.difference[self.key], family.within[self.key]
        for outcome, p, by_itself in (
            (Decision.REJECTED, against, self.alone[0]),
            (Decision.CONFIRMED, for_it, self.alone[1]),
        ):
            if p <= ALPHA:
                # Across lines, the reason lists the knees in any case.
                why = "" if self.draft.knee is not None else self.draft.why
                return replace(judgement, outcome=outcome, p=p, alone=by_itself, why=why)
        return replace(judgement, p=min(against, for_it), alone=min(self.alone))


def knee_test_of(study: Study, hypothesis: Hypothesis, line: CellLine) -> KneeTest | None:
    """Return the test for a knee of a line, or None.

    It is None if a value is not a number or has too few runs, or if the machine is too small.
    """
    metric = study.metric(hypothesis.metric)
    if line.runs.crowded or any(isinstance(value, str | bool) for value, _ in line.cells):
        return None
    runs = sorted(
        (
            (value, runs_of_cell.by_round(metric))
            for value, runs_of_cell in line.cells
            if not runs_of_cell.cell.skipped
        ),
        key=lambda pair: float(pair[0]),
    )
    if any(len(numbers) < MIN_BLOCKS for _, numbers in runs):
        return None
    return knee_test(runs, more_is_better=metric.better == "more")
