"""What a process keeps open for its next invocation: connections, as on Lambda, or a library."""

import os
from collections.abc import Callable
from typing import Any, Final, TypeVar

from serverless_bench.clock import wall_ns
from serverless_bench.units import NS_PER_S

T = TypeVar("T")
_MOST_NS: Final = 3 * NS_PER_S
"""AWS freezes an environment between two events, and purges idle connections over time (AWS
Lambda developer guide, "Best practices"). Nothing arrives to show that: the next request would
wait for its timeout."""

_rests: dict[int, int] = {}
"""When a process, by its id, was through with its latest event."""


def rest(now_ns: int | None = None) -> None:
    """Note that this process may be frozen from now on.

    Parameters
    ----------
    now_ns
        By the wall clock, the only one that goes on then; None reads it.
    """
    _rests[os.getpid()] = wall_ns() if now_ns is None else now_ns


class Kept:
    """The latest of what was opened: the next invocation as a rule wants the same again.

    By process: what a parent had open is not its forks' to use. And not after a rest of more
    than a few seconds: what was open then may lead nowhere.
    """

    def __init__(self) -> None:
        self._kept: dict[object, Any] = {}
        self._rested_ns: int | None = None
        """The latest rest when it was last opened: one that came later is not over yet."""

    def open(self, make: Callable[..., T], *settings: object) -> T:
        """Return what ``make`` makes of ``settings``, which is closed when others are wanted."""
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
        """Close what is kept."""
        while self._kept:
            self._kept.popitem()[1].close()
