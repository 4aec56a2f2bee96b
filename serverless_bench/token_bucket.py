"""A token bucket: so much at once, so much per second in the long run."""

import threading

from serverless_bench.units import NS_PER_S


class TokenBucket:
    """Admits ``burst`` at once and ``per_s`` in the long run; threads may share it.

    Parameters
    ----------
    per_s
        Tokens per second.
    burst
        Tokens that it holds, and has at first.
    now_ns
        The present instant; nothing here reads a clock.
    """

    def __init__(self, per_s: float, burst: float, now_ns: int) -> None:
        self._per_s = per_s
        self._burst = burst
        self._tokens = burst
        self._filled_ns = now_ns
        self._lock = threading.Lock()

    def take(self, now_ns: int) -> bool:
        """Take a token if there is one, and return whether there was."""
        with self._lock:
            earned = max(0, now_ns - self._filled_ns) * self._per_s / NS_PER_S
            self._tokens = min(self._burst, self._tokens + earned)
            self._filled_ns = max(self._filled_ns, now_ns)
            if self._tokens < 1:
                return False
            self._tokens -= 1
            return True
