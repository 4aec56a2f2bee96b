"""What is claimed of knees, and how likely it is. Pure."""

from collections.abc import Sequence

from serverless_bench.experiments.contrasts import MIN_ROUNDS
from serverless_bench.experiments.knee import Knee, Line, line_of
from serverless_bench.experiments.outcomes import Series
from serverless_bench.experiments.schema import Experiment, Hypothesis, Value


def knee_line(experiment: Experiment, hypothesis: Hypothesis, line: Series) -> Line | None:
    """Return the cells of a line as its knee needs them; None if it cannot be told.

    That is so if the values are no numbers, or one has too few runs.
    """
    metric = experiment.metric(hypothesis.metric)
    if any(isinstance(value, str | bool) for value, _ in line.cells):
        return None
    runs = sorted(
        ((value, one.by_round(metric)) for value, one in line.cells if not one.cell.skipped),
        key=lambda pair: float(pair[0]),
    )
    if any(len(numbers) < MIN_ROUNDS for _, numbers in runs):
        return None
    return line_of(runs, more_is_better=metric.better == "more")


def p_expected(line: Line, expect: Value) -> tuple[float, float]:
    """Return the p against a knee at a value, and the p against its being elsewhere."""
    texts = [str(value) for value in line.values]
    if str(expect) in texts:
        place = texts.index(str(expect))
        return line.p_not(place), line.p_is(place)
    # What was not measured can be excluded, but not be met: a knee between two values
    # makes the larger one the first that is close to the best, one beyond them the last.
    larger = [n for n, value in enumerate(line.values) if float(value) > float(expect)]
    return line.p_not(larger[0] if larger else len(line.values) - 1), 1.0


def p_across(lines: Sequence[Line]) -> tuple[float, float]:
    """Return the p of "all lines have one knee", and of "they have not"."""
    values = list(dict.fromkeys(str(value) for line in lines for value in line.values))
    if len(lines) < 2:
        return 1.0, 1.0
    apart = [min(1.0, len(lines) * min(_p_not(line, value) for line in lines)) for value in values]
    one = [max(_p_is(line, value) for line in lines) for value in values]
    return max(apart), min(1.0, len(values) * min(one))


def knees_shown(across: str, found: Sequence[tuple[Series, Knee]]) -> str:
    """Return the knees of lines in words."""
    shown = ", ".join(
        f"{line.group.get(across, '')}: {knee.at} ({knee.low} to {knee.high})"
        for line, knee in found
    )
    return f"knees by {across}: {shown or 'none'}"


def _p_not(line: Line, value: str) -> float:
    texts = [str(one) for one in line.values]
    return line.p_not(texts.index(value)) if value in texts else 0.0


def _p_is(line: Line, value: str) -> float:
    texts = [str(one) for one in line.values]
    return line.p_is(texts.index(value)) if value in texts else 1.0
