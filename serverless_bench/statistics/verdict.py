"""A verdict over runs, the interval that it rests on, and several tests judged as one family."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from itertools import accumulate
from typing import Final, TypeVar

from serverless_bench.errors import PluginError

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


K = TypeVar("K", bound=Hashable)


def holm(p: Mapping[K, float]) -> dict[K, float]:
    """Return p of each comparison as one of all of them (Holm 1979).

    Whoever believes all whose adjusted p is at most 5 % believes nothing false in 95 % of
    such families, however the comparisons depend on each other.
    """
    keys = sorted(p, key=lambda key: p[key])
    adjusted = (min(1.0, (len(p) - place) * p[key]) for place, key in enumerate(keys))
    return dict(zip(keys, accumulate(adjusted, max), strict=True))


def require_scipy() -> None:
    """Check that the library is there, before anything runs for hours.

    Raises
    ------
    PluginError
        If SciPy is not installed.
    """
    try:
        import_module("scipy")
    except ModuleNotFoundError as exc:
        raise PluginError(
            f"comparisons and fits need {exc.name!r}, which is not installed",
            hint="pip install 'serverless-bench[compare]'",
        ) from exc
