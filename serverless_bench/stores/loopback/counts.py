"""What one server has done so far."""

import resource
import threading
from collections import Counter
from pathlib import Path
from typing import Any

from serverless_bench.units import KIB


class Counts:
    """Counters that threads share."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers: Counter[str] = Counter()
        self._requests: Counter[str] = Counter()
        self._faults: Counter[str] = Counter()

    def request(self, name: str) -> None:
        """Count one request: get, put, upload_part, list_objects, ..."""
        with self._lock:
            self._requests[name] += 1

    def fault(self, name: str) -> None:
        """Count one injected fault."""
        with self._lock:
            self._faults[name] += 1

    def add(self, **numbers: int) -> None:
        """Add to counters by name."""
        with self._lock:
            self._numbers.update(numbers)

    def to_json(self) -> dict[str, Any]:
        """Return everything as a JSON-able value."""
        used = resource.getrusage(resource.RUSAGE_SELF)
        with self._lock:
            numbers = {name: self._numbers[name] for name in COUNTED}
            return {
                "requests": dict(sorted(self._requests.items())),
                **numbers,
                "faults": dict(sorted(self._faults.items())),
                "cpu_user_s": used.ru_utime,
                "cpu_sys_s": used.ru_stime,
                "max_rss_bytes": _peak_rss_bytes(),
            }


COUNTED = (
    "connections",
    "in_bytes",
    "out_bytes",
    "checked_put_bytes",
    "bad_put_bytes",
    "bad_puts",
    "limited",
)
"""Bodies of objects alone count as bytes; a limited request met a limit per prefix."""


def _peak_rss_bytes() -> int:
    status = Path("/proc/self/status")
    if status.exists():
        # ru_maxrss holds the parent's peak after fork and exec.
        lines = status.read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if "VmHWM" in line) * KIB
    # macOS counts it in bytes (getrusage(2)).
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
