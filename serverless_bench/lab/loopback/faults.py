"""Which requests fail, and how: decided by the seed, written to a log.

Whether a request fails is a function of the seed, the fault, the operation, the key,
the part or range, and how often exactly that was requested before. It depends on no
clock and no thread, so the same requests meet the same faults, in any order.
"""

import hashlib
import json
import random
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from serverless_bench.clock import wall_ns
from serverless_bench.errors import UsageError


class FaultKind(StrEnum):
    """What can go wrong on request; the first of this order that hits is the only one."""

    SLOWDOWN = "slowdown"
    """503 ``SlowDown``."""
    ERROR = "error"
    """500 ``InternalError``."""
    MISSING = "missing"
    """404 ``NoSuchKey`` for an object that is there."""
    RESET_PUT = "reset-put"
    """The connection is reset (RST) after a share of the upload."""
    RESET_GET = "reset-get"
    """The connection is reset after a share of the download."""
    TRUNCATE = "truncate"
    """The connection ends after a share of the length that was announced."""
    SHORT = "short"
    """The object is shorter than it was written, and announced so."""
    STALE = "stale"
    """The bytes of another generation."""
    FLIP = "flip"
    """Some bits of the download are turned over."""


_UPLOADS: Final = frozenset({"put", "upload_part"})
_ALL: Final = _UPLOADS | {"get", "create_multipart", "complete_multipart"}
HITS: Final[Mapping[FaultKind, frozenset[str]]] = {
    FaultKind.SLOWDOWN: _ALL,
    FaultKind.ERROR: _ALL,
    FaultKind.RESET_PUT: _UPLOADS,
    **{
        kind: frozenset({"get"})
        for kind in FaultKind
        if kind not in {FaultKind.SLOWDOWN, FaultKind.ERROR, FaultKind.RESET_PUT}
    },
}
"""Requests that each fault may hit, in the words of ``record.Attempt.request``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedFault:
    """A fault that is to happen to one request."""

    kind: FaultKind
    number: int
    """How often the same was requested before."""
    rng: random.Random
    """Decides the rest: where it happens."""

    def cut(self, size_bytes: int) -> int:
        """Return how many of ``size_bytes`` bytes pass; at least one does not."""
        return self.rng.randrange(size_bytes) if size_bytes else 0

    def bits(self, count: int, first: int, end: int) -> list[tuple[int, int]]:
        """Return up to ``count`` places ``(offset, bit)`` in different bytes, sorted."""
        offsets = self.rng.sample(range(first, end), min(count, end - first))
        return [(offset, self.rng.randrange(8)) for offset in sorted(offsets)]


class FaultPlan:
    """Decides for every request; threads may share it.

    Parameters
    ----------
    seed
        Makes one plan differ from another.
    rates
        Share of the requests that each fault may hit; what came before takes its own first.
    """

    def __init__(self, seed: int, rates: Mapping[FaultKind, float]) -> None:
        self._seed = seed
        self._rates = [(kind, rates[kind]) for kind in FaultKind if rates.get(kind)]
        self._seen: Counter[tuple[str, str, str]] = Counter()
        self._lock = threading.Lock()

    def decide(self, request: str, key: str, where: str = "") -> PlannedFault | None:
        """Return the fault of the next such request, if it has one.

        Parameters
        ----------
        request
            As in ``record.Attempt``.
        key
            Of the object.
        where
            Part or range, in any spelling that separates them.
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
    """Return a source of random numbers that ``words`` alone decide."""
    digest = hashlib.blake2b("\0".join(map(str, words)).encode(), digest_size=16).digest()
    return random.Random(int.from_bytes(digest))  # noqa: S311 - a plan, no secret


@dataclass
class FaultLog:
    """One JSON line per fault, on disk before the client can know.

    Parameters
    ----------
    path
        The file, which grows; None writes nothing.

    Raises
    ------
    UsageError
        If the file cannot be written.
    """

    path: Path | None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        try:
            self._file = self.path.open("a", encoding="utf-8") if self.path else None
        except OSError as exc:
            raise UsageError(f"cannot write --log {self.path}: {exc.strerror}") from exc

    def add(self, **row: Any) -> None:  # noqa: ANN401 - anything that JSON has
        """Append one line."""
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
