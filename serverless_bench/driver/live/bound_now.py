"""What bounds a run at this moment, as far as live counters can tell. Pure.

The words are those of ``analysis.bottleneck``, which decides from whole records. Here there
are sums over some seconds and over all functions, so less can be told: what limits a network
cannot, and whether threads queue for the interpreter's lock only if enough of them were asked.
What is not known is called so.
"""

from typing import Final

from serverless_bench.analysis.bottleneck.causes import (
    CLIENT_SHARE,
    DELAYED_SHARE,
    LEAST_PROBES,
    STORE_SHARE,
)
from serverless_bench.worker.live_board import BoardTotals

UNKNOWN: Final = "not known"
STORE_ERRORS: Final = 0.1
"""From this share of failed attempts on, errors are the first thing to look at."""
CONFLICTS: Final = 0.25
"""So many attempts that came too late are every other write, as each follows a read."""
_AT_FAULT: Final = ("throttled", "5xx", "timeout", "reset")
KEPT_PACE: Final = 0.95
"""An open loop keeps its schedule if it begins this share of the operations asked for."""
_LEAST_NS: Final = 1_000_000_000
"""Less time, of the run or of its functions together, says little."""


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
    """Return what bounds the functions, in a few words.

    Parameters
    ----------
    added
        What happened in the last seconds.
    span_ns
        How long that took; 0 if functions do not tell what they do while they run.
    running
        Functions that were at work.
    absent
        Functions that could be at work beside them, and have not been launched yet.
    on_schedule
        Whether an open loop is about as fast as asked.
    lanes_known
        Whether an attempt is one request that occupies one thread.
    threads
        Whether functions have several threads, which share the interpreter's lock.
    """
    if absent > running:
        return f"launch: {running:,} of {running + absent:,} functions are launched"
    if span_ns < _LEAST_NS or not running:
        return UNKNOWN
    return _refusals(added) or _shares(
        added, on_schedule=on_schedule, lanes_known=lanes_known, threads=threads
    )


def _shares(added: BoardTotals, *, on_schedule: bool, lanes_known: bool, threads: bool) -> str:
    """Return where the time of the functions goes, in the order of ``analysis.bottleneck``."""
    there_ns = max(1, added.sampled_ns)
    # As there: of the time that requests were out, or at least of that of the functions.
    client = min(1.0, added.awake_ns / max(added.in_flight_ns, there_ns))
    known = lanes_known and added.sampled_ns >= _LEAST_NS
    if known and client >= CLIENT_SHARE:
        # What is sbench's own in it, as opposed to the library's.
        for_bytes = added.payload_ns >= added.awake_ns / 2
        mostly = ", mostly to make or compare bytes" if for_bytes else ""
        return f"client: busy, or waiting for a processor, {client:.0%}{mostly}"
    probes, delayed = added.lock_probes
    lock = delayed / probes if probes >= LEAST_PROBES else 0.0
    if threads and lock >= DELAYED_SHARE:
        return f"interpreter lock: taken {lock:.0%} of the times that it was asked for"
    if on_schedule:
        return "schedule: as fast as asked"
    if threads:
        # Nobody holds the lock for longer than all threads together are busy.
        client = max(client, lock, min(1.0, added.awake_ns / there_ns))
    if known and client < STORE_SHARE:
        return f"store or network: functions wait {1 - client:.0%} of the time"
    return UNKNOWN


def _refusals(added: BoardTotals) -> str:
    """Return what the store refused, if that is the first thing to look at."""
    if not added.attempts:
        return ""
    errors = {name: added.failures[name] for name in _AT_FAULT if added.failures[name]}
    share = sum(errors.values()) / added.attempts
    if share >= STORE_ERRORS:
        most = max(errors, key=lambda name: errors[name])
        return f"store errors: {share:.0%} of attempts, mostly {most}"
    share = added.conflicts / added.attempts
    if share >= CONFLICTS:
        return f"conflicts: {share:.0%} of attempts came later than another function's"
    return ""
