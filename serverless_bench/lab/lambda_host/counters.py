"""What a host has done, and how much may run at once."""

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any, Final

from serverless_bench.token_bucket import TokenBucket


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


RESERVED: Final = "ReservedFunctionConcurrentInvocationLimitExceeded"
ACCOUNT: Final = "ConcurrentInvocationLimitExceeded"
RATE: Final = "CallerRateLimitExceeded"
SCALING: Final = "FunctionInvocationRateLimitExceeded"
"""AWS Lambda API reference, TooManyRequestsException, Reason."""


class ConcurrencyCounters:
    """Counts what runs against the account's limit and the functions' own.

    What is reserved for one function, the others cannot have (AWS Lambda developer guide,
    "Configuring reserved concurrency").

    Parameters
    ----------
    account
        Invocations at once.
    launch_per_s, launch_burst
        How fast the concurrency of each function may grow (AWS Lambda developer guide, "Lambda
        scaling behavior"); None for as fast as the machine can.
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
        """The most that a function ran at once: so many environments it has."""

    def reason(self, name: str) -> str:
        """Return which wall function ``name`` has before it."""
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
        """Take a place; ask ``refusal`` first."""
        self._running[name] += 1
        if self._running[name] > self._most[name]:
            self._most[name] += 1
            self._bucket(name, now_ns).take(now_ns)

    def _bucket(self, name: str, now_ns: int) -> TokenBucket:
        if name not in self._launches:
            self._launches[name] = TokenBucket(*self._launch, now_ns)
        return self._launches[name]

    def leave(self, name: str) -> None:
        """Give it back."""
        self._running[name] -= 1
