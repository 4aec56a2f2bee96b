"""Detect a queue that grows within a block, from the increase of response times. Pure functions.

At a rate that exceeds the capacity of a store by 1 %, the delay of operations grows by 10 ms per
second. In a block of 5 s it only reaches 50 ms, but it continues to grow in a longer run. The
growth is the slope of a line through the medians of batches, which are robust against outliers. It
has to be significant: the lower bound is used, with an error that is increased for autocorrelated
batches.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from serverless_bench.features.compare.distributions import student_quantile
from serverless_bench.rundir.tables import Floats

LASTS_S: Final = 60.0
"""A level holds an objective if it would hold it for this duration."""
_SURE: Final = 0.999
"""One-sided confidence for a block without growth, because a search has dozens of blocks."""
_BATCHES: Final = 16
_LEAST_BATCHES: Final = 8
_OF_BATCH: Final = 4
_MOST_MEMORY: Final = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """Increase of the delay of operations, in seconds per second."""

    per_s: float
    low_per_s: float
    """Lower confidence bound."""

    def breaks(self, p99_s: float) -> bool:
        """Return whether the delay would exceed ``p99_s`` within ``LASTS_S``."""
        return self.low_per_s * LASTS_S > p99_s


def growth_of(due_s: Floats, took_s: Floats) -> Growth | None:
    """Return the growth of delays in an open loop; None if there are too few operations.

    Parameters
    ----------
    due_s
        Scheduled times of the operations, in any order.
    took_s
        Times from schedule to completion.
    """
    batches = min(_BATCHES, len(due_s) // _OF_BATCH)
    if batches < _LEAST_BATCHES:
        return None
    order = np.argsort(due_s, kind="stable")
    at = np.array([part.mean() for part in np.array_split(due_s[order], batches)])
    late = np.array([np.median(part) for part in np.array_split(took_s[order], batches)])
    away = at - at.mean()
    spread = float(away @ away)
    if not spread:
        return None
    slope = float(away @ late) / spread
    rest = late - late.mean() - slope * away
    square = float(rest @ rest)
    memory = float(rest[1:] @ rest[:-1]) / square if square else 0.0
    memory = min(max(memory, 0.0), _MOST_MEMORY)
    error = np.sqrt(square / (batches - 2) / spread * (1 + memory) / (1 - memory))
    low = slope - student_quantile(batches - 2, _SURE) * float(error)
    return Growth(per_s=slope, low_per_s=low)
