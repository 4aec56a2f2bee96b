"""What each change does by itself: which of several factors mattered. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

from serverless_bench.compare import Interval, Verdict, compare
from serverless_bench.experiments.cells import baseline
from serverless_bench.experiments.observations import Observed
from serverless_bench.experiments.schema import Experiment, Metric, Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One change against the baseline, all else alike."""

    metric: str
    axis: str
    base: Value
    value: Value
    verdict: Verdict
    ratio: float
    """Of the metric, changed over baseline."""
    interval: Interval | None


def effects(
    experiment: Experiment, scale: str, observed: Sequence[Observed], *, seed: int = 0
) -> tuple[Effect, ...]:
    """Return what each change of one axis did, the largest first.

    Parameters
    ----------
    experiment, scale
        What was run, and how large.
    observed
        Every cell with its runs.
    seed
        Of what is drawn at random.

    Returns
    -------
    tuple of Effect
        Of the first hypothesis' metric, or the first one; empty if the baseline has no runs.
    """
    first = experiment.hypotheses[0].metric if experiment.hypotheses else ""
    metric = experiment.metric(first) if first else experiment.metrics[0]
    base = {axis.name: baseline(axis, scale) for axis in experiment.axes}
    cells = [one for one in observed if not one.cell.control and not one.cell.name]
    start = next((one for one in cells if one.cell.matches(base)), None)
    if start is None or not _positive(start, metric):
        return ()
    found = []
    for one in cells:
        changed = [name for name, value in one.cell.at.items() if str(value) != str(base[name])]
        if len(changed) == 1 and _positive(one, metric):
            (axis,) = changed
            result = compare(
                start.values(metric.of),
                one.values(metric.of),
                more_is_better=metric.better == "more",
                seed=seed,
            )
            found.append(
                Effect(
                    metric=metric.name,
                    axis=axis,
                    base=base[axis],
                    value=one.cell.at[axis],
                    verdict=result.verdict,
                    ratio=result.ratio,
                    interval=None if result.evidence is None else result.evidence.interval,
                )
            )
    return tuple(sorted(found, key=lambda effect: -abs(log(effect.ratio))))


def effect_sentence(effect: Effect) -> str:
    """Return an effect as a line."""
    text = f"{effect.axis} {effect.base} to {effect.value}: {effect.verdict}, x{effect.ratio:.3g}"
    if effect.interval is None:
        return text
    within = effect.interval
    return f"{text} ({within.low:.3g} to {within.high:.3g}, {within.confidence:.0%})"


def _positive(one: Observed, metric: Metric) -> bool:
    values = one.values(metric.of)
    return bool(values) and min(values) > 0
