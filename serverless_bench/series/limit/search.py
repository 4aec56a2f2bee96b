"""Which level comes next, and when the limit is known well enough. Pure.

First levels double until one breaks the objective. Then come rounds: four levels around
where the limit is thought to be, in random order, from all blocks so far. Levels lie on a
ladder of ratios, so that each is met again in later rounds, next to the others: no verdict
rests on one block, and a store that changes by the minute does so for all of them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil, exp, floor, log
from typing import Final

import numpy as np

from serverless_bench.statistics.crossing import Crossing, Trial, crossing

CONFIDENCE: Final = 0.95
_TAIL: Final = (1 - CONFIDENCE) / 2
_INNER: Final = (0.3, 0.7)
"""Quantiles of the limit at which a round looks; and at the ends of its interval."""
_STEP: Final = 0.7
"""Between two levels of the ladder, as a share of the precision."""
MIN_ROUNDS: Final = 3
_BROKEN: Final = 10.0
"""The ramp ends at a level with so many times the bad operations that are allowed; or a fifth."""
_MOST_BROKEN: Final = 0.2


@dataclass(slots=True, kw_only=True)
class Search:
    """Looks for the limit among whole numbers.

    Parameters
    ----------
    allowed
        The share of bad operations that each part of the objective allows, by name.
    lowest, highest
        Levels that may be tried.
    precision
        Half the width of the interval over the limit at which the search ends.
    seed
        Of the order within a round.
    """

    allowed: dict[str, float]
    lowest: int
    highest: int
    precision: float
    seed: int = 0
    trials: dict[str, list[Trial]] = field(default_factory=dict)
    found: Crossing | None = None
    """What is known after the last whole round."""
    rounds: int = 0
    """That were begun."""
    _next: list[int] = field(default_factory=list)
    _ramping: bool = True
    _rng: np.random.Generator = field(init=False)
    _phase: float = field(init=False)
    """Where the ladder begins, in rungs: another seed tries other levels."""

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng(self.seed)
        self._phase = float(self._rng.random())
        self.trials = {name: [] for name in self.allowed}
        self._next = [self.lowest]

    def next_level(self) -> int | None:
        """Return the level of the next block; None when the search is through."""
        if not self._next:
            self.conclude()
            if self.rounds >= MIN_ROUNDS and self.reached is not None:
                return None
            self.rounds += 1
            self._next = self._round()
        return self._next[0]

    def add(self, level: int, bad: dict[str, int], due: int) -> None:
        """Take what the block at a level says: bad operations by part, of those due."""
        del self._next[0]
        for name, count in bad.items():
            self.trials[name].append(Trial(level=level, due=due, bad=count))
        if self._ramping:
            self._ramp(level, bad, due)

    def _ramp(self, level: int, bad: dict[str, int], due: int) -> None:
        breaks = any(
            count > min(_BROKEN * self.allowed[name], max(_MOST_BROKEN, self.allowed[name])) * due
            for name, count in bad.items()
        )
        if breaks or level >= self.highest:
            self._ramping = False
        else:
            self._next = [min(2 * level, self.highest)]

    def conclude(self) -> Crossing:
        """Return what all blocks so far say of the limit."""
        parts = [(self.allowed[name], trials) for name, trials in self.trials.items()]
        self.found = crossing(parts)
        return self.found

    @property
    def interval(self) -> tuple[float, float]:
        """Where the limit lies, with a probability of ``CONFIDENCE`` or more.

        Its ends are levels that were tried, where there are such: between two of them nothing
        was seen.
        """
        low, high = self._likely()
        levels = {trial.level for trials in self.trials.values() for trial in trials}
        return (
            max((level for level in levels if level <= low), default=low),
            min((level for level in levels if level >= high), default=high),
        )

    def _likely(self) -> tuple[float, float]:
        found = self.found or self.conclude()
        return found.quantile(_TAIL), found.quantile(1 - _TAIL)

    @property
    def reached(self) -> str | None:
        """Why there is no need to go on: precision, lowest or highest; None if there is."""
        found = self.found or self.conclude()
        if found.above(self.lowest) <= _TAIL:
            return "lowest"
        if self._likely()[0] > self.highest:
            return "highest"
        low, high = self.interval
        # Levels are whole numbers: nothing lies between two of them.
        width = 0.0 if high - low <= 1 else high - low
        return "precision" if width <= 2 * self.precision * found.quantile(0.5) else None

    def _round(self) -> list[int]:
        found = self.found or self.conclude()
        # The outer ones are to become the ends of the interval.
        low, high = self._likely()
        inner = [self._rung(found.quantile(share), round) for share in _INNER]
        wanted = [self._rung(low, floor), *inner, self._rung(high, ceil)]
        return [int(level) for level in self._rng.permutation(wanted)]

    def _rung(self, level: float, rounded: Callable[[float], int]) -> int:
        """Return a level of the ladder near one, on the side to which is ``rounded``."""
        step = log(1 + self.precision * _STEP)
        number = rounded(log(level) / step - self._phase)
        rung = rounded(exp((number + self._phase) * step))
        # A level far above all others would be a guess: it is come to by doubling.
        tried = max(trial.level for trials in self.trials.values() for trial in trials)
        return min(max(rung, self.lowest), self.highest, 2 * tried)
