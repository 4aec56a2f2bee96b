"""A verdict over runs, and the interval that it rests on."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

ALPHA: Final = 0.05
"""How often, at most, runs that do not differ are called different."""
THRESHOLD: Final = 0.05
"""Relative difference from which on it matters, if the user does not say."""


class Verdict(StrEnum):
    """Result for runs of one side, seen from the baseline, or from runs of an older version."""

    FASTER = "faster"
    SLOWER = "slower"
    SAME = "same"
    """They differ by less than the threshold."""
    PASSED = "passed"
    """They lost less than the tolerance in every figure."""
    REGRESSED = "regressed"
    """They lost more than the tolerance in a figure, and chance does not do that."""
    UNDECIDED = "undecided"
    """These runs do not tell."""
    NOT_ENOUGH_RUNS = "not enough runs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Range in which the true ratio is."""

    low: float
    high: float
    confidence: float
    """Confidence that is reached; more than was asked for, where ranks come in steps."""
