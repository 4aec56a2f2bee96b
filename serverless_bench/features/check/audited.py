"""Results of an audit: a saved run compared with the store's log."""

from collections.abc import Iterator, Mapping

from msgspec import Struct


class Discrepancy(Struct, frozen=True):
    """A difference between the run and the store's log."""

    about: str
    """asked, bytes, requests, times, schedule, bill or left."""
    text: str
    """One sentence."""
    key: str | None = None
    """Key of the object, if there is one."""


Discrepancies = Iterator[Discrepancy]


class Billed(Struct, frozen=True, kw_only=True):
    """Numbers of requests according to the bill."""

    requests: Mapping[str, int]
    """Number by kind, and for ``control``, ``barrier`` and ``probes``."""
    exact: bool
    """Whether the bill claims to be complete; otherwise the numbers are lower bounds."""


class Audit(Struct, frozen=True, kw_only=True):
    """Comparison of a run with the store's log."""

    differences: tuple[Discrepancy, ...]
    requests: Mapping[str, int]
    """Number of examined requests: by the functions (``data``), at the ``barrier``, below the
    ``control`` prefix, and ``probes`` of the store's clock."""
    matched: int
    """Number of attempts with a matching request."""
    by_key_and_time: int
    """Requests by functions with no worker in the user agent."""
    not_compared: int
    """Requests on the run's keys by workers that left no record."""
    left: tuple[str, ...]
    """Keys that the run created and that still exist."""
