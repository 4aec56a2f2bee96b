"""What holds of the hypotheses: one comparison per segment, one knee per line. Pure."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log
from typing import Final

from serverless_bench.analysis.compare import ALPHA, Verdict
from serverless_bench.experiments.cells import CELL, baseline
from serverless_bench.experiments.comparisons import (
    MIN_ROUNDS,
    CellComparison,
    Family,
    family_of,
    paired_ratio,
)
from serverless_bench.experiments.definition import Experiment, Hypothesis, Metric, Value
from serverless_bench.experiments.knee import (
    CellLine,
    Knee,
    KneeTest,
    knee_test_of,
    p_across,
    p_expected,
)
from serverless_bench.experiments.observations import CellRuns
from serverless_bench.experiments.power import power_for
from serverless_bench.experiments.verdicts import Decision, Effect, Judged, Judgement, Verdicts

_UNKNOWN: Final = Decision.NOT_IDENTIFIABLE
_CONFIRMING: Final[Mapping[str, frozenset[Verdict]]] = {
    "faster": frozenset({Verdict.FASTER}),
    "slower": frozenset({Verdict.SLOWER}),
    "same": frozenset({Verdict.SAME}),
    "no-gain": frozenset({Verdict.SAME, Verdict.SLOWER}),
    "linear": frozenset({Verdict.SAME, Verdict.FASTER}),
}
"""Verdicts that confirm a claim; any other one rejects it."""
_UNDECIDED: Final = frozenset({Verdict.UNDECIDED, Verdict.NOT_ENOUGH_RUNS})

Knees = Mapping[Hashable, tuple[float, float]]
"""Of each claim about a knee, by its key: the p against it, and for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Segment:
    """Two values of an axis, before they are judged."""

    group: Mapping[str, Value]
    values: tuple[Value, Value]
    comparison: CellComparison | None = None
    why: str = ""
    """Why there is no comparison."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Claim:
    """A hypothesis before it is judged."""

    hypothesis: Hypothesis
    segments: tuple[_Segment, ...]
    lines: tuple[tuple[CellLine, KneeTest | None], ...]

    @property
    def known(self) -> list[tuple[CellLine, KneeTest]]:
        """Lines that have a knee."""
        return [(line, test) for line, test in self.lines if test is not None]

    def knees(self) -> Iterator[tuple[Hashable, tuple[float, float]]]:
        """Yield each claim about knees by its key."""
        one = self.hypothesis
        if one.test != "knee":
            return
        if one.expect is not None:
            for line, test in self.known:
                yield _knee_key(one, line), p_expected(test, one.expect)
        if one.across:
            yield _across_key(one), p_across([test for _, test in self.known])


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
    claims = [_claim(experiment, scale, one, observed) for one in experiment.hypotheses]
    changes = list(_changes(experiment, scale, observed)) if one_factor else []
    comparisons = [s.comparison for one in claims for s in one.segments if s.comparison]
    comparisons += [comparison for *_, comparison in changes]
    knees = dict(pair for one in claims for pair in one.knees())
    family = family_of(comparisons, knees)
    effects = [
        Effect(
            metric=comparison.metric.name,
            axis=axis,
            base=base,
            value=value,
            verdict=family.verdict(comparison)[0],
            ratio=comparison.paired.ratio,
            interval=comparison.paired.interval(),
        )
        for axis, base, value, comparison in changes
    ]
    return Verdicts(
        judged=tuple(_judged(experiment, one, family, knees) for one in claims),
        effects=tuple(sorted(effects, key=lambda effect: -abs(log(effect.ratio)))),
        among=len(family.difference),
    )


def _changes(
    experiment: Experiment, scale: str, observed: Sequence[CellRuns]
) -> Iterator[tuple[str, Value, Value, CellComparison]]:
    """Yield each change of one axis: the axis, its baseline, its value, and what it did.

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


def _claim(
    experiment: Experiment, scale: str, hypothesis: Hypothesis, observed: Sequence[CellRuns]
) -> _Claim:
    lines = _lines(hypothesis, observed)
    segments: tuple[_Segment, ...] = ()
    if hypothesis.test != "knee":
        segments = tuple(
            _segment(experiment.metric(hypothesis.metric), hypothesis, line, values)
            for line in lines
            for values in _segment_values(experiment, scale, hypothesis, line)
        )
    tests = tuple((line, knee_test_of(experiment, hypothesis, line)) for line in lines)
    return _Claim(hypothesis=hypothesis, segments=segments, lines=tests)


def _judged(experiment: Experiment, claim: _Claim, family: Family, knees: Knees) -> Judged:
    found = [(line, test.knee()) for line, test in claim.known]
    if claim.hypothesis.test == "knee":
        judgements = list(_knee_judgements(claim, found, family, knees))
    else:
        judgements = [_judgement(experiment, claim.hypothesis, s, family) for s in claim.segments]
    return Judged(
        hypothesis=claim.hypothesis,
        judgements=tuple(judgements),
        knees=tuple((line.group, knee) for line, knee in found),
    )


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
    elif not isinstance(segments, str):
        back: dict[str, Value] = {}
        if hypothesis.along != CELL:
            axis = experiment.axis(hypothesis.along)
            if axis.paired:
                back = dict(zip(map(str, axis.values["paper"]), axis.values[scale], strict=True))
        yield from ((back.get(str(a), a), back.get(str(b), b)) for a, b in segments)


def _segment(
    metric: Metric, hypothesis: Hypothesis, line: CellLine, values: tuple[Value, Value]
) -> _Segment:
    by_value = {str(value): one for value, one in line.cells}
    cells = []
    for value in values:
        one = by_value.get(str(value))
        if one is None or not any(v > 0 for v in one.by_round(metric).values()):
            why = f"{value} is not run at this scale" if one is None else one.why_empty(metric.of)
            return _Segment(group=line.group, values=values, why=why)
        cells.append(one)
    first, second = cells
    found, published_times = paired_ratio(first.by_round(metric), second.by_round(metric)), 1.0
    if found is None:
        return _Segment(group=line.group, values=values, why="no round has a run of both")
    if hypothesis.test == "linear":
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
    return _Segment(group=line.group, values=values, comparison=comparison)


def _judgement(
    experiment: Experiment, hypothesis: Hypothesis, segment: _Segment, family: Family
) -> Judgement:
    one = segment.comparison
    if one is None:
        return Judgement(
            group=segment.group, segment=segment.values, outcome=_UNKNOWN, why=segment.why
        )
    verdict, p, alone = family.verdict(one)
    among, why, power = len(family.difference), "", None
    if verdict in _UNDECIDED:
        outcome = _UNKNOWN
        why = "too much spread"
        if alone <= ALPHA:
            why = f"alone p would be {alone:.2g}, and it is one of {among} comparisons"
        if verdict is Verdict.NOT_ENOUGH_RUNS:
            why = f"{verdict}: {MIN_ROUNDS} rounds with both cells at least"
        power = power_for(experiment, one, among)
    else:
        confirmed = verdict in _CONFIRMING[hypothesis.test]
        outcome = Decision.CONFIRMED if confirmed else Decision.REJECTED
    return Judgement(
        group=segment.group,
        segment=segment.values,
        outcome=outcome,
        verdict=verdict,
        ratio=one.paired.ratio,
        interval=one.paired.interval(),
        p=p,
        alone=alone,
        among=among,
        power=power,
        why=why,
    )


def _knee_judgements(
    claim: _Claim, found: Sequence[tuple[CellLine, Knee]], family: Family, knees: Knees
) -> Iterator[Judgement]:
    """Yield what holds of a claim about knees: one per line, and one across them."""
    hypothesis = claim.hypothesis
    for line, test in claim.lines:
        if test is None:
            why = f"a value has fewer than {MIN_ROUNDS} runs, or is no number"
            yield Judgement(group=line.group, segment=None, outcome=_UNKNOWN, why=why)
    if hypothesis.expect is not None:
        for line, knee in found:
            key = _knee_key(hypothesis, line)
            why = f"between {knee.low} and {knee.high}"
            yield _knee_judgement(line.group, key, family, knees, knee=knee, why=why)
    if hypothesis.across:
        each = (
            f"{line.group.get(hypothesis.across, '')}: {knee.at} ({knee.low} to {knee.high})"
            for line, knee in found
        )
        why = f"knees by {hypothesis.across}: {', '.join(each) or 'none'}"
        yield _knee_judgement({}, _across_key(hypothesis), family, knees, knee=None, why=why)


def _knee_judgement(
    group: Mapping[str, Value],
    key: Hashable,
    family: Family,
    knees: Knees,
    *,
    knee: Knee | None,
    why: str,
) -> Judgement:
    against, for_it = family.difference[key], family.within[key]
    outcome, p, alone = _UNKNOWN, min(against, for_it), min(knees[key])
    if against <= ALPHA:
        outcome, p, alone = Decision.REJECTED, against, knees[key][0]
    elif for_it <= ALPHA:
        outcome, p, alone = Decision.CONFIRMED, for_it, knees[key][1]
    return Judgement(
        group=group,
        segment=None,
        outcome=outcome,
        knee=knee,
        p=p,
        alone=alone,
        among=len(family.difference),
        why="" if knee is not None and outcome is not _UNKNOWN else why,
    )


def _knee_key(hypothesis: Hypothesis, line: CellLine) -> Hashable:
    return hypothesis.id, tuple((name, str(value)) for name, value in line.group.items())


def _across_key(hypothesis: Hypothesis) -> Hashable:
    return hypothesis.id, "across"
