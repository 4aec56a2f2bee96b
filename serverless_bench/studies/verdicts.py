"""What becomes of the claims of an experiment, as values."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from serverless_bench.statistics.knee import Knee
from serverless_bench.statistics.verdict import Interval, Verdict
from serverless_bench.studies.definition import Hypothesis, Value
from serverless_bench.studies.power import Power


class Decision(StrEnum):
    """What becomes of a claim."""

    CONFIRMED = "confirmed"
    REJECTED = "rejected"
    NOT_IDENTIFIABLE = "not identifiable"
    """These runs, or this machine, do not tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """One segment, or one knee."""

    group: Mapping[str, Value]
    """Where the other axes are."""
    segment: tuple[Value, Value] | None
    """None for a knee."""
    outcome: Decision
    verdict: Verdict | None = None
    """Of the second cell, seen from the first; ``same`` is one-sided where the claim is."""
    ratio: float | None = None
    """Second over first, within a round; for ``linear``, over what would be proportional."""
    interval: Interval | None = None
    """Of the ratio by itself, at 95 %."""
    p: float | None = None
    """Of what decided, or came closest to it, as one of ``among`` comparisons (Holm)."""
    alone: float | None = None
    """The same p if nothing else had been compared."""
    among: int = 0
    """Comparisons of the experiment that share its 5 % of false alarms."""
    knee: Knee | None = None
    power: Power | None = None
    """Where the published difference is large and there is no verdict."""
    why: str = ""
    """What is missing, where the outcome is not identifiable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A hypothesis and what was found."""

    hypothesis: Hypothesis
    judgements: tuple[Judgement, ...]
    knees: tuple[tuple[Mapping[str, Value], Knee], ...]
    """Of each line, wherever the axis has numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What one change does by itself: against the baseline, all else alike."""

    metric: str
    axis: str
    base: Value
    value: Value
    verdict: Verdict
    ratio: float
    """Of the metric, changed over baseline, within a round."""
    interval: Interval | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """What holds of an experiment, its false alarms held at 5 % together."""

    judged: tuple[Judged, ...]
    effects: tuple[Effect, ...]
    """The largest first; none but in one-factor designs."""
    among: int
    """Comparisons and claims about knees, each once."""
