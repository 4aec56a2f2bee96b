"""What the store saw, request by request, in a file that only grows.

One JSON line each: what the file is, what time it is, a name that comes again and again,
or a request. docs/witness.md describes them, ``check`` holds a run against them.
"""

import json
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from json.encoder import encode_basestring_ascii as quoted
from pathlib import Path
from typing import Final, TextIO

from serverless_bench.clock import monotonic_ns, wall_ns
from serverless_bench.errors import UsageError
from serverless_bench.lab.loopback.s3 import S3Request
from serverless_bench.units import NS_PER_S
from serverless_bench.version import __version__

FORMAT: Final = 1
COLUMNS: Final = (
    *("request", "connection", "worker", "operation", "bucket", "front", "tail", "part"),
    *("size", "offset", "length", "in_bytes", "out_bytes"),
    *("head_ns", "first_in_ns", "last_in_ns", "answered_ns", "first_out_ns", "last_out_ns"),
    *("status", "fault", "keys"),
)
"""Of a request's line, in this order."""
_TAIL: Final = 48
"""Characters of a key that differ from request to request; what is before them has a name."""
_MOST_AGENTS: Final = 10_000
_KEPT: Final = 256
_CLOCK_EVERY_NS: Final = NS_PER_S
_TIMEOUT_S: Final = 2.0


@dataclass(slots=True)
class WitnessedRequest:
    """One request as the store sees it; instants are monotonic nanoseconds, None for never."""

    number: int
    connection: int
    request: S3Request
    head_ns: int
    """When its first line was there."""
    operation: str | None = None
    """In the words of ``S3Request.operation``; None for what the store does not know."""
    size: int | None = None
    """Of the object that was requested."""
    offset: int | None = None
    """In the object, of the first byte that was requested, or that came."""
    length: int | None = None
    """Bytes of the object that were requested."""
    in_bytes: int = 0
    out_bytes: int = 0
    """Bytes of the object that came and went."""
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
        self._finished: deque[WitnessedRequest] = deque()
        """Requests that wait to be written, which is cheaper for many at once."""
        self._open: set[int] = set()
        self._settled: threading.Event | None = None
        self._lines: list[str] = []
        self._names: dict[str, int] = {}
        self._workers: dict[str, int | str] = {}
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

    def start(self, witnessed: WitnessedRequest) -> None:
        """Take note of a request that is under way."""
        if self._file is not None:
            self._open.add(witnessed.number)

    def finish(self, witnessed: WitnessedRequest) -> None:
        """Take note of a request that is over."""
        if self._file is None:
            return
        # Both are atomic, and in this order nothing is forgotten.
        self._finished.append(witnessed)
        self._open.discard(witnessed.number)
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
                self._lines.append(f'{{"clock":[{now_ns - self._origin_ns},{wall_ns()}]}}')
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

    def _row(self, witnessed: WitnessedRequest) -> str:
        request, head_ns = witnessed.request, witnessed.head_ns
        key = request.key or request.query.get("prefix", "")
        # Texts of our own making: only a key can hold what JSON has to quote.
        who = (
            f"[{witnessed.number},{witnessed.connection},{self._worker(request)},"
            f"{_text(witnessed.operation)},{self._name(request.bucket)},{self._name(key[:-_TAIL])},"
        )
        what = (
            f"{request.part},{witnessed.size},{witnessed.offset},{witnessed.length},"
            f"{witnessed.in_bytes},{witnessed.out_bytes},{head_ns - self._origin_ns},"
            f"{_since(head_ns, witnessed.first_in_ns)},{_since(head_ns, witnessed.last_in_ns)},"
            f"{_since(head_ns, witnessed.answered_ns)},{_since(head_ns, witnessed.first_out_ns)},"
            f"{_since(head_ns, witnessed.last_out_ns)},{witnessed.status},"
        ).replace("None", "null")
        keys = json.dumps(list(witnessed.keys)) if witnessed.keys else "null"
        return f"{who}{quoted(key[-_TAIL:])},{what}{_text(witnessed.fault)},{keys}]"

    def _worker(self, request: S3Request) -> int | str:
        agent = request.headers.get("user-agent", "")
        known = self._workers.get(agent)
        if known is None:
            function = request.function
            known = "null" if function is None else self._name(function)
            if len(self._workers) < _MOST_AGENTS:
                self._workers[agent] = known
        return known

    def _name(self, text: str) -> int:
        number = self._names.get(text)
        if number is None:
            number = self._names[text] = len(self._names)
            self._lines.append(f'{{"name":[{number},{quoted(text)}]}}')
        return number


def _text(word: str | None) -> str:
    return "null" if word is None else f'"{word}"'


def _since(begin_ns: int, instant_ns: int | None) -> int | None:
    return None if instant_ns is None else instant_ns - begin_ns
