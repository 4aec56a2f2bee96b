"""How a loopback store behaves, and what all of its connections share."""

import resource
import ssl
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import count
from pathlib import Path
from typing import Any, Final, Literal

from serverless_bench.clock import utc_stamp, wall_ns
from serverless_bench.errors import UsageError
from serverless_bench.lab.loopback.faults import FaultKind, FaultLog, FaultPlan
from serverless_bench.lab.loopback.objects import ObjectTable
from serverless_bench.lab.loopback.s3 import http_date
from serverless_bench.lab.loopback.sessions import SessionTable
from serverless_bench.lab.loopback.shaping import Shape, Shaper
from serverless_bench.lab.loopback.witness import Witness
from serverless_bench.process import peak_rss_bytes
from serverless_bench.units import KIB, NS_PER_S

BLOCK: Final = 256 * KIB
"""What is moved at a time; as much of the keystream stays in a core's cache."""
SHAPED_BLOCK: Final = 64 * KIB
"""The same, where bytes are to be slow."""


class CheckMode(StrEnum):
    """What happens to the bytes of an upload."""

    FULL = "full"
    """All are compared with the keystream of their key."""
    NONE = "none"
    """They are read and forgotten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopbackSettings:
    """How a loopback store behaves; by default as a store without faults or limits."""

    host: str = "127.0.0.1"
    port: int = 0
    """0 takes a free one."""
    tls: Path | None = None
    """Certificate and key in one PEM file; None speaks plain HTTP."""
    check: CheckMode = CheckMode.FULL
    strict: bool = False
    """Whether only keys exist that were written to this server."""
    seed: int = 0
    """Decides which request fails, how, and how long each one waits."""
    rates: Mapping[FaultKind, float] = field(default_factory=dict)
    """Share of the requests that each fault may hit, 0 to 1."""
    flip_bits: int = 3
    """Bits in different bytes that ``FaultKind.FLIP`` turns over."""
    log: Path | None = None
    """Where injected faults are written, one JSON line each."""
    witness: Path | None = None
    """Where every request is written, one JSON line each."""
    shape: Shape = field(default_factory=Shape)
    express_s: float | None = None
    """How long sessions of directory buckets last; None treats these like other buckets."""
    racy_conditions: bool = False
    """Whether a conditional write compares, waits a millisecond, and then writes."""
    clock_skew_s: float = 0.0
    """Added to the time of day in every answer."""

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
"""Bodies of objects alone count as bytes; a limited request met a limit per prefix."""


class Counters:
    """Counters that threads share."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers: Counter[str] = Counter()
        self._kinds = {"requests": Counter[str](), "faults": Counter[str]()}

    def count(self, kind: Literal["requests", "faults"], name: str) -> None:
        """Count one request (get, put, list_objects, ...), or one injected fault."""
        with self._lock:
            self._kinds[kind][name] += 1

    def add(self, **numbers: int) -> None:
        """Add to counters by name."""
        with self._lock:
            self._numbers.update(numbers)

    def to_json(self) -> dict[str, Any]:
        """Return everything as a JSON-able value."""
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
    """One store: its objects, its plans and its counters, shared by all connections.

    Parameters
    ----------
    settings
        How it behaves.

    Raises
    ------
    UsageError
        If a file that it names cannot be used.
    """

    def __init__(self, settings: LoopbackSettings) -> None:
        self.settings = settings
        self.tls = _tls_context(settings.tls)
        self.verifies = settings.check is CheckMode.FULL
        self.objects = ObjectTable(strict=settings.strict)
        self.fault_plan = FaultPlan(settings.seed, settings.rates)
        self.fault_log = FaultLog(settings.log)
        self.sessions = SessionTable(settings.express_s)
        self.witness = Witness(settings.witness)
        self.shaper = Shaper(settings.shape)
        self.counters = Counters()
        self.request_numbers = count(1)
        self.connection_numbers = count(1)
        self.block_bytes = SHAPED_BLOCK if settings.shape.slows_bytes else BLOCK
        self.start_date = http_date(wall_ns() / NS_PER_S)
        self.start_stamp = utc_stamp(separators=True)

    def statistics(self) -> dict[str, Any]:
        """Return what happened so far."""
        return {**self.counters.to_json(), "objects": self.objects.count()}

    def close(self) -> None:
        """Close the files."""
        self.fault_log.close()
        self.witness.close()


def _tls_context(certificate: Path | None) -> ssl.SSLContext | None:
    if certificate is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate)
    except OSError as exc:
        raise UsageError(
            f"cannot use --tls {certificate}: {exc.strerror or exc}",
            hint="one PEM file with a certificate and its key",
        ) from exc
    return context
