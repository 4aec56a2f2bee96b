"""What a host has done, to be compared with what a driver reports."""

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True, kw_only=True)
class HostCounters:
    """Numbers of Invoke requests, of deliveries and of environments."""

    invokes: int = 0
    """Invoke requests of any kind."""
    accepted: int = 0
    """Of those, answered with a 2xx or cut after being taken."""
    events: int = 0
    """Of those, asynchronous ones."""
    throttled: int = 0
    rejected: int = 0
    """Answered with another 4xx."""
    cut: int = 0
    duplicated: int = 0
    late: int = 0
    dropped: int = 0
    killed: int = 0
    expired: int = 0
    """Events that grew too old in the queue."""
    retried: int = 0
    """Further deliveries of events that failed."""
    delivered: int = 0
    """Deliveries to a function."""
    succeeded: int = 0
    failed: int = 0
    """Deliveries that ended with an error of any kind."""
    timeouts: int = 0
    exits: int = 0
    """Deliveries during which the process ended by itself."""
    cold_starts: int = 0
    running: int = 0
    """Deliveries at this moment."""
    peak_running: int = 0
    waited: int = 0
    """Events that could not be delivered at once: for concurrency, or for an environment."""
    functions: Counter[str] = field(default_factory=Counter)
    """Asynchronous ones that were accepted, by function."""
    first_accepted_ns: int | None = None
    last_accepted_ns: int | None = None
    alive: int = 0
    """Environments at this moment."""
    peak_alive: int = 0
    ready: int = 0
    """Environments that have come to their first question for an event, ever."""
    init_ms: deque[float] = field(default_factory=lambda: deque(maxlen=10_000))
    """From the order for an environment to its first question; the last ones."""

    def count_accepted(self, now_ns: int) -> None:
        """Count an Invoke request that is taken."""
        self.accepted += 1
        self.last_accepted_ns = now_ns
        if self.first_accepted_ns is None:
            self.first_accepted_ns = now_ns

    def to_json(self) -> dict[str, Any]:
        """Return all of it; durations as median and largest."""
        durations: list[float | None] = [*sorted(self.init_ms)] or [None]
        return {
            **{name: getattr(self, name) for name in self.__slots__ if name != "init_ms"},
            "init_ms_median": durations[len(durations) // 2],
            "init_ms_max": durations[-1],
        }
