"""How fast a driver sends events to AWS Lambda; without a library, since flags depend on it."""

import math
from typing import Final

MOST_UNDER_WAY: Final = 128
"""Concurrent requests of a driver for events; a process of macOS may have 256 open files."""
_EVENTS_PER_S: Final = 1000


def events_under_way(round_trip_s: float) -> int:
    """Return the number of concurrent requests for 1,000 events per second, if possible."""
    return max(24, min(MOST_UNDER_WAY, math.ceil(_EVENTS_PER_S * round_trip_s)))
