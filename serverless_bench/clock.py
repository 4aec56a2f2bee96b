"""The one place that reads a clock, and does things by it."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, Protocol

monotonic_ns = time.perf_counter_ns
"""Nanoseconds of a clock that never steps; only differences mean anything."""

wall_ns = time.time_ns
"""Nanoseconds since the Unix epoch, as this machine believes."""

sleep = time.sleep


_DATE_CHARACTERS = 64
_SUSPENDED_NS: Final = 2_000_000_000
"""How far the wall clock has to be ahead to show a suspension: NTP sets smaller errors right."""


class Clock(Protocol):
    """Something that tells the time; tests bring their own."""

    def now_ns(self) -> int:
        """Return nanoseconds since the Unix epoch."""


class EpochClock:
    """Wall-clock origin, monotonic progress.

    The wall clock is read once, when the clock is made. Later instants add elapsed
    monotonic time, so a clock step in the middle of an upload cannot make a latency
    negative. Vegeta does the same (lib/attack.go:550-554).
    """

    def __init__(self) -> None:
        self.origin_ns = wall_ns() - monotonic_ns()
        """Add it to ``monotonic_ns()`` to get nanoseconds since the epoch."""

    def now_ns(self) -> int:
        """Return nanoseconds since the Unix epoch."""
        return self.origin_ns + monotonic_ns()


class WakingClock(EpochClock):
    """An epoch clock that is right again after the machine was suspended.

    Monotonic clocks of Linux and macOS stand still in a suspension, and so do all clocks of a
    virtual machine that is paused. The wall clock is set afterwards: where it has got ahead, it is
    believed. A wall clock that somebody sets ahead looks the same. Threads may share it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.suspensions: list[tuple[int, int]] = []
        """Beginning and end of each suspension, in order; who has noted them takes them off."""
        self._anchoring = threading.Lock()

    def now_ns(self) -> int:
        """Return nanoseconds since the Unix epoch, suspensions included."""
        with self._anchoring:
            # The wall clock first: what passes between two readings makes it less, and not more.
            behind_ns = wall_ns() - (now_ns := super().now_ns())
            if behind_ns > _SUSPENDED_NS:
                self.origin_ns += behind_ns
                self.suspensions.append((now_ns, now_ns + behind_ns))
        return super().now_ns()


def utc_stamp(ns: int | None = None, *, separators: bool = False) -> str:
    """Return an instant as UTC text, ``20261121T105402Z`` or ``2026-11-21T10:54:02Z``."""
    instant = datetime.fromtimestamp((wall_ns() if ns is None else ns) / 1e9, tz=UTC)
    return instant.strftime("%Y-%m-%dT%H:%M:%SZ" if separators else "%Y%m%dT%H%M%SZ")


def iso_date_s(text: str) -> float | None:
    """Return the seconds since the epoch of ``2026-11-21T10:54:02Z``; None of anything else."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except (OverflowError, ValueError):
        return None


# Responses of one second have one date.
@lru_cache(maxsize=8)
def http_date_s(text: str | None) -> int | None:
    """Return the seconds since the epoch that a ``Date`` header names; None if it names none."""
    if text is None or len(text) > _DATE_CHARACTERS:
        return None
    # It brings sockets and more, which a command that looks at a clock can do without.
    from email.utils import mktime_tz, parsedate_tz  # noqa: PLC0415

    try:
        fields = parsedate_tz(text)
        return None if fields is None else mktime_tz(fields)
    except (IndexError, OverflowError, ValueError):
        # Of years, hours and zones that there are not.
        return None


@contextmanager
def repeated(do: Callable[[], None], seconds: float, *, name: str) -> Iterator[None]:
    """Call something every so many seconds, in a thread of its own, as long as the block lasts."""
    over = threading.Event()

    def run() -> None:
        while not over.wait(seconds):
            do()

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
