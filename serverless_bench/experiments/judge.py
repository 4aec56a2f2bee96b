"""What holds of the hypotheses: one comparison per segment, one knee per line. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from serverless_bench.compare import MIN_RUNS, Comparison, Verdict, compare
from serverless_bench.experiments.cells import CELL
from serverless_bench.experiments.knee_claims import knee_judgements, knee_of
from serverless_bench.experiments.observations import Observed
from serverless_bench.experiments.outcomes import Judged, Judgement, Outcome, Series
from serverless_bench.experiments.schema import Experiment, Hypothesis, Value

_NONE_DECIDED: Final = frozenset({Verdict.UNDECIDED, Verdict.NOT_ENOUGH_RUNS})
_OUTCOMES: Final[Mapping[str, Mapping[Verdict, Outcome]]] = {
    "faster": {
        Verdict.FASTER: Outcome.CONFIRMED,
        Verdict.SAME: Outcome.REJECTED,
        Verdict.SLOWER: Outcome.REJECTED,
    },
    "slower": {
        Verdict.FASTER: Outcome.REJECTED,
        Verdict.SAME: Outcome.REJECTED,
        Verdict.SLOWER: Outcome.CONFIRMED,
    },
    "same": {
        Verdict.FASTER: Outcome.REJECTED,
        Verdict.SAME: Outcome.CONFIRMED,
        Verdict.SLOWER: Outcome.REJECTED,
    },
    "no-gain": {
        Verdict.FASTER: Outcome.REJECTED,
        Verdict.SAME: Outcome.CONFIRMED,
        Verdict.SLOWER: Outcome.CONFIRMED,
    },
    "linear": {
        Verdict.FASTER: Outcome.CONFIRMED,
        Verdict.SAME: Outcome.CONFIRMED,
        Verdict.SLOWER: Outcome.REJECTED,
    },
}


def judge(
    experiment: Experiment, scale: str, observed: Sequence[Observed], *, seed: int = 0
) -> tuple[Judged, ...]:
    """Return what holds of every hypothesis.

    Parameters
    ----------
    experiment, scale
        What was run, and how large.
    observed
        Every cell with its runs.
    seed
        Of what is drawn at random.
    """
    return tuple(_judged(experiment, scale, one, observed, seed) for one in experiment.hypotheses)


def _judged(
    experiment: Experiment,
    scale: str,
    hypothesis: Hypothesis,
    observed: Sequence[Observed],
    seed: int,
) -> Judged:
    lines = _lines(hypothesis, observed)
    knees = [
        (line, knee) for line in lines if (knee := knee_of(experiment, hypothesis, line, seed))
    ]
    if hypothesis.test == "knee":
        found = list(knee_judgements(hypothesis, lines, knees))
    else:
        found = [
            _segment(experiment, hypothesis, line, segment, seed)
            for line in lines
            for segment in _segments(experiment, scale, hypothesis, line)
        ]
    return Judged(
        hypothesis=hypothesis,
        judgements=tuple(found),
        knees=tuple((line.group, knee) for line, knee in knees),
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


def _segment(
    experiment: Experiment,
    hypothesis: Hypothesis,
    line: Series,
    segment: tuple[Value, Value],
    seed: int,
) -> Judgement:
    metric = experiment.metric(hypothesis.metric)
    there = {str(value): one for value, one in line.cells}
    sides = []
    for value in segment:
        one = there.get(str(value))
        numbers = [] if one is None else [v for v in one.values(metric.of) if v > 0]
        if one is None or not numbers:
            why = f"{value} is not run at this scale" if one is None else one.why_empty(metric.of)
            return Judgement(
                group=line.group, segment=segment, outcome=Outcome.NOT_IDENTIFIABLE, why=why
            )
        sides.append(numbers)
    first, second = sides
    more = metric.better == "more"
    if hypothesis.test == "linear":
        times = float(segment[1]) / float(segment[0])
        first = [value * (times if more else 1 / times) for value in first]
    result = compare(first, second, threshold=hypothesis.threshold, more_is_better=more, seed=seed)
    outcome, why = _outcome(hypothesis, result, more_is_better=more)
    return Judgement(
        group=line.group,
        segment=segment,
        outcome=outcome,
        ratio=result.ratio,
        interval=None if result.evidence is None else result.evidence.interval,
        why=why,
    )


def _outcome(
    hypothesis: Hypothesis, result: Comparison, *, more_is_better: bool
) -> tuple[Outcome, str]:
    """Return what a comparison makes of a claim; one-sided claims need one side only."""
    if result.verdict not in _NONE_DECIDED:
        return _OUTCOMES[hypothesis.test][result.verdict], ""
    if result.evidence is None:
        return Outcome.NOT_IDENTIFIABLE, f"{result.verdict}: {MIN_RUNS} of each cell at least"
    low, high = result.evidence.same_interval.low, result.evidence.same_interval.high
    if not more_is_better:
        low, high = 1 / high, 1 / low
    limit = 1 + hypothesis.threshold
    if hypothesis.test == "no-gain" and high < limit:
        return Outcome.CONFIRMED, ""
    if hypothesis.test == "linear" and low > 1 / limit:
        return Outcome.CONFIRMED, ""
    needed = result.evidence.runs_needed
    return Outcome.NOT_IDENTIFIABLE, f"too much spread; about {needed} runs of each might tell"
