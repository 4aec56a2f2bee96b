"""Verdicts on runs, the intervals they are based on, and adjustment for multiple tests."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from itertools import accumulate
from typing import Final, TypeVar

from serverless_bench.base.errors import PluginError

ALPHA: Final = 0.05
"""Maximum probability of judging equal runs as different."""
THRESHOLD: Final = 0.05
"""Default of the smallest relevant relative difference."""
MIN_BLOCKS: Final = 6
"""Minimum number of blocks or rounds in which both sides have a run, or of runs per side. With
fewer runs, a verdict would depend on the shape of their distribution, so there is none."""


class Verdict(StrEnum):
    """Verdict on the runs of a side compared with the baseline, or with an older version."""

    FASTER = "faster"
    SLOWER = "slower"
    SAME = "same"
    """The difference is below the threshold."""
    PASSED = "passed"
    """The loss is below the tolerance in every metric."""
    REGRESSED = "regressed"
    """The loss exceeds the tolerance in a metric, beyond chance."""
    UNDECIDED = "undecided"
    """The runs allow no conclusion."""
    NOT_ENOUGH_RUNS = "not enough runs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Interval of the true ratio."""

    low: float
    high: float
    confidence: float
    """Actual confidence; may exceed the requested confidence if ranks are discrete."""


K = TypeVar("K", bound=Hashable)


def holm(p: Mapping[K, float]) -> dict[K, float]:
    """Return the p-value of each comparison, adjusted for all comparisons (Holm 1979).

    Rejecting all hypotheses whose adjusted p is at most 5 % makes no false rejection in 95 % of
    families, regardless of the dependence between comparisons.
    """
    keys = sorted(p, key=lambda key: p[key])
    adjusted = (min(1.0, (len(p) - place) * p[key]) for place, key in enumerate(keys))
    return dict(zip(keys, accumulate(adjusted, max), strict=True))


def require_scipy() -> None:
    """Check that SciPy is installed, before a long series starts.

    Raises
    ------
    PluginError
        If SciPy is not installed.
    """
    if find_spec("scipy") is None:
        raise PluginError(
            "fits, limits and the power of checks need SciPy, which is not installed",
            hint="pip install 'serverless-bench[scipy]'",
        )
