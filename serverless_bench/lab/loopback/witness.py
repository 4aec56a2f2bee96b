"""What the store saw, request by request, in a file that only grows.

One JSON line each: what the file is, what time it is, a name that comes again and again,
or a request. docs/witness.md describes them, ``check`` holds a run against them.
"""

import json
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TextIO

from serverless_bench.clock import monotonic_ns, wall_ns
from serverless_bench.errors import UsageError
from serverless_bench.units import NS_PER_S
from serverless_bench.version import __version__

FORMAT: Final = 1
INSTANTS: Final = ("first_in_ns", "last_in_ns", "answered_ns", "first_out_ns", "last_out_ns")
"""Columns that are nanoseconds after ``head_ns``."""
COLUMNS: Final = (
    *("request", "connection", "worker", "operation", "bucket", "front", "tail", "part"),
    *("size", "offset", "length", "in_bytes", "out_bytes"),
    *("head_ns", *INSTANTS),
    *("status", "fault", "keys"),
)
"""Of a request's line, in this order."""
_encode: Final = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode
_TAIL: Final = 48
"""Characters of a key that differ from request to request; what is before them has a name."""
_KEPT: Final = 256
_CLOCK_EVERY_NS: Final = NS_PER_S
_TIMEOUT_S: Final = 2.0


@dataclass(slots=True, kw_only=True)
class StoreRequest:
    """One request as the store sees it; instants are nanoseconds, None for never."""

    request: int
    """The store's number of it, which clients see as the request id, in hexadecimal."""
    connection: int
    worker: str | None
    """Who sent it, if the user agent names it."""
    operation: str | None = None
    """In the words of ``S3Request.operation``; None for what the store does not know."""
    bucket: str
    key: str
    """Of the object; the prefix of a listing."""
    part: int | None
    size: int | None = None
    """Of the object that was requested."""
    offset: int | None = None
    """In the object, of the first byte that was requested, or that came."""
    length: int | None = None
    """Bytes of the object that were requested."""
    in_bytes: int = 0
    out_bytes: int = 0
    """Bytes of the object that came and went."""
    head_ns: int
    """When its first line was there."""
    first_in_ns: int | None = None
    last_in_ns: int | None = None
    """When the store had its first byte, and all that came."""
    answered_ns: int | None = None
    """When the head of the response was about to leave; so are the next two."""
    first_out_ns: int | None = None
    last_out_ns: int | None = None
    status: int | None = None
    """None if there was no response."""
    fault: str | None = None
    keys: Sequence[str] = ()
    """What was deleted, of many."""

    @property
    def ok(self) -> bool:
        """Whether the store did what was requested, as far as it can tell."""
        return self.status is not None and self.status < 300

    @property
    def sent_range(self) -> tuple[int, int]:
        """Which bytes of the object went out: from the first to before the last."""
        begin = self.offset or 0
        return begin, begin + self.out_bytes

    @property
    def request_id(self) -> str:
        """What clients know it by."""
        return f"{self.request:016X}"

    def received(self, count: int) -> None:
        """Note that bytes of the object came just now."""
        if not count:
            return
        self.last_in_ns = monotonic_ns()
        if self.first_in_ns is None:
            self.first_in_ns = self.last_in_ns
        self.in_bytes += count

    def sending(self) -> None:
        """Note that bytes of the object are about to leave."""
        self.last_out_ns = monotonic_ns()
        if self.first_out_ns is None:
            self.first_out_ns = self.last_out_ns


class Witness:
    """Writes what was seen; threads share it.

    Parameters
    ----------
    path
        The file, which grows; None writes nothing.

    Raises
    ------
    UsageError
        If the file cannot be written.
    """

    def __init__(self, path: Path | None) -> None:
        self._lock = threading.Lock()
        self._finished: deque[StoreRequest] = deque()
        """Requests that wait to be written, which is cheaper for many at once."""
        self._open: set[int] = set()
        self._settled: threading.Event | None = None
        self._lines: list[str] = []
        self._names: dict[str, int] = {}
        self._origin_ns = monotonic_ns()
        self._clock_ns = self._origin_ns - _CLOCK_EVERY_NS
        self._file: TextIO | None = None
        if path is None:
            return
        try:
            self._file = path.open("a", encoding="ascii")
        except OSError as exc:
            raise UsageError(f"cannot write --witness {path}: {exc.strerror}") from exc
        head = {"witness": FORMAT, "sbench": __version__, "columns": COLUMNS}
        self._lines.append(json.dumps(head))
        self.flush()

    def start(self, witnessed: StoreRequest) -> None:
        """Take note of a request that is under way."""
        if self._file is not None:
            self._open.add(witnessed.request)

    def finish(self, witnessed: StoreRequest) -> None:
        """Take note of a request that is over."""
        if self._file is None:
            return
        # Both are atomic, and in this order nothing is forgotten.
        self._finished.append(witnessed)
        self._open.discard(witnessed.request)
        if len(self._finished) >= _KEPT:
            self.flush()
        # Read once: whoever settles may have had enough meanwhile.
        settled = self._settled
        if settled is not None and not self._open:
            settled.set()

    def flush(self) -> None:
        """Have in the file what was noted so far."""
        with self._lock:
            if self._file is None:
                return
            while self._finished:
                self._lines.append(self._row(self._finished.popleft()))
            if not self._lines:
                return
            now_ns = monotonic_ns()
            if now_ns - self._clock_ns >= _CLOCK_EVERY_NS:
                # The wall clock may be set; these lines say when, within seconds.
                self._clock_ns = now_ns
                self._lines.append(_encode({"clock": [now_ns - self._origin_ns, wall_ns()]}))
            self._file.write("\n".join(self._lines) + "\n")
            self._file.flush()
            self._lines.clear()

    def settle(self) -> None:
        """Flush once nothing is under way: a client may have its answer before it is noted.

        It does not wait forever for a request that hangs.
        """
        self._settled = settled = threading.Event()
        if self._open:
            settled.wait(_TIMEOUT_S)
        self._settled = None
        self.flush()

    def close(self) -> None:
        """Write the rest and close the file; what comes later is not seen."""
        self.settle()
        with self._lock:
            if self._file is not None:
                self._file.close()
            self._file = None

    def _row(self, seen: StoreRequest) -> str:
        head_ns = seen.head_ns
        instants = (
            *(seen.first_in_ns, seen.last_in_ns, seen.answered_ns),
            *(seen.first_out_ns, seen.last_out_ns),
        )
        return _encode(
            [
                *(seen.request, seen.connection),
                None if seen.worker is None else self._name(seen.worker),
                seen.operation,
                *(self._name(seen.bucket), self._name(seen.key[:-_TAIL]), seen.key[-_TAIL:]),
                *(seen.part, seen.size, seen.offset, seen.length, seen.in_bytes, seen.out_bytes),
                head_ns - self._origin_ns,
                *(None if instant is None else instant - head_ns for instant in instants),
                *(seen.status, seen.fault, seen.keys or None),
            ]
        )

    def _name(self, text: str) -> int:
        number = self._names.get(text)
        if number is None:
            number = self._names[text] = len(self._names)
            self._lines.append(_encode({"name": [number, text]}))
        return number
