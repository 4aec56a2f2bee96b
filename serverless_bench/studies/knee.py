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

import numpy as np

from serverless_bench.rundir.tables import Floats
from serverless_bench.statistics.ratio import paired_ratio
from serverless_bench.statistics.scaling import Usl
from serverless_bench.statistics.verdict import ALPHA

Value = str | int | float | bool
"""A place on an axis."""
WITHIN: Final = 0.05
"""The knee is the first value that is this close to the best."""
_LIMIT: Final = -log(1 - WITHIN)
_LAW_VALUES: Final = 4
"""The law has three parameters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Knee:
    """The smallest value within ``WITHIN`` of the best, among those that were measured."""

    at: Value
    low: Value
    high: Value
    """Between these are all values that the runs do not exclude at 5 %."""
    rates: tuple[tuple[Value, float], ...]
    """Each value, and the median with it; more is better."""

    def law(self) -> Usl | None:
        """Return the universal scalability law through the medians; None of fewer than four."""
        numbers, rates = np.array([(float(at), rate) for at, rate in self.rates]).T
        if len(numbers) < _LAW_VALUES or numbers.min() <= 0:
            return None
        return Usl.fit(numbers, rates)


@dataclass(frozen=True, slots=True)
class KneeTest:
    """Values in rising order, and how each compares with each."""

    values: tuple[Value, ...]
    medians: tuple[float, ...]
    """More is better."""
    above: Floats
    """Of each place and each other, the p of "the second is not more than ``WITHIN`` better"."""
    below: Floats
    """The p of "it is"."""

    def p_not(self, place: int) -> float:
        """Return the p of "the knee is here": small if it is elsewhere."""
        # Either another value is more than ``WITHIN`` better, or a smaller one is close to
        # all others; each of these may be it by chance, so p is multiplied by their number.
        found = [float(self.above[place].min()), *(self._p_close(n) for n in range(place))]
        return min(1.0, (len(self.values) - 1 + place) * min(found))

    def p_is(self, place: int) -> float:
        """Return the p of "the knee is elsewhere": small if it is here."""
        # The p of "a smaller one is close to the best".
        others = len(self.values) - 1
        close = (min(1.0, others * float(p)) for p in self.above[:place].min(axis=1))
        return max([self._p_close(place), *close])

    def _p_close(self, place: int) -> float:
        """Return the p of "something is more than ``WITHIN`` better than this"."""
        return float(self.below[place].max())

    def knee(self) -> Knee:
        """Return the knee of the medians, and what the runs leave of the others."""
        best = max(self.medians)
        first = next(n for n, at in enumerate(self.medians) if at >= (1 - WITHIN) * best)
        left = [n for n in range(len(self.values)) if n == first or self.p_not(n) > ALPHA]
        return Knee(
            at=self.values[first],
            low=self.values[left[0]],
            high=self.values[left[-1]],
            rates=tuple(zip(self.values, self.medians, strict=True)),
        )


def knee_test(
    runs: Sequence[tuple[Value, Mapping[int, float]]], *, more_is_better: bool = True
) -> KneeTest | None:
    """Return what the runs of a line say of its knee.

    Parameters
    ----------
    runs
        Each value, in rising order, and the metric of each run with it, by round.
    more_is_better
        Whether the best is the largest.

    Returns
    -------
    KneeTest or None
        None if there are fewer than two values, or two of them share no round.
    """
    if len(runs) < 2 or not all(rates and min(rates.values()) > 0 for _, rates in runs):
        return None
    rates = [{n: v if more_is_better else 1 / v for n, v in by.items()} for _, by in runs]
    gains = [paired_ratio(one, other) for one in rates for other in rates]
    known = [gain for gain in gains if gain is not None]
    if len(known) < len(gains):
        return None
    shape = len(rates), len(rates)
    return KneeTest(
        values=tuple(value for value, _ in runs),
        medians=tuple(median(by.values()) for by in rates),
        above=np.reshape([gain.p_above(_LIMIT) for gain in known], shape),
        below=np.reshape([gain.p_below(_LIMIT) for gain in known], shape),
    )


def p_expected(test: KneeTest, expect: Value) -> tuple[float, float]:
    """Return the p against a knee at a value, and the p against its being elsewhere."""
    texts = [str(value) for value in test.values]
    if str(expect) in texts:
        place = texts.index(str(expect))
        return test.p_not(place), test.p_is(place)
    # What was not measured can be excluded, but not be met: a knee between two values
    # makes the larger one the first that is close to the best, one beyond them the last.
    last = len(test.values) - 1
    place = next((n for n, value in enumerate(test.values) if float(value) > float(expect)), last)
    return test.p_not(place), 1.0


def p_across(tests: Sequence[KneeTest]) -> tuple[float, float]:
    """Return the p of "all lines have one knee", and of "they have not"."""
    if len(tests) < 2:
        return 1.0, 1.0
    places = [{str(value): place for place, value in enumerate(one.values)} for one in tests]
    against, for_it = [], []
    for value in dict.fromkeys(text for by_text in places for text in by_text):
        here = [(one, by_text.get(value)) for one, by_text in zip(tests, places, strict=True)]
        p_not = min(0.0 if place is None else one.p_not(place) for one, place in here)
        against.append(min(1.0, len(tests) * p_not))
        for_it.append(max(1.0 if place is None else one.p_is(place) for one, place in here))
    return max(against), min(1.0, len(for_it) * min(for_it))
