"""Current bottleneck of a run according to live counters. Pure.

The terms are those of ``features.bottleneck``, which uses complete records. The counters are sums
over some seconds and all functions and allow fewer conclusions: a network limit cannot be
detected, and waiting for the interpreter lock only with enough probes. Other cases are unknown.
"""

from typing import Final

from serverless_bench.features.bottleneck.causes import (
    CLIENT_SHARE,
    DELAYED_SHARE,
    LEAST_PROBES,
    STORE_SHARE,
)
from serverless_bench.features.bottleneck.part import CAUSES
from serverless_bench.features.live.board import BoardTotals

UNKNOWN: Final = CAUSES["unknown"]
STORE_ERRORS: Final = 0.1
"""Share of failed attempts from which errors are reported as the bottleneck."""
CONFLICTS: Final = 0.25
"""At this share of conflicting attempts every second write fails, as each follows a read."""
KEPT_PACE: Final = 0.95
"""An open loop keeps its schedule if it starts this share of the requested operations."""
_LEAST_NS: Final = 1_000_000_000
"""A shorter time, of the run or of its functions together, is not sufficient."""


def bound_now(
    added: BoardTotals,
    *,
    span_ns: int,
    running: int,
    absent: int,
    on_schedule: bool,
    lanes_known: bool,
    threads: bool,
) -> str:
    """Return the bottleneck of the functions in a few words.

    Parameters
    ----------
    added
        Counters of the last seconds.
    span_ns
        Length of that interval; 0 if functions do not report progress while they run.
    running
        Number of running functions.
    absent
        Number of additional functions that could run, but have not been launched yet.
    on_schedule
        Whether an open loop has about the requested rate.
    lanes_known
        Whether an attempt is one request that occupies one thread.
    threads
        Whether functions have several threads, which share the interpreter lock.
    """
    if absent > running:
        return f"{CAUSES['launch']}: {running:,} of {running + absent:,} functions launched"
    if span_ns < _LEAST_NS or not running:
        return UNKNOWN
    return _refusals(added) or _shares(
        added, on_schedule=on_schedule, lanes_known=lanes_known, threads=threads
    )


def _shares(added: BoardTotals, *, on_schedule: bool, lanes_known: bool, threads: bool) -> str:
    """Return the largest share of the functions' time, in the order of ``features.bottleneck``."""
    function_ns = max(1, added.sampled_ns)
    # As in that module: relative to the time of requests, or at least to that of functions.
    client = min(1.0, added.awake_ns / max(added.in_flight_ns, function_ns))
    is_client_known = lanes_known and added.sampled_ns >= _LEAST_NS
    if is_client_known and client >= CLIENT_SHARE:
        # Separates the work of sbench from that of the library.
        for_bytes = added.payload_ns >= added.awake_ns / 2
        mostly = ", mostly to make or compare bytes" if for_bytes else ""
        return f"{CAUSES['client']}: running or runnable {client:.0%}{mostly}"
    probes, delayed = added.lock_probes
    lock = delayed / probes if probes >= LEAST_PROBES else 0.0
    if threads and lock >= DELAYED_SHARE:
        return f"{CAUSES['interpreter_lock']}: contended {lock:.0%} of the time"
    if on_schedule:
        return CAUSES["schedule"]
    if threads:
        # The lock cannot be held for longer than all threads together are busy.
        client = max(client, lock, min(1.0, added.awake_ns / function_ns))
    if is_client_known and client < STORE_SHARE:
        return f"{CAUSES['store_or_network']}: functions wait {1 - client:.0%} of the time"
    return UNKNOWN


def _refusals(added: BoardTotals) -> str:
    """Return the store's errors or conflicts if they are the bottleneck."""
    if not added.attempts:
        return ""
    errors = {
        name: added.failures[name]
        for name in ("throttled", "5xx", "timeout", "reset")
        if added.failures[name]
    }
    share = sum(errors.values()) / added.attempts
    if share >= STORE_ERRORS:
        most = max(errors, key=lambda name: errors[name])
        return f"{CAUSES['retries']}: {share:.0%} of attempts failed, mostly {most}"
    share = added.conflicts / added.attempts
    return f"conflicts: {share:.0%} of attempts" if share >= CONFLICTS else ""
