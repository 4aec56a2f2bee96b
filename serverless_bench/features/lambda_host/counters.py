"""Counters and limits on concurrency of a host."""

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any, Final

from serverless_bench.features.aws.token_bucket import TokenBucket


@dataclass(slots=True, kw_only=True)
class HostCounters:
    """Numbers of Invoke requests, of deliveries and of environments."""

    invokes: int = 0
    """Invoke requests of any kind."""
    accepted: int = 0
    """Requests with a 2xx response, or cut after acceptance."""
    events: int = 0
    """Accepted asynchronous requests."""
    throttled: int = 0
    rejected: int = 0
    """Requests with a 4xx response other than 429."""
    cut: int = 0
    duplicated: int = 0
    late: int = 0
    dropped: int = 0
    killed: int = 0
    expired: int = 0
    """Events that exceeded the maximum age in the queue."""
    retried: int = 0
    """Additional deliveries of failed events."""
    delivered: int = 0
    """Deliveries to a function."""
    succeeded: int = 0
    failed: int = 0
    """Deliveries that ended with an error of any kind."""
    timeouts: int = 0
    exits: int = 0
    """Deliveries during which the process exited."""
    cold_starts: int = 0
    running: int = 0
    """Present number of deliveries."""
    peak_running: int = 0
    waited: int = 0
    """Events with a delayed delivery, due to concurrency or to a missing environment."""
    functions: Counter[str] = field(default_factory=Counter)
    """Accepted asynchronous requests by function."""
    first_accepted_ns: int | None = None
    last_accepted_ns: int | None = None
    alive: int = 0
    """Present number of environments."""
    peak_alive: int = 0
    ready: int = 0
    """Environments that have ever requested a first event."""
    init_ms: deque[float] = field(default_factory=lambda: deque(maxlen=10_000))
    """Times from the order of an environment to its first request for an event; the latest ones."""

    def count_accepted(self, now_ns: int) -> None:
        """Count an accepted Invoke request."""
        self.accepted += 1
        self.last_accepted_ns = now_ns
        if self.first_accepted_ns is None:
            self.first_accepted_ns = now_ns

    def to_json(self) -> dict[str, Any]:
        """Return all counters; durations as median and maximum."""
        durations: list[float | None] = [*sorted(self.init_ms)] or [None]
        return {
            **{name: getattr(self, name) for name in self.__slots__ if name != "init_ms"},
            "init_ms_median": durations[len(durations) // 2],
            "init_ms_max": durations[-1],
        }


RESERVED: Final = "ReservedFunctionConcurrentInvocationLimitExceeded"
ACCOUNT: Final = "ConcurrentInvocationLimitExceeded"
RATE: Final = "CallerRateLimitExceeded"
SCALING: Final = "FunctionInvocationRateLimitExceeded"
"""AWS Lambda API reference, TooManyRequestsException, Reason."""


class ConcurrencyCounters:
    """Counter of running invocations for the limits of the account and of functions.

    Concurrency reserved for a function is not available to other functions (AWS Lambda developer
    guide, "Configuring reserved concurrency").

    Parameters
    ----------
    account
        Maximum number of concurrent invocations.
    launch_per_s, launch_burst
        Rate and burst at which the concurrency of a function may grow (AWS Lambda developer guide,
        "Lambda scaling behavior"); None for as fast as the machine can.
    """

    def __init__(
        self, account: int, *, launch_per_s: float | None = None, launch_burst: int = 1
    ) -> None:
        self.account = account
        self.reserved: dict[str, int] = {}
        self._running: Counter[str] = Counter()
        self._launch = launch_per_s, launch_burst
        self._launches: dict[str, TokenBucket] = {}
        self._most: Counter[str] = Counter()
        """Maximum concurrency of a function so far, equal to the number of environments."""

    def reason(self, name: str) -> str:
        """Return the limit that applies to function ``name``."""
        return RESERVED if name in self.reserved else ACCOUNT

    def refusal(self, name: str, now_ns: int) -> str:
        """Return why function ``name`` may not run once more; empty if it may."""
        if name in self.reserved:
            free = self.reserved[name] - self._running[name]
        else:
            others = sum(n for f, n in self._running.items() if f not in self.reserved)
            free = self.account - sum(self.reserved.values()) - others
        if free <= 0:
            return self.reason(name)
        grows = self._running[name] >= self._most[name]
        return SCALING if grows and not self._bucket(name, now_ns).available(now_ns) else ""

    def enter(self, name: str, now_ns: int) -> None:
        """Occupy a place; call ``refusal`` first."""
        self._running[name] += 1
        if self._running[name] > self._most[name]:
            self._most[name] += 1
            self._bucket(name, now_ns).take(now_ns)

    def _bucket(self, name: str, now_ns: int) -> TokenBucket:
        if name not in self._launches:
            self._launches[name] = TokenBucket(*self._launch, now_ns)
        return self._launches[name]

    def leave(self, name: str) -> None:
        """Release a place."""
        self._running[name] -= 1
