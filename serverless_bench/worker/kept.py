"""What a process keeps open for its next invocation: connections, as on Lambda, or a library."""

import os
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class Kept:
    """The latest of what was opened: the next invocation as a rule wants the same again.

    By process: what a parent had open is not its forks' to use.
    """

    def __init__(self) -> None:
        self._kept: dict[object, Any] = {}

    def open(self, make: Callable[..., T], *settings: object) -> T:
        """Return what ``make`` makes of ``settings``, which is closed when others are wanted."""
        wanted = (os.getpid(), *settings)
        if wanted not in self._kept:
            self.forget()
            self._kept[wanted] = make(*settings)
        kept: T = self._kept[wanted]
        return kept

    def forget(self) -> None:
        """Close what is kept."""
        while self._kept:
            self._kept.popitem()[1].close()
