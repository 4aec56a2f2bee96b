"""What bounds a run at this moment, as far as live counters can tell. Pure.

The words are those of ``analysis.bottleneck``, which decides from whole records. Here there
are sums over some seconds, so less can be told: whether threads queue for the interpreter's
lock, or what limits a network, cannot. What is not known is called so.
"""

from dataclasses import dataclass
from typing import Final

from serverless_bench.analysis.bottleneck import CLIENT_SHARE, STORE_SHARE
from serverless_bench.worker.live_board import BoardTotals

UNKNOWN: Final = "not known"
STORE_ERRORS: Final = 0.1
"""From this share of failed attempts on, errors are the first thing to look at."""
_AT_FAULT: Final = ("throttled", "5xx", "timeout", "reset")
_KEPT_PACE: Final = 0.95
_LEAST_NS: Final = 1_000_000_000
"""In less time workers have not said what processor time they used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """What happened in the last seconds."""

    added: BoardTotals
    span_ns: int
    running: int
    """Functions that were at work."""
    asked_per_s: float | None
    """Rate of an open loop."""
    achieved_per_s: float
    lanes_known: bool
    """Whether an attempt is one request that occupies one thread."""
    threads: bool
    """Whether functions have several threads, which share the interpreter's lock."""


def bound_now(now: Activity) -> str:
    """Return what bounds the functions, in a few words."""
    added = now.added
    if now.span_ns < _LEAST_NS or not now.running or not added.attempts:
        return UNKNOWN
    errors = {name: added.failures[name] for name in _AT_FAULT if added.failures[name]}
    share = sum(errors.values()) / added.attempts
    if share >= STORE_ERRORS:
        most = max(errors, key=lambda name: errors[name])
        return f"store errors: {share:.0%} of attempts, mostly {most}"
    # As there: of the time that requests were out, or at least of that of the functions.
    client = min(1.0, added.awake_ns / max(added.in_flight_ns, now.running * now.span_ns))
    known = now.lanes_known and added.awake_ns
    if known and client >= CLIENT_SHARE:
        return f"client: busy, or waiting for a processor, {client:.0%}"
    if now.asked_per_s is not None and now.achieved_per_s >= _KEPT_PACE * now.asked_per_s:
        return "schedule: as fast as asked"
    if known and client < STORE_SHARE and not now.threads:
        return f"store or network: functions wait {1 - client:.0%} of the time"
    return UNKNOWN
