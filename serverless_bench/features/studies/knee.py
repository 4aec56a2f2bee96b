"""The knee of a line, beyond which more brings no further gain, and its uncertainty. Pure.

A value is the knee if it is close to the best and no smaller value is. Both parts are claims
about ratios within rounds, so that each knee has a p. A bootstrap of five runs would
have intervals that are too short by a third.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from statistics import median
from typing import Final

import numpy as np

from serverless_bench.features.compare.ratio import paired_ratio
from serverless_bench.features.compare.verdict import ALPHA
from serverless_bench.features.scale.scaling import Usl
from serverless_bench.rundir.tables import Floats

Value = str | int | float | bool
"""A place on an axis."""
WITHIN: Final = 0.05
"""Relative distance from the best within which a value is close to it."""
_LIMIT: Final = -log(1 - WITHIN)
_LAW_VALUES: Final = 4
"""Minimum number of values for the law, which has three parameters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Knee:
    """The smallest measured value within ``WITHIN`` of the best."""

    at: Value
    low: Value
    high: Value
    """Smallest and largest value that the runs do not exclude at 5 %."""
    rates: tuple[tuple[Value, float], ...]
    """Each value with the median; more is better."""

    def law(self) -> Usl | None:
        """Return the universal scalability law through the medians; None for fewer than four."""
        numbers, rates = np.array([(float(at), rate) for at, rate in self.rates]).T
        enough = len(numbers) >= _LAW_VALUES and numbers.min() > 0
        return Usl.fit(numbers, rates) if enough else None


@dataclass(frozen=True, slots=True)
class KneeTest:
    """Values in rising order, and all pairwise comparisons of them."""

    values: tuple[Value, ...]
    medians: tuple[float, ...]
    """Medians; more is better."""
    above: Floats
    """For each pair of places, the p of "the second is not more than ``WITHIN`` better"."""
    below: Floats
    """The p of "it is"."""

    def p_not(self, place: int) -> float:
        """Return the p of "the knee is here": small if it is elsewhere."""
        # Either another value is more than ``WITHIN`` better, or a smaller value is close to all
        # others. Any of these may occur by chance, so p is multiplied by their number.
        p_values = [float(self.above[place].min()), *(self._p_close(n) for n in range(place))]
        return min(1.0, (len(self.values) - 1 + place) * min(p_values))

    def p_is(self, place: int) -> float:
        """Return the p of "the knee is elsewhere": small if it is here."""
        # The p of "a smaller value is close to the best".
        others = len(self.values) - 1
        close = (min(1.0, others * float(p)) for p in self.above[:place].min(axis=1))
        return max([self._p_close(place), *close])

    def _p_close(self, place: int) -> float:
        """Return the p of "a value is more than ``WITHIN`` better than this"."""
        return float(self.below[place].max())

    def knee(self) -> Knee:
        """Return the knee of the medians, with the values that the runs do not exclude."""
        best = max(self.medians)
        first = next(n for n, at in enumerate(self.medians) if at >= (1 - WITHIN) * best)
        candidates = [n for n in range(len(self.values)) if n == first or self.p_not(n) > ALPHA]
        return Knee(
            at=self.values[first],
            low=self.values[candidates[0]],
            high=self.values[candidates[-1]],
            rates=tuple(zip(self.values, self.medians, strict=True)),
        )


def knee_test(
    runs: Sequence[tuple[Value, Mapping[int, float]]], *, more_is_better: bool = True
) -> KneeTest | None:
    """Return the tests for a knee of a line.

    Parameters
    ----------
    runs
        Each value, in rising order, with the metric of each run by round.
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
    gains = [paired_ratio(base, other) for base in rates for other in rates]
    complete_gains = [gain for gain in gains if gain is not None]
    if len(complete_gains) < len(gains):
        return None
    shape = len(rates), len(rates)
    return KneeTest(
        values=tuple(value for value, _ in runs),
        medians=tuple(median(by.values()) for by in rates),
        above=np.reshape([gain.p_above(_LIMIT) for gain in complete_gains], shape),
        below=np.reshape([gain.p_below(_LIMIT) for gain in complete_gains], shape),
    )


def p_expected(test: KneeTest, expect: Value) -> tuple[float, float]:
    """Return the p against a knee at a value, and the p against a knee elsewhere."""
    texts = [str(value) for value in test.values]
    if str(expect) in texts:
        place = texts.index(str(expect))
        return test.p_not(place), test.p_is(place)
    # A value that was not measured can be excluded, but not confirmed. A knee between two values
    # makes the larger value the first close to the best; a knee beyond all values makes it the
    # last.
    last = len(test.values) - 1
    place = next((n for n, value in enumerate(test.values) if float(value) > float(expect)), last)
    return test.p_not(place), 1.0


def p_across(tests: Sequence[KneeTest]) -> tuple[float, float]:
    """Return the p of "all lines have the same knee", and of "they do not"."""
    if len(tests) < 2:
        return 1.0, 1.0
    places = [{str(value): place for place, value in enumerate(test.values)} for test in tests]
    against, for_it = [], []
    for value in dict.fromkeys(text for by_text in places for text in by_text):
        here = [(test, by_text.get(value)) for test, by_text in zip(tests, places, strict=True)]
        p_not = min(0.0 if place is None else test.p_not(place) for test, place in here)
        against.append(min(1.0, len(tests) * p_not))
        for_it.append(max(1.0 if place is None else test.p_is(place) for test, place in here))
    return max(against), min(1.0, len(for_it) * min(for_it))
