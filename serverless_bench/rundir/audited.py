"""A saved run beside what the store saw of it: results of an audit."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Discrepancy:
    """One thing that the run says and the store did not see, or the other way round."""

    about: str
    """asked, bytes, requests, times, schedule, bill or left."""
    text: str
    """One sentence."""
    key: str | None = None
    """Of the object, where there is one."""


Discrepancies = Iterator[Discrepancy]


@dataclass(frozen=True, slots=True, kw_only=True)
class Billed:
    """What the bill says about requests."""

    requests: Mapping[str, int]
    """By kind, and as ``control``, ``gate`` and ``probes``."""
    exact: bool
    """Whether it says that these are all; else there were at least as many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """A run beside what the store saw of it."""

    differences: tuple[Discrepancy, ...]
    requests: Mapping[str, int]
    """How many requests were looked at: of the functions (``data``), of the ``gate``, below the
    ``control`` prefix, and ``probes`` of the store's clock."""
    matched: int
    """Attempts whose request was found."""
    by_key_and_time: int
    """Requests of functions whose user agent names no worker."""
    not_compared: int
    """Requests on the run's own keys by workers that left no record."""
    left: tuple[str, ...]
    """What the run made, and nobody has deleted."""
