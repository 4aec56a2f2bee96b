"""Settings of a loopback store, and the state that all connections share.

Directory buckets have sessions, and do not serve all requests: Amazon S3 API reference,
"CreateSession", and user guide, "How is S3 Express One Zone different?" and "Authorizing Zonal
endpoint API operations with CreateSession".
"""

import re
import resource
import secrets
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
from serverless_bench.features.loopback.faults import WIDE, FaultKind, FaultLog, FaultPlan
from serverless_bench.features.loopback.request_log import RequestLog
from serverless_bench.features.loopback.s3 import S3Error, S3Request, http_date
from serverless_bench.features.loopback.shaping import Shape, Shaper
from serverless_bench.job.endpoint import is_directory_bucket

_NO_SESSION: Final = frozenset({"create_bucket", "create_session", "delete_bucket", "head_bucket"})
"""Operations that are signed with the caller's long-term keys."""
_CREDENTIAL: Final = re.compile(r"Credential=([^/,\s]+)/[^/]+/[^/]+/s3express/aws4_request")
_REMEMBERED_NS: Final = 60 * NS_PER_S
"""Time after the end of a session for which it is reported as expired and not as unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Credentials returned by a CreateSession."""

    bucket: str
    access_key: str
    secret_key: str
    token: str
    end_ns: int
    """Expiry on the wall clock."""


class SessionTable:
    """Sessions of a server, safe to share between threads.

    Parameters
    ----------
    lifetime_s
        Lifetime of a session; None for a server without directory buckets.
    """

    def __init__(self, lifetime_s: float | None) -> None:
        self._lifetime_s = lifetime_s
        self._sessions: dict[str, Session] = {}
        self._lock = threading.Lock()

    def governs(self, bucket: str) -> bool:
        """Return whether a bucket is a directory bucket on this server."""
        return self._lifetime_s is not None and is_directory_bucket(bucket)

    def create(self, bucket: str, now_ns: int) -> Session:
        """Return a new session.

        Parameters
        ----------
        bucket
            Empty if the client names the bucket in the host, regardless of the style of its other
            requests. Such a session is good for all directory buckets, as the server ignores hosts.
        now_ns
            Present time on the wall clock.

        Raises
        ------
        S3Error
            If the bucket is not a directory bucket.
        """
        if self._lifetime_s is None or not (is_directory_bucket(bucket) or not bucket):
            raise S3Error(501, "NotImplemented", "this is not a directory bucket")
        session = Session(
            bucket=bucket,
            access_key=f"ASIA{secrets.token_hex(8).upper()}",
            secret_key=secrets.token_hex(20),
            token=secrets.token_hex(64),
            end_ns=now_ns + round(self._lifetime_s * NS_PER_S),
        )
        with self._lock:
            sessions = self._sessions.items()
            self._sessions = {t: s for t, s in sessions if s.end_ns + _REMEMBERED_NS > now_ns}
            self._sessions[session.token] = session
        return session

    def check(self, request: S3Request, operation: str, now_ns: int) -> None:
        """Check that a directory bucket serves a request.

        Raises
        ------
        S3Error
            If the session is missing, expired or for another bucket, or a directory bucket does not
            support the request.
        """
        if not self.governs(request.bucket):
            return
        credential = _CREDENTIAL.search(request.headers.get("authorization", ""))
        if credential is None:
            raise S3Error(403, "AccessDenied", "the signature has to be for the service s3express")
        token = request.headers.get("x-amz-s3session-token")
        if token is not None or operation not in _NO_SESSION:
            self._check_session(request.bucket, token or "", credential[1], now_ns)
        _check_served(request, operation)

    def _check_session(self, bucket: str, token: str, access_key: str, now_ns: int) -> None:
        session = self._sessions.get(token)
        if session is None or session.bucket not in {"", bucket}:
            raise S3Error(403, "AccessDenied", "this bucket has no session with this token")
        if session.end_ns <= now_ns:
            raise S3Error(400, "ExpiredToken", "The provided token has expired.")
        if session.access_key != access_key:
            raise S3Error(
                403, "InvalidAccessKeyId", "the access key does not belong to this session"
            )


def _check_served(request: S3Request, operation: str) -> None:
    query, prefix = request.query, request.query.get("prefix", "")
    if operation == "get_location" or (
        operation == "list_objects" and query.get("list-type") != "2"
    ):
        raise S3Error(501, "NotImplemented", "a directory bucket does not support this")
    if operation not in {"list_objects", "list_uploads"}:
        return
    if prefix and not prefix.endswith("/"):
        raise S3Error(400, "InvalidRequest", "a prefix has to end in a slash in a directory bucket")
    if query.get("start-after"):
        raise S3Error(
            400,
            "InvalidRequest",
            "start-after needs an order of keys, and a directory bucket has none",
        )


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
        wide = {kind: rate for kind, rate in settings.rates.items() if kind in WIDE}
        self.foreign_plan = FaultPlan(settings.seed, wide)
        """Faults of objects that are not part of a benchmark."""
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
