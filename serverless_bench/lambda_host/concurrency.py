"""How much may run at once."""

from collections import Counter
from typing import Final

RESERVED: Final = "ReservedFunctionConcurrentInvocationLimitExceeded"
ACCOUNT: Final = "ConcurrentInvocationLimitExceeded"
RATE: Final = "CallerRateLimitExceeded"
"""AWS Lambda API reference, TooManyRequestsException, Reason."""


class ConcurrencyLimits:
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
