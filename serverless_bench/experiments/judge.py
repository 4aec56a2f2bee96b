"""What holds of the hypotheses: one comparison per segment, one knee per line. Pure."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log
from typing import Final

from serverless_bench.analysis.compare import ALPHA, Verdict
from serverless_bench.experiments.cells import CELL
from serverless_bench.experiments.contrasts import MIN_ROUNDS, contrast
from serverless_bench.experiments.effects import Effect, changes
from serverless_bench.experiments.knee import Knee, Line
from serverless_bench.experiments.knee_claims import (
    knee_line,
    knees_shown,
    p_across,
    p_expected,
)
from serverless_bench.experiments.observations import Observed
from serverless_bench.experiments.outcomes import Judged, Judgement, Outcome, Series
from serverless_bench.experiments.published import power_for
from serverless_bench.experiments.questions import Answers, Question, answer
from serverless_bench.experiments.schema import Experiment, Hypothesis, Value

_NONE: Final = Outcome.NOT_IDENTIFIABLE
_YES: Final[Mapping[str, frozenset[Verdict]]] = {
    "faster": frozenset({Verdict.FASTER}),
    "slower": frozenset({Verdict.SLOWER}),
    "same": frozenset({Verdict.SAME}),
    "no-gain": frozenset({Verdict.SAME, Verdict.SLOWER}),
    "linear": frozenset({Verdict.SAME, Verdict.FASTER}),
}
"""Verdicts that confirm a claim; any other one rejects it."""
_UNDECIDED: Final = frozenset({Verdict.UNDECIDED, Verdict.NOT_ENOUGH_RUNS})


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """Everything that is said of an experiment, its false alarms held at 5 % together."""

    judged: tuple[Judged, ...]
    effects: tuple[Effect, ...]
    among: int
    """Comparisons and claims about knees, each once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Claim:
    """A segment before it is judged."""

    group: Mapping[str, Value]
    segment: tuple[Value, Value]
    question: Question | None
    why: str = ""
    """Why there is no question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """A hypothesis before it is judged."""

    hypothesis: Hypothesis
    claims: tuple[_Claim, ...]
    lines: tuple[tuple[Series, Line | None], ...]

    @property
    def known(self) -> list[tuple[Series, Line]]:
        """Lines that have a knee."""
        return [(series, line) for series, line in self.lines if line is not None]

    def knee_ps(self) -> Iterator[tuple[Hashable, tuple[float, float]]]:
        """Yield each claim about knees by its key."""
        one = self.hypothesis
        if one.test != "knee":
            return
        if one.expect is not None:
            for series, line in self.known:
                yield _knee_key(one, series), p_expected(line, one.expect)
        if one.across:
            yield _across_key(one), p_across([line for _, line in self.known])


def judge(
    experiment: Experiment,
    scale: str,
    observed: Sequence[Observed],
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
    asked = [_ask(experiment, scale, one, observed) for one in experiment.hypotheses]
    changed = list(changes(experiment, scale, observed)) if one_factor else []
    questions = [c.question for one in asked for c in one.claims if c.question is not None]
    questions += [question for *_, question in changed]
    knees = dict(pair for one in asked for pair in one.knee_ps())
    answers = answer(questions, knees)
    among = len(answers.difference)
    effects = [
        Effect(
            metric=question.metric.name,
            axis=axis,
            base=base,
            value=value,
            verdict=answers.verdict(question)[0],
            ratio=question.contrast.ratio,
            interval=question.contrast.interval(),
        )
        for axis, base, value, question in changed
    ]
    return Verdicts(
        judged=tuple(_judged(experiment, one, answers, knees) for one in asked),
        effects=tuple(sorted(effects, key=lambda effect: -abs(log(effect.ratio)))),
        among=among,
    )


def _ask(
    experiment: Experiment, scale: str, hypothesis: Hypothesis, observed: Sequence[Observed]
) -> _Asked:
    lines = _lines(hypothesis, observed)
    claims: tuple[_Claim, ...] = ()
    if hypothesis.test != "knee":
        claims = tuple(
            _claim(experiment, hypothesis, line, segment)
            for line in lines
            for segment in _segments(experiment, scale, hypothesis, line)
        )
    found = tuple((line, knee_line(experiment, hypothesis, line)) for line in lines)
    return _Asked(hypothesis=hypothesis, claims=claims, lines=found)


def _judged(
    experiment: Experiment,
    asked: _Asked,
    answers: Answers,
    knees: Mapping[Hashable, tuple[float, float]],
) -> Judged:
    shown = [(series, line.knee()) for series, line in asked.known]
    if asked.hypothesis.test == "knee":
        found = list(_knee_judgements(asked, shown, answers, knees))
    else:
        found = [_judgement(experiment, asked.hypothesis, one, answers) for one in asked.claims]
    return Judged(
        hypothesis=asked.hypothesis,
        judgements=tuple(found),
        knees=tuple((series.group, knee) for series, knee in shown),
    )


def _lines(hypothesis: Hypothesis, observed: Sequence[Observed]) -> list[Series]:
    """Return the cells by everything but the axis of the hypothesis."""
    along, groups = hypothesis.along, dict[tuple[tuple[str, str], ...], list[Observed]]()
    for one in observed:
        if one.cell.value(along) in {None, ""} or not one.cell.matches(hypothesis.where):
            continue
        if one.cell.control and along != CELL:
            continue
        rest = {n: v for n, v in one.cell.at.items() if along not in {n, CELL}}
        groups.setdefault(tuple((n, str(v)) for n, v in rest.items()), []).append(one)
    return [
        Series(
            {n: v for n, v in members[0].cell.at.items() if along not in {n, CELL}},
            tuple((one.cell.value(along) or "", one) for one in members),
        )
        for members in groups.values()
        if len(members) > 1
    ]


def _segments(
    experiment: Experiment, scale: str, hypothesis: Hypothesis, line: Series
) -> Iterator[tuple[Value, Value]]:
    values = [value for value, _ in line.cells]
    told = hypothesis.segments
    if told == "neighbours":
        yield from pairwise(values)
    elif told == "first":
        yield from ((values[0], value) for value in values[1:])
    elif not isinstance(told, str):
        back: dict[str, Value] = {}
        if hypothesis.along != CELL:
            axis = experiment.axis(hypothesis.along)
            if axis.paired:
                back = dict(zip(map(str, axis.values["paper"]), axis.values[scale], strict=True))
        yield from ((back.get(str(a), a), back.get(str(b), b)) for a, b in told)


def _claim(
    experiment: Experiment, hypothesis: Hypothesis, line: Series, segment: tuple[Value, Value]
) -> _Claim:
    metric = experiment.metric(hypothesis.metric)
    there = {str(value): one for value, one in line.cells}
    sides = []
    for value in segment:
        one = there.get(str(value))
        if one is None or not any(v > 0 for v in one.by_round(metric).values()):
            why = f"{value} is not run at this scale" if one is None else one.why_empty(metric.of)
            return _Claim(group=line.group, segment=segment, question=None, why=why)
        sides.append(one)
    first, second = sides
    found = contrast(first.by_round(metric), second.by_round(metric))
    if found is None:
        why = "no round has a run of both"
        return _Claim(group=line.group, segment=segment, question=None, why=why)
    told_times = 1.0
    if hypothesis.test == "linear":
        times = log(float(segment[1]) / float(segment[0]))
        found = found.shifted(-times if metric.better == "more" else times)
        told = [float(one.cell.told[hypothesis.along]) for one in sides]
        told_times = told[1] / told[0]
    question = Question(
        metric=metric,
        first=first,
        second=second,
        contrast=found,
        test=hypothesis.test,
        threshold=hypothesis.threshold,
        told_times=told_times,
    )
    return _Claim(group=line.group, segment=segment, question=question)


def _judgement(
    experiment: Experiment, hypothesis: Hypothesis, claim: _Claim, answers: Answers
) -> Judgement:
    asked = claim.question
    if asked is None:
        return Judgement(group=claim.group, segment=claim.segment, outcome=_NONE, why=claim.why)
    verdict, p, alone = answers.verdict(asked)
    among, why, power = len(answers.difference), "", None
    if verdict in _UNDECIDED:
        outcome = _NONE
        why = "too much spread"
        if alone <= ALPHA:
            why = f"alone p would be {alone:.2g}, and it is one of {among} comparisons"
        if verdict is Verdict.NOT_ENOUGH_RUNS:
            why = f"{verdict}: {MIN_ROUNDS} rounds with both cells at least"
        power = power_for(experiment, asked, among)
    else:
        outcome = Outcome.CONFIRMED if verdict in _YES[hypothesis.test] else Outcome.REJECTED
    return Judgement(
        group=claim.group,
        segment=claim.segment,
        outcome=outcome,
        verdict=verdict,
        ratio=asked.contrast.ratio,
        interval=asked.contrast.interval(),
        p=p,
        alone=alone,
        among=among,
        power=power,
        why=why,
    )


def _knee_judgements(
    asked: _Asked,
    shown: Sequence[tuple[Series, Knee]],
    answers: Answers,
    knees: Mapping[Hashable, tuple[float, float]],
) -> Iterator[Judgement]:
    """Yield what holds of a claim about knees: one per line, and one across them."""
    hypothesis = asked.hypothesis
    for series, line in asked.lines:
        if line is None:
            why = f"a value has fewer than {MIN_ROUNDS} runs, or is no number"
            yield Judgement(group=series.group, segment=None, outcome=_NONE, why=why)
    if hypothesis.expect is not None:
        for series, knee in shown:
            key = _knee_key(hypothesis, series)
            why = f"between {knee.low} and {knee.high}"
            yield _knee_judgement(series.group, key, answers, knees, knee=knee, why=why)
    if hypothesis.across:
        why = knees_shown(hypothesis.across, shown)
        yield _knee_judgement({}, _across_key(hypothesis), answers, knees, knee=None, why=why)


def _knee_judgement(
    group: Mapping[str, Value],
    key: Hashable,
    answers: Answers,
    knees: Mapping[Hashable, tuple[float, float]],
    *,
    knee: Knee | None,
    why: str,
) -> Judgement:
    against, of_it = answers.difference[key], answers.within[key]
    outcome, p, alone = _NONE, min(against, of_it), min(knees[key])
    if against <= ALPHA:
        outcome, p, alone = Outcome.REJECTED, against, knees[key][0]
    elif of_it <= ALPHA:
        outcome, p, alone = Outcome.CONFIRMED, of_it, knees[key][1]
    told = "" if knee is not None and outcome is not _NONE else why
    return Judgement(
        group=group,
        segment=None,
        outcome=outcome,
        knee=knee,
        p=p,
        alone=alone,
        among=len(answers.difference),
        why=told,
    )


def _knee_key(hypothesis: Hypothesis, series: Series) -> Hashable:
    return hypothesis.id, tuple((name, str(value)) for name, value in series.group.items())


def _across_key(hypothesis: Hypothesis) -> Hashable:
    return hypothesis.id, "across"
