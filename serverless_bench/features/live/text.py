"""Text of a snapshot of a run, shared by the live view and the log."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from serverless_bench.base.units import bytes_per_second, format_per_s, format_rate
from serverless_bench.features.live.bound_now import UNKNOWN
from serverless_bench.features.live.view import Look, Rate

REMOTE: Final = "remote functions report their operations when they end"
_REMOTE_STATES: Final = {"running": "launched"}
"""A remote function that was launched may not have started: its record is the first sign of it."""


def log_line(look: Look) -> str:
    """Return the state of a run in a line for a log."""
    errors, running = errors_text(look), look.functions["running"]
    about = "≈ " if look.sampled else ""
    parts = (
        f"{look.elapsed_s:.0f} s: {look.phase}, {functions_text(look)}",
        *(f"{rate.kind} {about}{rate_text(rate)}" for rate in look.rates),
        look.sampled,
        ", ".join(look.latencies),
        f"errors {errors}" if errors else "",
        "" if look.cost is None else look.cost.text,
        f"bottleneck: {look.bound}" if has_bound(look) else REMOTE if running else "",
    )
    return "; ".join(filter(None, parts))


def functions_text(look: Look) -> str:
    """Return the number of functions by state; states without functions are omitted."""
    states = look.functions
    total = sum(states.values())
    names = {} if look.is_reporting and not look.sampled else _REMOTE_STATES
    counts = [
        f"{count:,} {names.get(state, state)}"
        for state, count in states.items()
        if count or state == "done"
    ]
    return f"{', '.join(counts)} of {total:,}"


def has_bound(look: Look) -> bool:
    """Return whether there is a bottleneck to report."""
    return look.bound != UNKNOWN or (look.is_reporting and look.functions["running"] > 0)


def errors_text(look: Look) -> str:
    """Return failed attempts by class, and retries; empty if there are none."""
    counts = {name: count for name, count in look.totals.failures.items() if count}
    if look.totals.retries:
        counts["retries"] = look.totals.retries
    return ", ".join(f"{name} {count:,}" for name, count in counts.items())


def rate_text(rate: Rate) -> str:
    """Return operations and bytes per second, or operations until now if the rate is unknown."""
    if rate.per_s is None:
        return f"{rate.operations:,} so far"
    moved = "" if rate.bytes_per_s is None else f", {format_rate(rate.bytes_per_s)}"
    return f"{format_per_s(rate.per_s)}{moved}"


def total_rate(rates: Sequence[Rate]) -> Iterator[Rate]:
    """Yield the sum of the rates of several kinds."""
    rates = [rate for rate in rates if rate.kind != "preparing"]
    if len(rates) > 1:
        per_s = [rate.per_s for rate in rates if rate.per_s is not None]
        bytes_per_s = [rate.bytes_per_s for rate in rates if rate.bytes_per_s is not None]
        yield Rate(
            kind="total",
            per_s=sum(per_s) if per_s else None,
            bytes_per_s=sum(bytes_per_s) if bytes_per_s else None,
            operations=sum(rate.operations for rate in rates),
        )


def sparkline(timeline: Sequence[tuple[int, int, int]], width: int, bars: str) -> str | None:
    """Return the rate since the start as bars, with the peak; None before the first progress.

    Parameters
    ----------
    timeline
        Same as in ``Look``: bytes, or operations if no bytes are transferred.
    width
        Maximum number of bars.
    bars
        Characters from the lowest to the highest.
    """
    import numpy as np

    end_ns, moved, operations = timeline[-1] if timeline else (0, 0, 0)
    if not (moved or operations):
        return None
    column = 1 if moved else 2
    count = min(width, len(timeline) - 1)
    edges = [end_ns * n // count for n in range(count + 1)]
    points = np.array(timeline, dtype=np.float64)
    values = np.interp(edges, points[:, 0], points[:, column])
    reached = [round(value) for value in values.tolist()]
    rates = [
        bytes_per_second(after - before, later - sooner)
        for (before, after), (sooner, later) in zip(pairwise(reached), pairwise(edges), strict=True)
    ]
    top = max(rates)
    high = [
        bars[min(len(bars) - 1, int(rate / top * len(bars)))] if rate else " " for rate in rates
    ]
    most = format_rate(top) if column == 1 else format_per_s(top)
    return f"{''.join(high)} up to {most}"
