"""The one place that reads a clock."""

import time
from datetime import UTC, datetime
from functools import lru_cache
from typing import Protocol

monotonic_ns = time.perf_counter_ns
"""Nanoseconds of a clock that never steps; only differences mean anything."""

wall_ns = time.time_ns
"""Nanoseconds since the Unix epoch, as this machine believes."""

sleep = time.sleep


_DATE_CHARACTERS = 64


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
