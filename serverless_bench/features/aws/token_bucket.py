"""A token bucket: allows a burst, and a limited rate in the long run."""

import math
import threading

from serverless_bench.base.units import NS_PER_S


class TokenBucket:
    """Holds up to ``burst`` tokens, refilled at a rate; threads may share it.

    Parameters
    ----------
    per_s
        Tokens per second; None refills it immediately.
    burst
        Initial and largest number of tokens.
    now_ns
        The current instant; the bucket never reads a clock.
    """

    def __init__(self, per_s: float | None, burst: float, now_ns: int) -> None:
        self._per_s = per_s
        self._burst = burst
        self._tokens = burst
        self._filled_ns = now_ns
        self._lock = threading.Lock()

    def available(self, now_ns: int) -> int:
        """Return the number of available tokens."""
        with self._lock:
            return int(self._fill(now_ns))

    def take(self, now_ns: int, count: int = 1) -> bool:
        """Take tokens if enough are available; return whether they were."""
        with self._lock:
            if self._fill(now_ns) < count:
                return False
            self._tokens -= count
            return True

    def _fill(self, now_ns: int) -> float:
        earned = math.inf
        if self._per_s is not None:
            earned = max(0, now_ns - self._filled_ns) * self._per_s / NS_PER_S
        self._tokens = min(self._burst, self._tokens + earned)
        self._filled_ns = max(self._filled_ns, now_ns)
        return self._tokens
