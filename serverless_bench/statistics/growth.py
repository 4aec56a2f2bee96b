"""Whether a queue grows within a block, by how fast operations get slower. Pure.

A store that is asked for 1 % more than it can do makes each second's operations 10 ms later than
those of the second before. A block of 5 s is over when they are 50 ms late; a run that goes on is
not. The rise is the slope of a line through the medians of batches, which outliers do not move,
and has to be there for sure: its lower bound counts, with an error that is stretched where
batches remember the one before.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from serverless_bench.rundir.tables import Floats

LASTS_S: Final = 60.0
"""A level holds an objective if it would for so long."""
_SURE: Final = 0.999
"""Of a block in which nothing grows, one-sided: there are dozens in a search."""
_BATCHES: Final = 16
_LEAST_BATCHES: Final = 8
_OF_BATCH: Final = 4
_MOST_MEMORY: Final = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """How many seconds later operations were, each second."""

    per_s: float
    low_per_s: float
    """What it is above, for sure."""

    def breaks(self, p99_s: float) -> bool:
        """Tell whether operations would be that late before the time is over."""
        return self.low_per_s * LASTS_S > p99_s


def growth_of(due_s: Floats, took_s: Floats) -> Growth | None:
    """Return how the operations of an open loop got slower; None if they are too few to say.

    Parameters
    ----------
    due_s
        When they were due, in any order.
    took_s
        How long after that they were done.
    """
    from scipy.special import stdtrit  # noqa: PLC0415 - an extra, and slow to load

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
    low = slope - float(stdtrit(batches - 2, _SURE)) * float(error)
    return Growth(per_s=slope, low_per_s=low)
