"""Everything that a witness can say about a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from serverless_bench.audit.asked import asked
from serverless_bench.audit.claims import read_claims
from serverless_bench.audit.counted import bill, left, probes
from serverless_bench.audit.differences import Difference
from serverless_bench.audit.moved import attempts, moved
from serverless_bench.audit.pairs import pair
from serverless_bench.audit.scope import scope
from serverless_bench.audit.times import clocks, latencies, schedule
from serverless_bench.audit.witness import Seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Billed:
    """What the bill says about requests."""

    requests: Mapping[str, int]
    """By kind, and as ``control``, ``gate`` and ``probes``."""
    exact: bool
    """Whether it says that these are all; else there were at least as many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """A run, held against what the store saw of it."""

    differences: tuple[Difference, ...]
    requests: Mapping[str, int]
    """How many requests were looked at: of the functions (``data``), of the ``gate``, below the
    ``control`` prefix, and ``probes`` of the store's clock."""
    matched: int
    """Attempts whose request was found."""
    by_key_and_time: int
    """Requests of functions whose user agent does not say who asked."""
    not_compared: int
    """Requests on the run's own keys by workers that left no record."""
    left: tuple[str, ...]
    """What the run made, and nobody has deleted."""


def audit(
    path: Path, seen: Sequence[Seen], *, billed: Billed | None = None, cleaned: bool = False
) -> Audit:
    """Hold the run in ``path`` against a witness.

    Parameters
    ----------
    path
        The run directory.
    seen
        Every request that the store saw, of this run and of others.
    billed
        The bill; None if the run has none.
    cleaned
        Whether nothing of the run may be left.

    Raises
    ------
    ArchiveError
        If the directory holds no run.
    """
    claims = read_claims(path)
    found = scope(claims, seen)
    pairs = pair(claims, found)
    rest = left(claims, seen)
    checks = chain(
        asked(claims, found, pairs),
        attempts(claims, pairs),
        moved(claims, found, pairs),
        latencies(claims, found, pairs),
        clocks(claims, pairs),
        schedule(claims, pairs),
        probes(claims, found),
        () if billed is None else bill(claims, found, billed.requests, exact=billed.exact),
        (Difference("left", "was not deleted", key) for key in rest if cleaned),
    )
    names = ("data", "gate", "control", "probes")
    return Audit(
        differences=tuple(checks),
        requests={name: len(getattr(found, name)) for name in names},
        matched=sum(map(len, pairs.of_operation.values())),
        by_key_and_time=found.nameless,
        not_compared=len(found.unknown),
        left=tuple(rest),
    )
