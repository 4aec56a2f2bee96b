"""What holds of the hypotheses: one comparison per segment, one knee per line. Pure."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from math import log
from typing import Final

from msgspec import structs

from serverless_bench.statistics.ratio import MIN_BLOCKS, paired_ratio
from serverless_bench.statistics.verdict import ALPHA, Verdict
from serverless_bench.studies.cells import CELL, baseline
from serverless_bench.studies.comparisons import (
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
from serverless_bench.studies.definition import Experiment, Hypothesis, Metric, Value
from serverless_bench.studies.knee import KneeTest, knee_test, p_across, p_expected
from serverless_bench.studies.observations import CellRuns

_Change = tuple[str, Value, Value, CellComparison]
"""An axis, its baseline, its other value, and what that did."""
_UNKNOWN: Final = Decision.NOT_IDENTIFIABLE
_CONFIRMING: Final[Mapping[str, frozenset[Verdict]]] = {
    "faster": frozenset({Verdict.FASTER}),
    "slower": frozenset({Verdict.SLOWER}),
    "same": frozenset({Verdict.SAME}),
    "no-gain": frozenset({Verdict.SAME, Verdict.SLOWER}),
    "linear": frozenset({Verdict.SAME, Verdict.FASTER}),
    "proportional": frozenset({Verdict.SAME}),
}
"""Verdicts that confirm a claim; any other one rejects it."""
LAWS: Final = {"flat": "same", "in proportion": "proportional"}
"""What a line may follow, and the test of each of its values against the first."""
STORE_BOUND: Final = "bounded by the store in all cells, which varies more than they differ"
"""Reason for an undecided comparison that no more runs would decide."""
_UNDECIDED: Final = frozenset({Verdict.UNDECIDED, Verdict.NOT_ENOUGH_RUNS})


@dataclass(frozen=True, slots=True)
class CellLine:
    """Cells that differ along one axis only."""

    group: Mapping[str, Value]
    """Where the other axes are."""
    cells: tuple[tuple[Value, CellRuns], ...]

    @property
    def runs(self) -> CellGroup:
        """All of its cells."""
        return CellGroup([runs for _, runs in self.cells])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    """A judgement for which all others of the experiment have to be known, too."""

    judged: Callable[[Family], Judgement]
    comparisons: Sequence[CellComparison] = ()
    knees: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Of claims about knees, by a key: the p against it, and for it."""


def judge(
    experiment: Experiment,
    scale: str,
    observed: Sequence[CellRuns],
    *,
    one_factor: bool = False,
) -> Verdicts:
    """Return what holds of every hypothesis.

    Parameters
    ----------
    experiment, scale
        What was run, and how large.
    observed
        Every cell with its runs.
    one_factor
        Whether to say what each change did by itself, too.
    """
    drafts, knees = {}, {}
    for one in experiment.hypotheses:
        tests = [(line, knee_test_of(experiment, one, line)) for line in _lines(one, observed)]
        found = (
            _knee_claims(one, tests)
            if one.test == "knee"
            else _law_claims(experiment, one, [line for line, _ in tests])
            if one.test == "law"
            else _segments(experiment, scale, one, [line for line, _ in tests])
        )
        drafts[one.id] = list(found)
        knees[one.id] = tuple((line.group, test.knee()) for line, test in tests if test)
    changes = list(_changes(experiment, scale, observed)) if one_factor else []
    everything = [draft for some in drafts.values() for draft in some]
    family = family_of(
        [
            *(one for draft in everything for one in draft.comparisons),
            *(comparison for *_, comparison in changes if not comparison.cells.crowded),
        ],
        {key: p for draft in everything for key, p in draft.knees.items()},
    )
    effects = [_effect(change, family) for change in changes]
    return Verdicts(
        judged=tuple(
            Judged(
                hypothesis=one,
                judgements=tuple(_marked(draft.judged(family)) for draft in drafts[one.id]),
                knees=knees[one.id],
            )
            for one in experiment.hypotheses
        ),
        effects=tuple(sorted(effects, key=lambda effect: -abs(log(effect.ratio)))),
        among=len(family.difference),
    )


def _changes(experiment: Experiment, scale: str, observed: Sequence[CellRuns]) -> Iterator[_Change]:
    """Yield each change of one axis.

    Of the first hypothesis' metric, or the first one; nothing if the baseline has no runs.
    """
    first = experiment.hypotheses[0].metric if experiment.hypotheses else ""
    metric = experiment.metric(first) if first else experiment.metrics[0]
    base = {axis.name: baseline(axis, scale) for axis in experiment.axes}
    cells = [one for one in observed if not one.cell.control and not one.cell.name]
    start = next((one for one in cells if one.cell.matches(base)), None)
    if start is None:
        return
    for one in cells:
        changed = [name for name, value in one.cell.at.items() if str(value) != str(base[name])]
        found = paired_ratio(start.by_round(metric), one.by_round(metric))
        if len(changed) == 1 and found is not None:
            (axis,) = changed
            comparison = CellComparison(metric=metric, first=start, second=one, paired=found)
            yield axis, base[axis], one.cell.at[axis], comparison


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
    """Return a verdict on what a store was told to show as one on the method."""
    if not found.shaped_store or found.outcome is _UNKNOWN:
        return found
    alike = found.verdict is Verdict.SAME
    return replace(found, outcome=Decision.ALIKE if alike else Decision.TOLD_APART)


def _lines(hypothesis: Hypothesis, observed: Sequence[CellRuns]) -> list[CellLine]:
    """Return the cells by everything but the axis of the hypothesis."""
    along, groups = hypothesis.along, dict[tuple[tuple[str, str], ...], list[CellRuns]]()
    for one in observed:
        if one.cell.value(along) in {None, ""} or not one.cell.matches(hypothesis.where):
            continue
        if one.cell.control and along != CELL:
            continue
        rest = _rest(one, along)
        groups.setdefault(tuple((n, str(v)) for n, v in rest.items()), []).append(one)
    return [
        CellLine(
            _rest(members[0], along), tuple((one.cell.value(along) or "", one) for one in members)
        )
        for members in groups.values()
        if len(members) > 1
    ]


def _rest(one: CellRuns, along: str) -> dict[str, Value]:
    """Return where a cell is on the other axes; what has a name is compared by it alone."""
    return {n: v for n, v in one.cell.at.items() if along not in {n, CELL}}


def _segment_values(
    experiment: Experiment, scale: str, hypothesis: Hypothesis, line: CellLine
) -> Iterator[tuple[Value, Value]]:
    values = [value for value, _ in line.cells]
    segments = hypothesis.segments
    if segments == "neighbours":
        yield from pairwise(values)
    elif segments == "first":
        yield from ((values[0], value) for value in values[1:])
    else:
        back: dict[str, Value] = {}
        if hypothesis.along != CELL:
            axis = experiment.axis(hypothesis.along)
            if axis.paired:
                back = dict(zip(map(str, axis.values["paper"]), axis.values[scale], strict=True))
        yield from ((back.get(str(a), a), back.get(str(b), b)) for a, b in segments)


def _segments(
    experiment: Experiment, scale: str, hypothesis: Hypothesis, lines: Sequence[CellLine]
) -> Iterator[_Draft]:
    """Yield each pair of values, compared where both have runs."""
    for line in lines:
        for values in _segment_values(experiment, scale, hypothesis, line):
            draft = Judgement(group=line.group, segment=values, outcome=_UNKNOWN)
            metric = experiment.metric(hypothesis.metric)
            found = _compared(metric, hypothesis, line, values)
            if isinstance(found, str):
                yield _settled(replace(draft, why=found))
            else:
                draft = replace(draft, shaped_store=found.cells.shaped_store)
                judged = partial(_of_segment, experiment, hypothesis, draft, found)
                yield _Draft(judged=judged, comparisons=(found,))


def _compared(
    metric: Metric, hypothesis: Hypothesis, line: CellLine, values: tuple[Value, Value]
) -> CellComparison | str:
    """Return two cells compared, or why they cannot be."""
    by_value = {str(value): one for value, one in line.cells}
    cells = []
    for value in values:
        one = by_value.get(str(value))
        if one is None:
            return f"{value} is not run at this scale"
        if not any(v > 0 for v in one.by_round(metric).values()):
            return one.why_empty(metric.of)
        cells.append(one)
    first, second = cells
    found, published_times = paired_ratio(first.by_round(metric), second.by_round(metric)), 1.0
    if found is None:
        return "no round has a run of both"
    if hypothesis.test in TO_PROPORTION:
        times = log(float(values[1]) / float(values[0]))
        found = found.shifted(-times if metric.better == "more" else times)
        low, high = (float(one.cell.paper_at[hypothesis.along]) for one in cells)
        published_times = high / low
    comparison = CellComparison(
        metric=metric,
        first=first,
        second=second,
        paired=found,
        test=hypothesis.test,
        threshold=hypothesis.threshold,
        published_times=published_times,
    )
    return comparison.cells.crowded or comparison


def _knee_claims(
    hypothesis: Hypothesis, tests: Sequence[tuple[CellLine, KneeTest | None]]
) -> Iterator[_Draft]:
    """Yield what is claimed about knees: of each line, and across them."""
    known = [(line, test, test.knee()) for line, test in tests if test is not None]
    for line, test in tests:
        if test is None:
            why = line.runs.crowded or f"a value has fewer than {MIN_BLOCKS} runs, or is no number"
            yield _settled(Judgement(group=line.group, segment=None, outcome=_UNKNOWN, why=why))
    if hypothesis.expect is not None:
        for line, test, knee in known:
            draft = Judgement(
                group=line.group,
                segment=None,
                outcome=_UNKNOWN,
                shaped_store=line.runs.shaped_store,
                knee=knee,
                why=f"between {knee.low} and {knee.high}",
            )
            alone = p_expected(test, hypothesis.expect)
            yield _of_claim(f"{hypothesis.id} {line.group}", draft, alone)
    if hypothesis.across:
        each = (
            f"{line.group.get(hypothesis.across, '')}: {knee.at} ({knee.low} to {knee.high})"
            for line, _, knee in known
        )
        draft = Judgement(
            group={},
            segment=None,
            outcome=_UNKNOWN,
            shaped_store=any(line.runs.shaped_store for line, *_ in known),
            why=f"knees by {hypothesis.across}: {', '.join(each) or 'none'}",
        )
        alone = p_across([test for _, test, _ in known])
        yield _of_claim(f"{hypothesis.id} across", draft, alone)


def _law_claims(
    experiment: Experiment, hypothesis: Hypothesis, lines: Sequence[CellLine]
) -> Iterator[_Draft]:
    """Yield each line: all of its values against the first, by either law."""
    metric = experiment.metric(hypothesis.metric)
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
        why = [found for compared in laws.values() for found in compared if isinstance(found, str)]
        if why:
            yield _settled(replace(draft, why="; ".join(dict.fromkeys(why))))
        else:
            known = {
                law: [one for one in compared if isinstance(one, CellComparison)]
                for law, compared in laws.items()
            }
            yield _Draft(
                judged=partial(_of_law, hypothesis, draft, known),
                comparisons=[one for compared in known.values() for one in compared],
            )


def _settled(judgement: Judgement) -> _Draft:
    return _Draft(judged=lambda _: judgement)


def _of_claim(key: str, draft: Judgement, alone: tuple[float, float]) -> _Draft:
    """Return a claim about a knee, whose key is unlike that of any other."""
    return _Draft(judged=partial(_of_knee, draft, key, alone), knees={key: alone})


def _of_segment(
    experiment: Experiment,
    hypothesis: Hypothesis,
    draft: Judgement,
    one: CellComparison,
    family: Family,
) -> Judgement:
    verdict, p, alone = family.verdict(one)
    found = replace(
        draft,
        verdict=verdict,
        ratio=one.paired.ratio,
        interval=one.paired.interval(),
        p=p,
        alone=alone,
        among=len(family.difference),
    )
    if verdict not in _UNDECIDED:
        confirmed = verdict in _CONFIRMING[hypothesis.test]
        return replace(found, outcome=Decision.CONFIRMED if confirmed else Decision.REJECTED)
    why = STORE_BOUND if one.cells.store_bound else "too much spread"
    if alone <= ALPHA:
        why = f"alone p would be {alone:.2g}, and it is one of {found.among} comparisons"
    if verdict is Verdict.NOT_ENOUGH_RUNS:
        why = f"{verdict}: {MIN_BLOCKS} rounds with both cells at least"
    return replace(found, why=why, power=power_for(experiment, one, found.among))


def _of_law(
    hypothesis: Hypothesis,
    draft: Judgement,
    laws: Mapping[str, Sequence[CellComparison]],
    family: Family,
) -> Judgement:
    verdicts = {law: {family.verdict(one)[0] for one in all_of} for law, all_of in laws.items()}
    holding = [law for law, found in verdicts.items() if found == {Verdict.SAME}]
    refuted = [law for law, found in verdicts.items() if found - _UNDECIDED - {Verdict.SAME}]
    law = holding[0] if len(holding) == 1 else "neither" if len(refuted) == len(laws) else ""
    if not law:
        why = "too much spread, or too few values, to tell one law from another"
        bound = all(pair.cells.store_bound for pairs in laws.values() for pair in pairs)
        return replace(draft, why=STORE_BOUND if bound else why)
    confirmed = law == hypothesis.expect
    outcome = Decision.CONFIRMED if confirmed else Decision.REJECTED
    return replace(draft, outcome=outcome, among=len(family.difference), why=f"the law: {law}")


def _of_knee(draft: Judgement, key: str, alone: tuple[float, float], family: Family) -> Judgement:
    found = replace(draft, among=len(family.difference))
    against, for_it = family.difference[key], family.within[key]
    for outcome, p, by_itself in (
        (Decision.REJECTED, against, alone[0]),
        (Decision.CONFIRMED, for_it, alone[1]),
    ):
        if p <= ALPHA:
            # Across lines it says what the knees are, whatever holds.
            why = "" if draft.knee is not None else draft.why
            return replace(found, outcome=outcome, p=p, alone=by_itself, why=why)
    return replace(found, p=min(against, for_it), alone=min(alone))


def knee_test_of(experiment: Experiment, hypothesis: Hypothesis, line: CellLine) -> KneeTest | None:
    """Return what a line says of its knee; None if it cannot tell.

    That is so if the values are no numbers, one has too few runs, or the machine is too small.
    """
    metric = experiment.metric(hypothesis.metric)
    if line.runs.crowded or any(isinstance(value, str | bool) for value, _ in line.cells):
        return None
    runs = sorted(
        ((value, one.by_round(metric)) for value, one in line.cells if not one.cell.skipped),
        key=lambda pair: float(pair[0]),
    )
    if any(len(numbers) < MIN_BLOCKS for _, numbers in runs):
        return None
    return knee_test(runs, more_is_better=metric.better == "more")
