"""From a log to the schedule of a replay; nothing else of the log is kept.

A run keeps the requests in memory, to put them in order. A plan adds them up as they come, and
keeps a sample of the objects, so that the memory does not grow with the log.
"""

import hmac
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import IO, Final

from serverless_bench.base.errors import UsageError
from serverless_bench.base.units import NS_PER_S
from serverless_bench.features.replay.lines import READS, LogReader, Request
from serverless_bench.features.replay.schedule import MISSING, NAME_BITS, ReplaySchedule, Row
from serverless_bench.job.operations import OperationKind

MAX_REQUESTS: Final = 1_000_000
"""Most requests of one replay: a run keeps them, and their records, in memory."""
_SAMPLE: Final = 1 << 14
"""Most keys that a plan keeps; the error of the objects it estimates is below 1 %."""
_MAX_LINE: Final = 1 << 16
_STEP: Final = 0x9E3779B1
"""Distance of ranges whose place in the object is unknown: a prime number."""


@dataclass(slots=True)
class _Key:
    """What the store holds at a key of the log, as far as the log shows it so far."""

    number: int = -1
    """Number of the current object."""
    size: int = 0
    exists: bool = False
    versions: int = 0
    is_copy: bool = False
    """Whether the object is a copy at some time."""
    made: int = 0
    made_bytes: int = 0
    """Objects to prepare for requests of this key."""


class _Reading:
    """A log while it is read.

    Parameters
    ----------
    secret
        Key of the pseudonyms; None for a random one.
    max_gap
        Longest time in seconds without a request.
    keep
        Whether to keep requests and objects.
    """

    def __init__(self, secret: bytes | None, max_gap: float, *, keep: bool) -> None:
        self._secret, self._anonymous = secret or secrets.token_bytes(32), secret is None
        self._gap_ns, self._keep = max_gap * NS_PER_S, keep
        self._requests: list[tuple[int, int, Request]] = []
        """Instant, pseudonym of the key, and request."""
        self.names: list[int] = []
        self.sizes: list[int] = []
        self.prepared: list[int] = []
        self._keys: dict[int, _Key] = {}
        self._halvings = 0
        """How often the sample of keys was halved."""
        self.totals: dict[OperationKind, list[int]] = {}
        self._first_ns, self._latest_ns, self._cut_ns = 1 << 62, 0, 0.0

    def take(self, request: Request) -> None:
        """Count a request, and keep it or the effect on the objects."""
        kind, at_ns, name = request.kind, request.at_ns, _name(self._secret, request.key)
        total = self.totals.setdefault(kind, [0, 0])
        total[0] += 1
        total[1] += _moved(request)
        if self._latest_ns:
            self._cut_ns += max(0, at_ns - self._latest_ns - self._gap_ns)
        self._first_ns = min(at_ns, self._first_ns)
        self._latest_ns = max(at_ns, self._latest_ns)
        if not self._keep:
            self._place(request, name)
            return
        if len(self._requests) >= MAX_REQUESTS:
            raise UsageError(
                f"the log has more than {MAX_REQUESTS:,} requests, the most of one replay",
                hint="replay a part of it: head -n 1000000 LOG | sbench replay -",
            )
        self._requests.append((at_ns, name, request._replace(key="")))

    def schedule(self) -> ReplaySchedule:
        """Return the schedule of all requests."""
        self._requests.sort(key=itemgetter(0))
        rows = [*self._rows()]
        keys, scale = self._keys.values(), 1 << self._halvings
        lasts_us = int(self._latest_ns - self._first_ns - self._cut_ns) // 1000
        return ReplaySchedule(
            totals=[(kind, total[0], total[1]) for kind, total in self.totals.items()],
            made=(scale * sum(k.made for k in keys), scale * sum(k.made_bytes for k in keys)),
            lasts_us=rows[-1].due_us if rows else lasts_us,
            names=self.names,
            sizes=self.sizes,
            prepared=self.prepared,
            rows=rows,
        )

    def _rows(self) -> Iterator[Row]:
        in_seconds = all(at_ns % NS_PER_S == 0 for at_ns, *_ in self._requests)
        cut_ns = before_ns = 0.0
        for at_ns, group in groupby(self._requests, key=itemgetter(0)):
            requests = [*group]
            for number, (_, name, request) in enumerate(requests):
                # Those of a second are spread over it.
                spread_ns = number * NS_PER_S / len(requests) if in_seconds else 0
                due_ns = at_ns - self._first_ns + spread_ns
                cut_ns += max(0, due_ns - before_ns - self._gap_ns)
                before_ns = due_ns
                place, offset = self._place(request, name), request.offset
                if offset is None and request.length > 0:
                    room = (request.size or 0) - request.length + 1
                    offset = (at_ns + number) * _STEP % room
                yield Row(
                    int(due_ns - cut_ns) // 1000, request.kind, place, offset or 0, request.length
                )

    def _place(self, request: Request, name: int) -> int:
        """Return the number of a request's object, and note what the request does to it."""
        kind, size = request.kind, request.size
        if kind is OperationKind.LIST or name >> (NAME_BITS - self._halvings):
            return -1
        key = self._keys.setdefault(name, _Key())
        self._halve()
        if request.length == MISSING:
            if key.number < 0:
                key.number = self._add(name, 0)
            return key.number
        if not (key.versions and size in {None, key.size} and (key.exists or kind not in READS)):
            key.size, key.is_copy = size or key.size or 1, False
            key.number = self._add(name + key.versions, key.size)
            key.versions += 1
            if kind in READS:
                _make(key)
                self.prepared += [key.number] * self._keep
        if kind is OperationKind.COPY and not key.is_copy:
            key.is_copy = True
            _make(key)
        key.exists = kind is not OperationKind.DELETE
        return key.number

    def _add(self, name: int, size: int) -> int:
        """Return the number of a new object."""
        if not self._keep:
            return 0
        number = len(self.names)
        self.names.append(_name(b"", str(number)) if self._anonymous else name % (1 << NAME_BITS))
        self.sizes.append(size)
        return number

    def _halve(self) -> None:
        while not self._keep and len(self._keys) > _SAMPLE:
            self._halvings += 1
            shift = NAME_BITS - self._halvings
            self._keys = {name: key for name, key in self._keys.items() if not name >> shift}


def _make(key: _Key) -> None:
    key.made += 1
    key.made_bytes += key.size


def _moved(request: Request) -> int:
    if request.kind in {OperationKind.HEAD, OperationKind.DELETE, OperationKind.COPY}:
        return 0
    return max(0, request.length or request.size or 0)


def _name(secret: bytes, text: str) -> int:
    digest = hmac.digest(secret, text.encode(errors="surrogateescape"), "sha256")
    return int.from_bytes(digest[: NAME_BITS // 8])


def read_log(
    lines: IO[str],
    *,
    secret: bytes | None = None,
    max_gap: float | None = None,
    keep: bool = True,
) -> tuple[ReplaySchedule, Sequence[str]]:
    """Read a log, and return the schedule and notes about it.

    Parameters
    ----------
    lines
        The log.
    secret
        Key of the pseudonyms. With None they are random, and a schedule has numbers in their place.
    max_gap
        Longest time in seconds without a request; longer ones are cut to it. None cuts none.
    keep
        Whether to keep the operations; if not, the totals suffice for a plan.

    Raises
    ------
    UsageError
        If the log has no request, or too many.
    """
    gap = float("inf") if max_gap is None else max_gap
    reader, reading = LogReader(), _Reading(secret, gap, keep=keep)
    # A line without an end does not fill the memory.
    for request in reader.requests(iter(lambda: lines.readline(_MAX_LINE), "")):
        reading.take(request)
    left_out = ", ".join(f"{count:,} {reason}" for reason, count in reader.skipped.items())
    if not reading.totals:
        raise UsageError(
            f"the log has no request to replay: {left_out or 'it is empty'}",
            hint="give an S3 server access log, an op-log of warp or sai3-bench, or a table with"
            ' the columns time, op and key; see "Replay" in the documentation',
        )
    return reading.schedule(), [f"not replayed: {left_out}"] if left_out else []
