"""Choose the next level to test, and decide when the limit is known precisely enough. Pure.

First, levels double until a level breaks the objective. Then follow rounds of four levels around
the estimated limit, in random order, using the results of all blocks. The levels form a geometric
ladder, so that each level is tested in multiple rounds: no verdict depends on a single block,
and all levels are affected equally if the store changes over time.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil, exp, floor, log
from typing import Final

import numpy as np

from serverless_bench.features.limit.crossing import Crossing, Trial, crossing, holds_together

CONFIDENCE: Final = 0.95
_TAIL: Final = (1 - CONFIDENCE) / 2
_INNER: Final = (0.3, 0.7)
"""Quantiles of the limit tested in a round, in addition to the bounds of its interval."""
_STEP: Final = 0.7
"""Ratio between levels of the ladder, as a share of the precision."""
MIN_ROUNDS: Final = 3
_BROKEN: Final = 10.0
"""Ratio of bad to allowed operations that ends the ramp; see also ``_MOST_BROKEN``."""
_MOST_BROKEN: Final = 0.2


@dataclass(slots=True, kw_only=True)
class Search:
    """Searches for the limit among integers.

    Parameters
    ----------
    allowed
        Allowed share of bad operations for each part of the objective, by name.
    lowest, highest
        Range of levels.
    precision
        Half-width of the interval relative to the limit at which the search ends.
    seed
        Seed of the order within a round.
    """

    allowed: dict[str, float]
    lowest: int
    highest: int
    precision: float
    seed: int = 0
    trials: dict[str, list[Trial]] = field(default_factory=dict)
    found: Crossing | None = None
    """Estimate of the limit after the last complete round."""
    rounds: int = 0
    """Number of rounds started."""
    _next: list[int] = field(default_factory=list)
    _ramping: bool = True
    _rng: np.random.Generator = field(init=False)
    _phase: float = field(init=False)
    """Offset of the ladder in steps, so that different seeds test different levels."""

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng(self.seed)
        self._phase = float(self._rng.random())
        self.trials = {name: [] for name in self.allowed}
        self._next = [self.lowest]

    def next_level(self) -> int | None:
        """Return the level of the next block; None at the end of the search."""
        if not self._next:
            self.conclude()
            if self.rounds >= MIN_ROUNDS and self.reached and self._is_shown:
                return None
            self.rounds += 1
            self._next = self._round()
        return self._next[0]

    def add(self, level: int, bad: dict[str, int], due: int) -> None:
        """Add the result of a block: bad operations by part, and the number of operations due."""
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
        """Return the estimate of the limit from all blocks until now."""
        parts = [(self.allowed[name], trials) for name, trials in self.trials.items()]
        self.found = crossing(parts)
        return self.found

    @property
    def interval(self) -> tuple[float, float]:
        """Interval of the limit, with a probability of at least ``CONFIDENCE``.

        Its bounds are tested levels if possible, because there is no data between two levels.
        """
        low, high = self._likely()
        levels = {trial.level for trials in self.trials.values() for trial in trials}
        return (
            max((level for level in levels if level <= low), default=low),
            min((level for level in levels if level >= high), default=high),
        )

    def _likely(self) -> tuple[float, float]:
        estimate = self.found or self.conclude()
        return estimate.quantile(_TAIL), estimate.quantile(1 - _TAIL)

    @property
    def reached(self) -> str | None:
        """Reason to stop: precision, lowest or highest; None to continue."""
        estimate = self.found or self.conclude()
        if estimate.above(self.lowest) <= _TAIL:
            return "lowest"
        if self._likely()[0] > self.highest:
            return "highest"
        low, high = self.interval
        # Levels are integers, so consecutive levels cannot be narrowed further.
        width = 0.0 if high - low <= 1 else high - low
        return "precision" if width <= 2 * self.precision * estimate.quantile(0.5) else None

    @property
    def _is_shown(self) -> bool:
        """Whether the end of the search is; a level may only seem to hold, as stalls are rare."""
        return self.reached == "lowest" or self.together(round(self.interval[0])) >= 1 - _TAIL

    def together(self, level: int) -> float:
        """Return the probability that the blocks at or below a level hold the objective."""
        parts = ((self.allowed[name], trials) for name, trials in self.trials.items())
        return min(holds_together(allowed, trials, level) for allowed, trials in parts)

    def _round(self) -> list[int]:
        estimate = self.found or self.conclude()
        if self.rounds > MIN_ROUNDS and self.reached:
            return [max(self.lowest, min(round(self.interval[0]), self.highest))] * 4
        # The outer levels are candidates for the bounds of the interval.
        low, high = self._likely()
        inner = [self._rung(estimate.quantile(share), round) for share in _INNER]
        wanted = [self._rung(low, floor), *inner, self._rung(high, ceil)]
        return [int(level) for level in self._rng.permutation(wanted)]

    def _rung(self, level: float, rounded: Callable[[float], int]) -> int:
        """Return the level of the ladder next to ``level``, on the side given by ``rounded``."""
        step = log(1 + self.precision * _STEP)
        number = rounded(log(level) / step - self._phase)
        rung = rounded(exp((number + self._phase) * step))
        # Limit the level to twice the largest tested level instead of extrapolating further.
        tried = max(trial.level for trials in self.trials.values() for trial in trials)
        return min(max(rung, self.lowest), self.highest, 2 * tried)
