"""The only module that reads a clock, with functions that depend on it."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, Protocol

monotonic_ns = time.perf_counter_ns
"""Nanoseconds of a clock that never steps; only differences are meaningful."""

wall_ns = time.time_ns
"""Nanoseconds since the Unix epoch, according to this machine."""

thread_ns = time.thread_time_ns
"""Nanoseconds of CPU time that the calling thread has used."""

sleep = time.sleep


_DATE_CHARACTERS = 64
_SUSPENDED_NS: Final = 2_000_000_000
"""Lead of the wall clock that indicates a suspension: NTP corrects smaller errors."""


def wall_offset_ns() -> int:
    """Return the lead of ``wall_ns`` over ``monotonic_ns``.

    A thread may lose its CPU for milliseconds between the two readings. The error is at most
    the time that the quickest of three attempts takes.
    """
    attempts = ((monotonic_ns(), wall_ns(), monotonic_ns()) for _ in range(3))
    before_ns, now_ns, _ = min(attempts, key=lambda instants: instants[2] - instants[0])
    return now_ns - before_ns


class Clock(Protocol):
    """A source of time; tests use their implementations."""

    def now_ns(self) -> int:
        """Return nanoseconds since the Unix epoch."""


class EpochClock:
    """Wall-clock origin, monotonic progress.

    The wall clock is read once, on creation. Later instants add elapsed monotonic time, so a clock
    step in the middle of an upload cannot make a latency negative. Vegeta does the same
    (lib/attack.go:550-554).
    """

    def __init__(self) -> None:
        self.origin_ns = wall_offset_ns()
        """Offset from ``monotonic_ns()`` to nanoseconds since the epoch."""

    def now_ns(self) -> int:
        """Return nanoseconds since the Unix epoch."""
        return self.origin_ns + monotonic_ns()


class WakingClock(EpochClock):
    """An epoch clock that stays correct when the machine is suspended.

    Monotonic clocks of Linux and macOS stop during a suspension, and so do all clocks of a paused
    virtual machine. The wall clock is corrected afterwards: once it is ahead, this clock follows
    it. A wall clock set ahead by a user looks the same. Threads may share it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.suspensions: list[tuple[int, int]] = []
        """Start and end of each suspension, in order; readers remove them once noted."""
        self._anchoring = threading.Lock()

    def now_ns(self) -> int:
        """Return nanoseconds since the Unix epoch, including suspensions."""
        with self._anchoring:
            # Read the wall clock first: the time between both reads then reduces the difference.
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
    """Return the seconds since the epoch of ``2026-11-21T10:54:02Z``; None for invalid text."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except (OverflowError, ValueError):
        return None


# All responses within a second have the same date.
@lru_cache(maxsize=8)
def http_date_s(text: str | None) -> int | None:
    """Return the seconds since the epoch of a ``Date`` header; None if it is invalid."""
    if text is None or len(text) > _DATE_CHARACTERS:
        return None
    # This imports sockets and more, which commands that only read a clock do not need.
    from email.utils import mktime_tz, parsedate_tz

    try:
        fields = parsedate_tz(text)
        return None if fields is None else mktime_tz(fields)
    except (IndexError, OverflowError, ValueError):
        # Years, hours or zones that do not exist.
        return None


@contextmanager
def repeated(do: Callable[[], None], seconds: float, *, name: str) -> Iterator[None]:
    """Call a function periodically, in a separate thread, for the duration of the block."""
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
