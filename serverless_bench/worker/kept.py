"""Resources that a process keeps open for its next invocation, such as connections."""

import os
from collections.abc import Callable
from typing import Any, Final, TypeVar

from serverless_bench.base.clock import wall_ns
from serverless_bench.base.units import NS_PER_S

T = TypeVar("T")
_MOST_NS: Final = 3 * NS_PER_S
"""AWS freezes an environment between two events, and purges idle connections over time (AWS Lambda
developer guide, "Best practices"). A purged connection gives no sign: the next request would wait
for its timeout."""

_rests: dict[int, int] = {}
"""Time when a process, by its id, finished its latest event."""


def rest(now_ns: int | None = None) -> None:
    """Note that this process may be frozen from now on.

    Parameters
    ----------
    now_ns
        Time by the wall clock, the only clock that runs while frozen; None to read it.
    """
    _rests[os.getpid()] = wall_ns() if now_ns is None else now_ns


class Kept:
    """The most recently opened resource: the next invocation usually needs the same.

    It is kept per process, because a fork must not use its parent's connections. It is dropped
    after a rest of more than a few seconds: the connections may be dead by then.
    """

    def __init__(self) -> None:
        self._kept: dict[object, Any] = {}
        self._rested_ns: int | None = None
        """The latest rest as of the last ``open``; a rest noted since has not been checked yet."""

    def open(self, make: Callable[..., T], *settings: object) -> T:
        """Return ``make(*settings)``, kept until other settings are requested."""
        wanted = (os.getpid(), *settings)
        rested_ns = _rests.get(os.getpid())
        has_rested = rested_ns is not None and rested_ns != self._rested_ns
        if wanted not in self._kept or (has_rested and wall_ns() - (rested_ns or 0) > _MOST_NS):
            self.forget()
            self._kept[wanted] = make(*settings)
        self._rested_ns = rested_ns
        kept: T = self._kept[wanted]
        return kept

    def forget(self) -> None:
        """Close the kept resource."""
        while self._kept:
            self._kept.popitem()[1].close()
