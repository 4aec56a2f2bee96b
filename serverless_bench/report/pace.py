"""Texts about the pace of a run: of an open loop, and what held it up."""

from collections.abc import Iterator
from typing import Final

from serverless_bench.base.units import format_count, format_per_s, format_seconds
from serverless_bench.job.spec import batches_words, idle_words
from serverless_bench.metrics.summary import Summary

_NEARLY_ALL: Final = 0.9
"""Share of requests that open a connection at which the report says so."""
_REQUESTS_EACH: Final = 3
"""Requests for each thread of a function from which that is not due to their small number."""


def achieved(summary: Summary) -> Iterator[str]:
    """Yield the pace of an open loop, for the summary line of a report."""
    latencies = summary.latencies
    if not latencies.open_loop or latencies.due is None:
        return
    if latencies.achieved_per_s is not None and latencies.target_per_s is not None:
        done, target = format_per_s(latencies.achieved_per_s), format_per_s(latencies.target_per_s)
        yield f"achieved {done} of {target}"
    if latencies.dropped:
        yield f"{latencies.dropped:,} of {latencies.due:,} operations dropped"


def rates(summary: Summary) -> str:
    """Return the three rates of an open loop."""
    latencies = summary.latencies
    named = {
        "target": latencies.target_per_s,
        "offered": latencies.offered_per_s,
        "achieved": latencies.achieved_per_s,
    }
    return ", ".join(
        f"{name} {format_per_s(rate)}" for name, rate in named.items() if rate is not None
    )


def dropped(summary: Summary) -> Iterator[str]:
    """Yield a line if an open loop did not keep up."""
    latencies = summary.latencies
    if not latencies.dropped:
        return
    waits = (row.queueing.percentiles_s["max"] for row in latencies.by_kind if row.queueing)
    yield (
        f"{latencies.dropped:,} of {latencies.due:,} scheduled operations dropped:"
        f" {format_count(summary.threads, 'thread')} per function could not keep up; the response"
        f" times include their wait, up to {format_seconds(max(waits))} or more"
    )


def waste(summary: Summary) -> Iterator[tuple[str, str]]:
    """Yield threads without objects, further batches, and connections that no request shared."""
    if opened := _opened(summary):
        yield "connections", opened
    if summary.idle_threads:
        yield "idle threads", idle_words(summary.idle_threads, summary.threads)
    if summary.batches_s is not None:
        concurrency = summary.planned_concurrency
        yield "batches", batches_words(summary.requested, concurrency, summary.batches_s)


def _opened(summary: Summary) -> str | None:
    """Return how many requests opened a connection if nearly all did, and more than had to."""
    stats = summary.attempt_stats
    opened, needed = stats.new_connections or 0, summary.requested * summary.threads
    if opened < _NEARLY_ALL * stats.attempts or stats.attempts < _REQUESTS_EACH * needed:
        return None
    return f"{opened:,} of {stats.attempts:,} requests opened a new connection"
