"""Effects of changes that are made in short blocks, as elasticities. Pure functions.

The rate of a changed block is compared with its base, interpolated between the base blocks before
and after it. An elasticity is the effect (on logarithms) relative to the effect that the change
would have if its resource alone bounded the run: 1 if all of the run waits for the resource, 0 if
none of it does. Estimates, intervals and p are those of Wilcoxon's signed ranks (Hollander, Wolfe
and Chicken 2014, sections 3.1 to 3.3), which a single stalled block cannot move.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from math import ceil, exp, inf, isinf
from typing import Final

import numpy as np

from serverless_bench.features.compare.verdict import ALPHA
from serverless_bench.rundir.tables import Floats, Mask

SPLIT: Final = 0.5
"""An elasticity above it says that the resource bounds the run."""
MIN_BLOCKS: Final = 8
"""Fewest blocks of a change from which ranks of several changes can prove anything."""
_LEAST_DISTANCE: Final = 0.05


@dataclass(frozen=True, kw_only=True)
class Elasticity:
    """Effect of a change.

    Parameters
    ----------
    expected
        Logarithm of the effect if the changed resource alone bounded the run.
    logs
        Logarithm of the effect in each changed block.
    confidence
        Confidence of the interval.
    """

    expected: float
    logs: Floats
    confidence: float = 1 - ALPHA

    @cached_property
    def _averages(self) -> Floats:
        """Averages of all pairs of values, including each value with itself, in order (Walsh)."""
        first, second = np.triu_indices(len(self.logs))
        return np.sort((self.logs[first] + self.logs[second]) / 2)

    @property
    def effect(self) -> float:
        """Relative change of the rate."""
        return exp(float(np.median(self._averages))) - 1

    @property
    def value(self) -> float:
        """The elasticity."""
        return float(np.median(self._averages)) / self.expected

    @cached_property
    def interval(self) -> tuple[float, float]:
        """Interval of the elasticity; infinite if there are too few blocks."""
        tail = (1 - self.confidence) / 2
        outside = int(np.searchsorted(_signed_ranks(len(self.logs)), tail, side="right"))
        if not outside:
            return -inf, inf
        ends = self._averages[outside - 1] / self.expected, self._averages[-outside] / self.expected
        return float(min(ends)), float(max(ends))

    @cached_property
    def p(self) -> float:
        """Two-sided p of no effect; a zero counts half on each side, rounded up."""
        above, below = int((self._averages > 0).sum()), int((self._averages < 0).sum())
        zeros = len(self._averages) - above - below
        return min(
            1.0, 2 * float(_signed_ranks(len(self.logs))[min(above, below) + -(-zeros // 2)])
        )

    @property
    def bounds(self) -> bool | None:
        """Whether the resource bounds the run; None if the interval contains ``SPLIT``."""
        low, high = self.interval
        return low > SPLIT if low > SPLIT or high < SPLIT else None

    @property
    def is_partial(self) -> bool:
        """Whether the resource bounds about half of the run, so that more blocks would not help."""
        low, high = self.interval
        return 0 < low <= SPLIT <= high < 1 and self.blocks_needed > len(self.logs)

    @property
    def blocks_needed(self) -> int:
        """Approximate number of further blocks after which ``bounds`` would be known."""
        (low, high), number = self.interval, len(self.logs)
        if isinf(high):
            return max(MIN_BLOCKS, number)
        distance = max(abs(self.value - SPLIT), _LEAST_DISTANCE)
        return max(1, ceil(number * (((high - low) / 2 / distance) ** 2 - 1)))


@cache
def _signed_ranks(number: int) -> Floats:
    """Return the probabilities that the sum of signed ranks is at most 0, 1, 2, ..."""
    ways = np.ones(1)
    for rank in range(1, number + 1):
        ways = np.convolve(ways, np.concatenate(([0.5], np.zeros(rank - 1), [0.5])))
    return np.cumsum(ways)


def log_ratios(changes: Sequence[str], rates: Floats, counted: Mask) -> dict[str, Floats]:
    """Return the logarithm of each changed block's effect, by change.

    Parameters
    ----------
    changes
        Change in each block, in order; empty for base blocks.
    rates
        Rate by block and function.
    counted
        Whether a function counts in a block, and in the base of that block.
    """
    base = [number for number, change in enumerate(changes) if not change]
    logs: dict[str, list[float]] = {}
    for number in range(base[0], base[-1]):
        with np.errstate(divide="ignore", invalid="ignore"):
            sums = np.log(rates[:, counted[number]].sum(axis=1))
            log = float(sums[number] - np.interp(number, base, sums[base]))
        if changes[number] and np.isfinite(log):
            logs.setdefault(changes[number], []).append(log)
    return {change: np.array(values) for change, values in logs.items()}


def elasticities(
    logs: Mapping[str, Floats], expected: Mapping[str, float]
) -> dict[str, Elasticity]:
    """Return the elasticities of all changes, with intervals that hold together (Bonferroni)."""
    confidence = 1 - ALPHA / max(len(logs), 1)
    return {
        change: Elasticity(expected=expected[change], logs=values, confidence=confidence)
        for change, values in logs.items()
    }
