"""The store's log of requests, in a file that only grows.

Each line is JSON: the header, a clock reading, a repeated name, or a request. The format is in
audit/README.md; ``check`` compares a run with it.
"""

import json
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from serverless_bench.base.clock import monotonic_ns, wall_offset_ns
from serverless_bench.base.units import NS_PER_S
from serverless_bench.features.loopback.faults import opened_log
from serverless_bench.version import __version__

FORMAT: Final = 1
INSTANTS: Final = ("first_in_ns", "last_in_ns", "answered_ns", "first_out_ns", "last_out_ns")
"""Columns in nanoseconds after ``head_ns``."""
COLUMNS: Final = (
    *("request", "connection", "worker", "operation", "bucket", "front", "tail", "part"),
    *("size", "offset", "length", "in_bytes", "out_bytes"),
    *("head_ns", *INSTANTS),
    *("status", "fault", "keys"),
)
"""Columns of a request's line, in this order."""
_encode: Final = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode
_TAIL: Final = 48
"""Characters of a key that are written in full; the part before them is written as a name."""
_KEPT: Final = 256
_CLOCK_EVERY_NS: Final = NS_PER_S
_TIMEOUT_S: Final = 2.0


@dataclass(slots=True, kw_only=True)
class StoreRequest:
    """A request as the store sees it; instants are in nanoseconds, None if they did not occur."""

    request: int
    """The store's number of the request; clients see it in hexadecimal as the request id."""
    connection: int
    worker: str | None
    """Function that sent the request, if the user agent names it."""
    operation: str | None = None
    """Name from ``S3Request.operation``; None for an operation unknown to the store."""
    bucket: str
    key: str
    """Key of the object, or prefix of a listing."""
    part: int | None
    size: int | None = None
    """Size of the requested object."""
    offset: int | None = None
    """Offset in the object of the first byte that was requested or received."""
    length: int | None = None
    """Bytes of the object that were requested."""
    in_bytes: int = 0
    out_bytes: int = 0
    """Bytes of the object that were received and sent."""
    head_ns: int
    """When the request line was there."""
    first_in_ns: int | None = None
    last_in_ns: int | None = None
    """When the store had the first byte, and the last byte received."""
    answered_ns: int | None = None
    """When the head of the response was about to be sent; the next two are also before sending."""
    first_out_ns: int | None = None
    last_out_ns: int | None = None
    status: int | None = None
    """None if there was no response."""
    fault: str | None = None
    keys: Sequence[str] = ()
    """Keys deleted by a request for many."""

    @property
    def ok(self) -> bool:
        """Whether the store did what was requested, as far as it knows."""
        return self.status is not None and self.status < 300

    @property
    def sent_range(self) -> tuple[int, int]:
        """Half-open range of bytes of the object that was sent."""
        begin = self.offset or 0
        return begin, begin + self.out_bytes

    @property
    def request_id(self) -> str:
        """Request id that clients see."""
        return f"{self.request:016X}"

    def received(self, count: int) -> None:
        """Record that bytes of the object have just been received."""
        if not count:
            return
        self.last_in_ns = monotonic_ns()
        if self.first_in_ns is None:
            self.first_in_ns = self.last_in_ns
        self.in_bytes += count

    def sending(self) -> None:
        """Record that bytes of the object are about to be sent."""
        self.last_out_ns = monotonic_ns()
        if self.first_out_ns is None:
            self.first_out_ns = self.last_out_ns


class RequestLog:
    """Writer of the log, safe to share between threads.

    Parameters
    ----------
    path
        File to append to; None writes nothing.

    Raises
    ------
    UsageError
        If the file cannot be written.
    """

    def __init__(self, path: Path | None) -> None:
        self._lock = threading.Lock()
        self._finished: deque[StoreRequest] = deque()
        """Requests waiting to be written: writing many at once is cheaper."""
        self._open: set[int] = set()
        self._settled: threading.Event | None = None
        self._lines: list[str] = []
        self._names: dict[str, int] = {}
        self._origin_ns = monotonic_ns()
        self._clock_ns = self._origin_ns - _CLOCK_EVERY_NS
        self._file = opened_log("--request-log", path)
        head = {"request_log": FORMAT, "sbench": __version__, "columns": COLUMNS}
        self._lines.append(json.dumps(head))
        self.flush()

    def start(self, logged: StoreRequest) -> None:
        """Record the start of a request."""
        if self._file is not None:
            self._open.add(logged.request)

    def finish(self, logged: StoreRequest) -> None:
        """Record the end of a request."""
        if self._file is None:
            return
        # Both operations are atomic, and in this order no request is lost.
        self._finished.append(logged)
        self._open.discard(logged.request)
        if len(self._finished) >= _KEPT:
            self.flush()
        # Read the attribute only once: ``settle`` may time out and reset it meanwhile.
        settled = self._settled
        if settled is not None and not self._open:
            settled.set()

    def flush(self) -> None:
        """Write all finished requests to the file."""
        with self._lock:
            if self._file is None:
                return
            while self._finished:
                self._lines.append(self._row(self._finished.popleft()))
            if not self._lines:
                return
            now_ns = monotonic_ns()
            if now_ns - self._clock_ns >= _CLOCK_EVERY_NS:
                # The wall clock may be set; these lines show when, to within seconds.
                self._clock_ns = now_ns
                self._lines.append(
                    _encode({"clock": [now_ns - self._origin_ns, now_ns + wall_offset_ns()]})
                )
            self._file.write("\n".join(self._lines) + "\n")
            self._file.flush()
            self._lines.clear()

    def settle(self) -> None:
        """Flush once no request is in progress, as clients may have responses not yet recorded.

        A request that hangs is given up after a timeout.
        """
        self._settled = settled = threading.Event()
        if self._open:
            settled.wait(_TIMEOUT_S)
        self._settled = None
        self.flush()

    def close(self) -> None:
        """Write the remaining requests and close the file; later ones are not recorded."""
        self.settle()
        with self._lock:
            if self._file is not None:
                self._file.close()
            self._file = None

    def _row(self, seen: StoreRequest) -> str:
        head_ns = seen.head_ns
        return _encode(
            [
                *(seen.request, seen.connection),
                None if seen.worker is None else self._name(seen.worker),
                seen.operation,
                *(self._name(seen.bucket), self._name(seen.key[:-_TAIL]), seen.key[-_TAIL:]),
                *(seen.part, seen.size, seen.offset, seen.length, seen.in_bytes, seen.out_bytes),
                head_ns - self._origin_ns,
                *(
                    None if (at := getattr(seen, name)) is None else at - head_ns
                    for name in INSTANTS
                ),
                *(seen.status, seen.fault, seen.keys or None),
            ]
        )

    def _name(self, text: str) -> int:
        number = self._names.get(text)
        if number is None:
            number = self._names[text] = len(self._names)
            self._lines.append(_encode({"name": [number, text]}))
        return number
