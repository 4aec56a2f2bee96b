"""Settings of a loopback store, and the state that all connections share."""

import resource
import ssl
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Final, Literal

from serverless_bench.base.clock import utc_stamp, wall_ns
from serverless_bench.base.errors import UsageError
from serverless_bench.base.process import peak_rss_bytes
from serverless_bench.base.units import KIB, NS_PER_S
from serverless_bench.features.loopback.faults import FaultKind, FaultLog, FaultPlan
from serverless_bench.features.loopback.request_log import RequestLog
from serverless_bench.features.loopback.s3 import http_date
from serverless_bench.features.loopback.sessions import SessionTable
from serverless_bench.features.loopback.shaping import Shape, Shaper

BLOCK: Final = 256 * KIB
"""Bytes transferred at a time: this much of the keystream stays in a core's cache."""
SHAPED_BLOCK: Final = 64 * KIB
"""Bytes transferred at a time if transfers are to be slow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopbackSettings:
    """Behaviour of a loopback store; the default has no faults and no limits."""

    host: str = "127.0.0.1"
    port: int = 0
    """0 picks a free port."""
    tls: Path | None = None
    """Certificate and key in a single PEM file; None speaks plain HTTP."""
    verifies: bool = True
    """Whether all uploaded bytes are compared with the keystream of their key."""
    strict: bool = False
    """Whether only keys written to this server exist."""
    seed: int = 0
    """Seed of the choice of failing requests, of the faults and of the delays."""
    rates: Mapping[FaultKind, float] = field(default_factory=dict)
    """Probability of each fault, 0 to 1."""
    flip_bits: int = 3
    """Number of bits that ``FaultKind.FLIP`` inverts, in different bytes."""
    log: Path | None = None
    """Log of injected faults, in JSON Lines."""
    request_log: Path | None = None
    """Log of all requests, in JSON Lines."""
    shape: Shape = field(default_factory=Shape)
    express_s: float | None = None
    """Lifetime of sessions of directory buckets; None treats these like other buckets."""
    racy_conditions: bool = False
    """Whether a conditional write compares, waits a millisecond, and then writes."""
    clock_skew_s: float = 0.0
    """Seconds added to the time of day in each response."""

    def __post_init__(self) -> None:
        for kind, rate in self.rates.items():
            if not 0 <= rate <= 1:
                raise UsageError(f"--{kind} must be between 0 and 1, got {rate:g}")
        if self.flip_bits < 1:
            raise UsageError(f"--flip-bits must be at least 1, got {self.flip_bits}")


_COUNTERS: Final = (
    "connections",
    "in_bytes",
    "out_bytes",
    "checked_put_bytes",
    "bad_put_bytes",
    "bad_puts",
    "limited",
)
"""Only bodies of objects count as bytes; a limited request exceeded the limit of its prefix."""


class Counters:
    """Counters that threads share."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers: Counter[str] = Counter()
        self._kinds = {"requests": Counter[str](), "faults": Counter[str]()}

    def count(self, kind: Literal["requests", "faults"], name: str) -> None:
        """Count a request (get, put, list_objects, ...), or an injected fault."""
        with self._lock:
            self._kinds[kind][name] += 1

    def add(self, **numbers: int) -> None:
        """Add to counters by name."""
        with self._lock:
            self._numbers.update(numbers)

    def to_json(self) -> dict[str, Any]:
        """Return all counters as a JSON-able value."""
        used = resource.getrusage(resource.RUSAGE_SELF)
        with self._lock:
            return {
                "requests": dict(sorted(self._kinds["requests"].items())),
                **{name: self._numbers[name] for name in _COUNTERS},
                "faults": dict(sorted(self._kinds["faults"].items())),
                "cpu_user_s": used.ru_utime,
                "cpu_sys_s": used.ru_stime,
                "max_rss_bytes": peak_rss_bytes(),
            }


class StoreState:
    """State of a store: objects, plans and counters, shared by all connections.

    Parameters
    ----------
    settings
        Behaviour of the store.

    Raises
    ------
    UsageError
        If a file named in the settings cannot be used.
    """

    def __init__(self, settings: LoopbackSettings) -> None:
        self.settings = settings
        self.tls = _tls_context(settings.tls)
        # The settings are checked without the ciphers.
        from serverless_bench.features.loopback.objects import ObjectTable

        self.objects = ObjectTable(strict=settings.strict)
        self.fault_plan = FaultPlan(settings.seed, settings.rates)
        self.fault_log = FaultLog(settings.log)
        self.sessions = SessionTable(settings.express_s)
        self.request_log = RequestLog(settings.request_log)
        self.shaper = Shaper(settings.shape)
        self.counters = Counters()
        self.request_numbers = count(1)
        self.connection_numbers = count(1)
        self.block_bytes = SHAPED_BLOCK if settings.shape.slows_bytes else BLOCK
        self.start_date = http_date(wall_ns() / NS_PER_S)
        self.start_stamp = utc_stamp(separators=True)

    def statistics(self) -> dict[str, Any]:
        """Return the counters so far and the number of objects."""
        return {**self.counters.to_json(), "objects": self.objects.count()}

    def close(self) -> None:
        """Close the files."""
        self.fault_log.close()
        self.request_log.close()


def _tls_context(certificate: Path | None) -> ssl.SSLContext | None:
    if certificate is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate)
    except OSError as exc:
        raise UsageError(
            f"cannot use --tls {certificate}: {exc.strerror or exc}",
            hint="give one PEM file with a certificate and its key",
        ) from exc
    return context
