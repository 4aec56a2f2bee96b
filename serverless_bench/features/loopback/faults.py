"""Planned faults, chosen by the seed and written to a log.

Whether a request fails depends on the seed, the fault, the operation, the key, the part or
range, and the number of identical requests before it. It depends on neither clock nor
thread, so the same requests get the same faults in any order.
"""

import json
import random
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, TextIO

from serverless_bench.base.clock import wall_ns
from serverless_bench.base.errors import UsageError


class FaultKind(StrEnum):
    """Faults that can be injected; the first in this order that hits a request excludes others."""

    SLOWDOWN = "slowdown"
    """503 ``SlowDown``."""
    ERROR = "error"
    """500 ``InternalError``."""
    MISSING = "missing"
    """404 ``NoSuchKey`` for an object that exists."""
    RESET_PUT = "reset-put"
    """The connection is reset (RST) in the middle of the upload."""
    RESET_GET = "reset-get"
    """The connection is reset in the middle of the download."""
    TRUNCATE = "truncate"
    """The connection is closed before the announced length has been sent."""
    SHORT = "short"
    """The object is shorter than it was written, and the announced length agrees with this."""
    STALE = "stale"
    """The bytes are from another generation."""
    FLIP = "flip"
    """Some bits of the download are flipped."""
    LOST_ANSWER = "lost-answer"
    """The connection is closed in place of the response, after the store has acted."""
    LIST_ERROR = "list-error"
    """503 ``SlowDown`` for a listing."""
    LIST_MISSING = "list-missing"
    """A page of a listing lacks a key."""
    DELETE_ERROR = "delete-error"
    """503 ``SlowDown`` for a deletion."""
    DELETE_IGNORED = "delete-ignored"
    """A deletion is answered as done, and is not."""


_UPLOADS: Final = frozenset({"put", "upload_part"})
_READS: Final = frozenset({"get"})
_LISTINGS: Final = frozenset({"list_objects"})
_DELETIONS: Final = frozenset({"delete", "delete_objects"})
_ALL: Final = _UPLOADS | _READS | {"create_multipart", "complete_multipart"}
HITS: Final[Mapping[FaultKind, frozenset[str]]] = {
    FaultKind.SLOWDOWN: _ALL,
    FaultKind.ERROR: _ALL,
    FaultKind.RESET_PUT: _UPLOADS,
    **dict.fromkeys((FaultKind.MISSING, FaultKind.RESET_GET, FaultKind.TRUNCATE), _READS),
    **dict.fromkeys((FaultKind.SHORT, FaultKind.STALE, FaultKind.FLIP), _READS),
    FaultKind.LOST_ANSWER: (_ALL - _READS) | {"abort_multipart", "copy"} | _DELETIONS,
    FaultKind.LIST_ERROR: _LISTINGS,
    FaultKind.LIST_MISSING: _LISTINGS,
    FaultKind.DELETE_ERROR: _DELETIONS,
    FaultKind.DELETE_IGNORED: frozenset({"delete"}),
}
"""Requests that each fault may hit, named like ``record.Attempt.request``."""
WIDE: Final = frozenset(
    {
        FaultKind.LOST_ANSWER,
        FaultKind.LIST_ERROR,
        FaultKind.LIST_MISSING,
        FaultKind.DELETE_ERROR,
        FaultKind.DELETE_IGNORED,
    }
)
"""Faults of all keys, except those of control objects; the rest hit objects of a benchmark only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedFault:
    """A fault planned for a request."""

    kind: FaultKind
    number: int
    """Number of identical earlier requests."""
    rng: random.Random
    """Source of the remaining choices, such as the place of the fault."""

    def cut(self, size_bytes: int) -> int:
        """Return how many of ``size_bytes`` bytes are transferred; at least the last is not."""
        return self.rng.randrange(size_bytes) if size_bytes else 0

    def bits(self, count: int, first: int, end: int) -> list[tuple[int, int]]:
        """Return up to ``count`` places ``(offset, bit)`` in different bytes, sorted."""
        offsets = self.rng.sample(range(first, end), min(count, end - first))
        return [(offset, self.rng.randrange(8)) for offset in sorted(offsets)]


class FaultPlan:
    """Decides which requests fail, safe to share between threads.

    Parameters
    ----------
    seed
        Number that distinguishes one plan from another.
    rates
        Probability of each fault; faults earlier in ``FaultKind`` take precedence.
    """

    def __init__(self, seed: int, rates: Mapping[FaultKind, float]) -> None:
        self._seed = seed
        self._rates = [(kind, rates[kind]) for kind in FaultKind if rates.get(kind)]
        self._seen: Counter[tuple[str, str, str]] = Counter()
        self._lock = threading.Lock()

    def decide(self, request: str, key: str, where: str = "") -> PlannedFault | None:
        """Return the fault of the next such request, or None.

        Parameters
        ----------
        request
            Name of the operation, as in ``record.Attempt``.
        key
            Key of the object.
        where
            Part or range, in any unambiguous spelling.
        """
        if not self._rates:
            return None
        with self._lock:
            number = self._seen[request, key, where]
            self._seen[request, key, where] += 1
        for kind, rate in self._rates:
            if request in HITS[kind]:
                rng = derived_rng(self._seed, kind, request, key, where, number)
                if rng.random() < rate:
                    return PlannedFault(kind=kind, number=number, rng=rng)
        return None


def derived_rng(*words: object) -> random.Random:
    """Return a random number generator that depends on ``words`` only."""
    import hashlib

    digest = hashlib.blake2b("\0".join(map(str, words)).encode(), digest_size=16).digest()
    return random.Random(int.from_bytes(digest))


def opened_log(flag: str, path: Path | None) -> TextIO | None:
    """Open the file that a flag names to append lines to it; return None without a file.

    Raises
    ------
    UsageError
        If the file cannot be written.
    """
    try:
        return path.open("a", encoding="ascii") if path else None
    except OSError as exc:
        raise UsageError(f"cannot write {flag} {path}: {exc.strerror}") from exc


@dataclass
class FaultLog:
    """Log of faults in JSON Lines, on disk before the client can notice.

    Parameters
    ----------
    path
        File to append to; None writes nothing.

    Raises
    ------
    UsageError
        If the file cannot be written.
    """

    path: Path | None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._file = opened_log("--log", self.path)

    def add(self, **row: Any) -> None:
        """Append a line."""
        if self._file is None:
            return
        line = json.dumps({"time_ns": wall_ns(), **row}) + "\n"
        with self._lock:
            self._file.write(line)
            self._file.flush()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
