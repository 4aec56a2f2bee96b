"""What each change does by itself: which of several factors mattered. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from serverless_bench.analysis.compare import Interval, Verdict
from serverless_bench.experiments.cells import baseline
from serverless_bench.experiments.contrasts import contrast
from serverless_bench.experiments.observations import Observed
from serverless_bench.experiments.questions import Question
from serverless_bench.experiments.schema import Experiment, Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One change against the baseline, all else alike."""

    metric: str
    axis: str
    base: Value
    value: Value
    verdict: Verdict
    ratio: float
    """Of the metric, changed over baseline, within a round."""
    interval: Interval | None


def changes(
    experiment: Experiment, scale: str, observed: Sequence[Observed]
) -> Iterator[tuple[str, Value, Value, Question]]:
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
        found = contrast(start.by_round(metric), one.by_round(metric))
        if len(changed) == 1 and found is not None:
            (axis,) = changed
            asked = Question(metric=metric, first=start, second=one, contrast=found)
            yield axis, base[axis], one.cell.at[axis], asked


def effect_sentence(effect: Effect) -> str:
    """Return an effect as a line."""
    text = f"{effect.axis} {effect.base} to {effect.value}: {effect.verdict}, x{effect.ratio:.3g}"
    if effect.interval is None:
        return text
    within = effect.interval
    return f"{text} ({within.low:.3g} to {within.high:.3g}, {within.confidence:.0%})"
