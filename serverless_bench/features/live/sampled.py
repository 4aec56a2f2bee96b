"""Counters of a random sample of functions, as an estimate for all of them. Pure.

The indexes of the sample are drawn without replacement from those of the job, so a sum over the
sample, times the ratio of the numbers, is an unbiased estimate of the sum over all functions:
those that have not started count as zero in both. The interval follows from the variance between
the functions of the sample (Cochran, "Sampling Techniques", 1977, sections 2.6 and 2.8).
"""

import math
from bisect import bisect_right
from collections.abc import Sequence
from operator import sub
from statistics import stdev
from threading import Lock
from typing import Final

from serverless_bench.base.clock import monotonic_ns
from serverless_bench.base.units import NS_PER_S, format_count
from serverless_bench.features.compare.distributions import student_quantile
from serverless_bench.features.live.board import BoardTotals, OwnBoard
from serverless_bench.features.live.layout import (
    FAILED,
    MEASURED,
    MOVED,
    OPERATIONS,
    SLOT_WORDS,
)
from serverless_bench.worker.board import Board

_CONFIDENCE: Final = 0.95
_WINDOW_NS: Final = 5 * NS_PER_S
_LEAST: Final = 5
"""Least number of functions for an interval."""
Counters = Sequence[float]
"""The words of a slot of a live board, interpolated ones among them."""


class SampledBoard(Board):
    """Estimates the totals of all functions from objects that some of them write.

    Totals are those of ``delay_s`` ago, interpolated between two objects of each function, so that
    the view is steady although objects are rare.

    Parameters
    ----------
    functions
        Number of all functions.
    indexes
        The functions of the sample.
    delay_s
        Age of the totals: at least the longest time between two objects.
    """

    def __init__(self, functions: int, indexes: Sequence[int], delay_s: float) -> None:
        super().__init__(bytearray(self.size_of(0)))
        self.functions = functions
        self.sampled = len(indexes)
        self._delay_ns = round(delay_s * NS_PER_S)
        self._seen: dict[int, tuple[list[int], list[Counters]]] = {i: ([], []) for i in indexes}
        self._lock = Lock()
        self._nothing: Counters = (0,) * SLOT_WORDS

    def add(self, index: int, now_ns: int, words: Counters, begin_ns: int) -> None:
        """Add the counters of a function, which only grow.

        Parameters
        ----------
        index
            The function.
        now_ns, begin_ns
            Monotonic instants at which it had these counters, and at which it began.
        words
            The counters.
        """
        with self._lock:
            instants, counters = self._seen[index]
            if not instants:
                instants.append(begin_ns)
                counters.append(self._nothing)
            if now_ns > instants[-1]:
                instants.append(now_ns)
                counters.append(words)
            # The oldest instant that is looked at lies between these and the next.
            oldest_ns = monotonic_ns() - self._delay_ns - _WINDOW_NS
            old = max(0, bisect_right(instants, oldest_ns) - 1)
            del instants[:old], counters[:old]

    def totals(self) -> BoardTotals | None:
        """Return the estimate; None as long as no function has written an object."""
        now_ns = monotonic_ns() - self._delay_ns
        with self._lock:
            if not any(instants for instants, _ in self._seen.values()):
                return None
            ratio = self.functions / self.sampled
            sums = map(sum, zip(*(self._at(i, now_ns) for i in self._seen), strict=True))
            return BoardTotals(tuple(round(ratio * count) for count in sums))

    def remark(self) -> str:
        """Return the precision of the bytes, or else of the operations, and the sizes."""
        now_ns = monotonic_ns() - self._delay_ns
        with self._lock:
            grown = [
                [*map(sub, self._at(i, now_ns), self._at(i, now_ns - _WINDOW_NS))]
                for i in self._seen
            ]
        moved, done = ([sum(words[part]) for words in grown] for part in (MOVED, MEASURED))
        # A function that draws from its operations estimates the bytes, but not their number.
        busiest = max(sum(words[OPERATIONS:FAILED]) for words in grown)
        drawn = any(moved) and busiest * NS_PER_S > OwnBoard.most * _WINDOW_NS
        share = self._half_width(moved if any(moved) else done, drawn=drawn)
        precision = "" if share is None else f"± {100 * share:.2g} %, "
        return f"{precision}{self.sampled:,} of {format_count(self.functions, 'function')} sampled"

    def _half_width(self, counts: Sequence[float], *, drawn: bool) -> float | None:
        """Return half the width of the interval, relative to the sum; None if it is unknown."""
        number, total = len(counts), sum(counts)
        # The correction for a finite number of functions leaves out what they draw themselves.
        correction = 1 if drawn else 1 - number / self.functions
        if not correction:
            return 0.0
        if number < _LEAST or not total:
            return None
        error = stdev(counts) / math.sqrt(number) * math.sqrt(correction)
        reach = student_quantile(number - 1, 0.5 + _CONFIDENCE / 2)
        return reach * error / (total / number)

    def _at(self, index: int, now_ns: int) -> Counters:
        """Return the counters of a function at an instant, between those of two objects."""
        instants, counters = self._seen[index]
        after = bisect_right(instants, now_ns)
        if not after:
            return self._nothing
        if after == len(instants):
            return counters[-1]
        share = (now_ns - instants[after - 1]) / (instants[after] - instants[after - 1])
        return [
            # Rounded here, the small counts of functions in step would all err the same way.
            first + share * (last - first)
            for first, last in zip(counters[after - 1], counters[after], strict=True)
        ]
