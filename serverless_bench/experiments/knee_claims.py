"""What holds of claims about knees. Pure."""

from collections.abc import Iterator, Sequence
from itertools import combinations

from serverless_bench.compare import MIN_RUNS
from serverless_bench.experiments.knee import Knee, find_knee
from serverless_bench.experiments.outcomes import Judgement, Outcome, Series
from serverless_bench.experiments.schema import Experiment, Hypothesis, Value


def knee_of(experiment: Experiment, hypothesis: Hypothesis, line: Series, seed: int) -> Knee | None:
    """Return the knee of a line; None if it cannot be told.

    That is so if the values are no numbers, or one has too few runs.
    """
    metric = experiment.metric(hypothesis.metric)
    if any(isinstance(value, str | bool) for value, _ in line.cells):
        return None
    runs = sorted(
        ((value, one.values(metric.of)) for value, one in line.cells if not one.cell.skipped),
        key=lambda pair: float(pair[0]),
    )
    if any(len(numbers) < MIN_RUNS for _, numbers in runs):
        return None
    return find_knee(runs, more_is_better=metric.better == "more", seed=seed)


def knee_judgements(
    hypothesis: Hypothesis,
    lines: Sequence[Series],
    knees: Sequence[tuple[Series, Knee]],
) -> Iterator[Judgement]:
    """Yield what holds of a claim about knees: one per line, and one across them."""
    with_knee = {id(line) for line, _ in knees}
    for line in lines:
        if id(line) not in with_knee:
            why = f"a value has fewer than {MIN_RUNS} runs, or is no number"
            none = Outcome.NOT_IDENTIFIABLE
            yield Judgement(group=line.group, segment=None, outcome=none, why=why)
    expect = hypothesis.expect
    for line, knee in knees:
        if expect is not None:
            outcome = _expected(line, knee, expect)
            why = (
                ""
                if outcome is not Outcome.NOT_IDENTIFIABLE
                else f"between {knee.low} and {knee.high}"
            )
            yield Judgement(group=line.group, segment=None, outcome=outcome, knee=knee, why=why)
    if hypothesis.across:
        yield _across(hypothesis, knees)


def _expected(line: Series, knee: Knee, expect: Value) -> Outcome:
    if str(expect) not in {str(value) for value, _ in line.cells}:
        # What was not measured can be excluded, but not be met.
        inside = float(knee.low) <= float(expect) <= float(knee.high)
        return Outcome.NOT_IDENTIFIABLE if inside else Outcome.REJECTED
    if not float(knee.low) <= float(expect) <= float(knee.high):
        return Outcome.REJECTED
    return Outcome.CONFIRMED if knee.sure else Outcome.NOT_IDENTIFIABLE


def _across(hypothesis: Hypothesis, knees: Sequence[tuple[Series, Knee]]) -> Judgement:
    """Return whether all lines have one knee: those whose intervals do not meet have not."""
    found = [knee for _, knee in knees]
    apart = any(
        float(a.high) < float(b.low) or float(b.high) < float(a.low)
        for a, b in combinations(found, 2)
    )
    one = len(found) > 1 and all(knee.sure for knee in found) and not apart
    outcome = Outcome.CONFIRMED if one else Outcome.NOT_IDENTIFIABLE
    shown = ", ".join(
        f"{line.group.get(hypothesis.across, '')}: {knee.at} ({knee.low} to {knee.high})"
        for line, knee in knees
    )
    return Judgement(
        group={},
        segment=None,
        outcome=Outcome.REJECTED if apart else outcome,
        why=f"knees by {hypothesis.across}: {shown or 'none'}",
    )
