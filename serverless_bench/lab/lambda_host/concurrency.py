"""How much may run at once."""

from collections import Counter
from typing import Final

from serverless_bench.token_bucket import TokenBucket

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
