"""Where more brings nothing more: the knee, and how sure that is. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from serverless_bench.columns import Floats
from serverless_bench.experiments.schema import Value

WITHIN: Final = 0.05
"""The knee is the first value that is this close to the best."""
RESAMPLES: Final = 999
CONFIDENCE: Final = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Knee:
    """The smallest value within ``WITHIN`` of the best, among those that were measured."""

    at: Value
    low: Value
    high: Value
    """``CONFIDENCE`` of the resamples have it between these."""
    likely: float
    """Share of the resamples that have it at ``at``."""

    @property
    def sure(self) -> bool:
        """Whether the interval is one value."""
        return str(self.low) == str(self.high)


def find_knee(
    runs: Sequence[tuple[Value, Sequence[float]]],
    *,
    more_is_better: bool = True,
    seed: int = 0,
) -> Knee | None:
    """Return the knee of medians, with an interval from runs drawn anew.

    Parameters
    ----------
    runs
        Each value, in rising order, and the metric of each run with it.
    more_is_better
        Whether the best is the largest.
    seed
        Of the draws.

    Returns
    -------
    Knee or None
        None if there are fewer than two values, or one has no runs.
    """
    values = [value for value, _ in runs]
    if len(values) < 2 or not all(rates for _, rates in runs):
        return None
    sides = [np.asarray(rates, float) for _, rates in runs]
    if not more_is_better:
        sides = [1 / side for side in sides]
    rng = np.random.default_rng(seed)
    drawn = [
        np.median(side[rng.integers(len(side), size=(RESAMPLES, len(side)))], axis=1)
        for side in sides
    ]
    first = int(_first(np.array([[np.median(side)] for side in sides]))[0])
    found = np.sort(_first(np.array(drawn)))
    cut = round((1 - CONFIDENCE) / 2 * RESAMPLES)
    low, high = int(found[cut]), int(found[-1 - cut])
    return Knee(
        at=values[first],
        low=values[min(low, first)],
        high=values[max(high, first)],
        likely=float(np.mean(found == first)),
    )


def _first(medians: Floats) -> Floats:
    """Return the index of the first row close to the best of each column."""
    close = medians >= (1 - WITHIN) * medians.max(axis=0)
    return np.asarray(close.argmax(axis=0), dtype=np.float64)
