"""How much may run at once, and how often somebody may ask."""

from collections import Counter
from typing import Final

from serverless_bench.clock import monotonic_ns
from serverless_bench.units import NS_PER_S

RESERVED: Final = "ReservedFunctionConcurrentInvocationLimitExceeded"
ACCOUNT: Final = "ConcurrentInvocationLimitExceeded"
RATE: Final = "CallerRateLimitExceeded"
"""AWS Lambda API reference, TooManyRequestsException, Reason."""


class Gate:
    """Counts what runs against the account's limit and the functions' own.

    What is reserved for one function, the others cannot have (AWS Lambda developer guide,
    "Configuring reserved concurrency").

    Parameters
    ----------
    account
        Invocations at once.
    """

    def __init__(self, account: int) -> None:
        self.account = account
        self.reserved: dict[str, int] = {}
        self._running: Counter[str] = Counter()

    def reason(self, name: str) -> str:
        """Return which wall function ``name`` has before it."""
        return RESERVED if name in self.reserved else ACCOUNT

    def refusal(self, name: str) -> str:
        """Return why function ``name`` may not run once more; empty if it may."""
        if name in self.reserved:
            free = self.reserved[name] - self._running[name]
        else:
            others = sum(n for f, n in self._running.items() if f not in self.reserved)
            free = self.account - sum(self.reserved.values()) - others
        return "" if free > 0 else self.reason(name)

    def enter(self, name: str) -> None:
        """Take a place; ask ``refusal`` first."""
        self._running[name] += 1

    def leave(self, name: str) -> None:
        """Give it back."""
        self._running[name] -= 1
        if not self._running[name]:
            del self._running[name]


class Bucket:
    """A token bucket: ``burst`` at once, ``per_s`` in the long run.

    Parameters
    ----------
    per_s
        Tokens per second; None has no limit.
    burst
        Tokens that it holds.
    """

    def __init__(self, per_s: float | None, burst: int) -> None:
        self._per_s = per_s
        self._burst = burst
        self._tokens = float(burst)
        self._then_ns = monotonic_ns()

    def take(self) -> bool:
        """Return whether there was a token."""
        if self._per_s is None:
            return True
        now_ns = monotonic_ns()
        earned = (now_ns - self._then_ns) / NS_PER_S * self._per_s
        self._tokens = min(self._tokens + earned, self._burst)
        self._then_ns = now_ns
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True
