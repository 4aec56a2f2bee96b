"""Where more brings nothing more: the knee, and how sure that is. Pure.

A value is the knee if it is close to the best and no smaller value is. Both parts are
claims about ratios within rounds, so that a knee has a p of its own: no bootstrap of five
runs, whose intervals are too short by a third.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from statistics import median
from typing import Final

from serverless_bench.analysis.compare import ALPHA
from serverless_bench.experiments.contrasts import contrast
from serverless_bench.experiments.schema import Value

WITHIN: Final = 0.05
"""The knee is the first value that is this close to the best."""
_LIMIT: Final = -log(1 - WITHIN)
_NONE: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Knee:
    """The smallest value within ``WITHIN`` of the best, among those that were measured."""

    at: Value
    low: Value
    high: Value
    """Between these are all values that the runs do not exclude at 5 %."""

    @property
    def sure(self) -> bool:
        """Whether the interval is one value."""
        return str(self.low) == str(self.high)


@dataclass(frozen=True, slots=True)
class Line:
    """Cells in rising order of their values, and how each compares with each."""

    values: tuple[Value, ...]
    medians: tuple[float, ...]
    """More is better."""
    above: Mapping[tuple[int, int], float]
    """Of each pair of places, the p of "the second is not more than ``WITHIN`` better"."""
    below: Mapping[tuple[int, int], float]
    """The p of "it is"."""

    def p_not(self, place: int) -> float:
        """Return the p of "the knee is here": small if it is elsewhere.

        Either another value is more than ``WITHIN`` better, or a smaller one is close to
        all others; each of these may be it by chance, so p is multiplied by their number.
        """
        others = [n for n in range(len(self.values)) if n != place]
        better = [self.above[place, n] for n in others]
        earlier = [self._p_close(n) for n in range(place)]
        found = [*better, *earlier]
        return min(1.0, len(found) * min(found, default=_NONE))

    def p_is(self, place: int) -> float:
        """Return the p of "the knee is elsewhere": small if it is here."""
        far = [self._p_far(n) for n in range(place)]
        return max([self._p_close(place), *far])

    def _p_close(self, place: int) -> float:
        """Return the p of "something is more than ``WITHIN`` better than this"."""
        others = [n for n in range(len(self.values)) if n != place]
        return max((self.below[place, n] for n in others), default=_NONE)

    def _p_far(self, place: int) -> float:
        """Return the p of "this is close to the best"."""
        others = [n for n in range(len(self.values)) if n != place]
        found = [self.above[place, n] for n in others]
        return min(1.0, len(found) * min(found, default=_NONE))

    def knee(self) -> Knee:
        """Return the knee of the medians, and what the runs leave of the others."""
        best = max(self.medians)
        first = next(n for n, at in enumerate(self.medians) if at >= (1 - WITHIN) * best)
        left = [n for n in range(len(self.values)) if n == first or self.p_not(n) > ALPHA]
        return Knee(at=self.values[first], low=self.values[left[0]], high=self.values[left[-1]])


def line_of(
    runs: Sequence[tuple[Value, Mapping[int, float]]], *, more_is_better: bool = True
) -> Line | None:
    """Return the line of some cells.

    Parameters
    ----------
    runs
        Each value, in rising order, and the metric of each run with it, by round.
    more_is_better
        Whether the best is the largest.

    Returns
    -------
    Line or None
        None if there are fewer than two values, or two of them share no round.
    """
    if len(runs) < 2 or not all(rates and min(rates.values()) > 0 for _, rates in runs):
        return None
    sides = [
        {n: rate if more_is_better else 1 / rate for n, rate in rates.items()} for _, rates in runs
    ]
    gains = {}
    for a, one in enumerate(sides):
        for b, other in enumerate(sides):
            found = None if a == b else contrast(one, other)
            if found is not None:
                gains[a, b] = found
    if len(gains) < len(sides) * (len(sides) - 1):
        return None
    return Line(
        values=tuple(value for value, _ in runs),
        medians=tuple(median(side.values()) for side in sides),
        above={pair: gain.p_above(_LIMIT) for pair, gain in gains.items()},
        below={pair: gain.p_below(_LIMIT) for pair, gain in gains.items()},
    )
