"""Texts about the bottleneck of a run."""

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from serverless_bench.base.units import format_count, format_rate, format_size
from serverless_bench.features.bottleneck.causes import Bottleneck, bottleneck
from serverless_bench.metrics.part import Part, Position, Reduced, Rows

if TYPE_CHECKING:
    from serverless_bench.metrics.summary import Summary

CAUSE_WORDS: Final[Mapping[str, str]] = {
    "answers": "waiting for answers",
    "client": "client",
    "function_network": "the function's own network",
    "interpreter_lock": "the interpreter lock",
    "launch": "launch",
    "other_functions": "waiting for other functions",
    "own_code": "the user's own code",
    "pauses": "pauses between operations",
    "rate_limit": "the rate of bytes",
    "retries": "failed requests and their retries",
    "schedule": "the rate that was asked for",
    "store_or_network": "store or network",
    "unknown": "not known",
}
_SCOPES: Final = {
    "connection": "its connection",
    "function": "its own network",
    "all": "all functions together",
}
_IDLE: Final = {
    "cold_start": "loading code",
    "delivery": "collecting records",
    "launch": "launching",
    "unfilled": "nothing submitted",
}
_AT_ONCE_BYTES: Final = 12 << 10
"""Size up to which the kernel takes an object at once, wherever the bytes are then."""
NOTABLE_IDLE: Final = 0.2
"""Smallest share of idle slot time that is reported."""
MOSTLY_IDLE: Final = 0.5
"""Minimum share of idle slot time at which it is the main bottleneck of the run."""


class _BottleneckPart(Part[Bottleneck]):
    name = "bottleneck"
    after = "clocks"
    position = Position.LIMIT
    displaces = False

    def compute(self, reduced: Reduced) -> Bottleneck:
        """Return the bottlenecks of the functions."""
        return bottleneck(reduced.run, reduced.good)

    def rows(self, figures: Bottleneck, summary: "Summary") -> Rows:
        """Yield a row with the causes, if they are known."""
        if text := bounded_by(summary):
            yield "bounded by", text

    brief = rows


PART: Final = _BottleneckPart()


def bounded_by(summary: "Summary") -> str | None:
    """Describe the bottlenecks of functions and the idle time of slots; None if unknown."""
    bottleneck = PART.of(summary) or Bottleneck()
    total, idle = sum(bottleneck.functions.values()), _idle_slots(bottleneck.slots)
    if not total:
        return idle or None
    # With polling workers, functions are not launched.
    names = {**CAUSE_WORDS, **({"launch": "waiting for a worker"} if summary.polled else {})}
    if summary.bytes <= _AT_ONCE_BYTES * summary.operations:
        names["answers"] += " (or for room in a full network, which small objects do not show)"
    scopes = [_SCOPES[scope] for scope in bottleneck.rate_limit_of or ()]
    if len(scopes) < len(_SCOPES):
        names["rate_limit"] += f", limited for {' or '.join(scopes)}"
    causes = Counter(bottleneck.functions).most_common()
    text = ", ".join(f"{names[cause]}: {count:,}" for cause, count in causes)
    parts = [f"{text} of {format_count(total, 'function')}"]
    if idle:
        parts.insert(0 if idle_share(bottleneck.slots) >= MOSTLY_IDLE else 1, idle)
    if summary.neighbours is not None:
        others = format_count(summary.neighbours.commands, "other command")
        parts.append(f"store shared with {others}")
    if bottleneck.client_share is not None:
        most = bottleneck.client_share_most
        upper = "" if most is None else f" to {most:.0%}"
        parts.append(f"processor busy or awaited {bottleneck.client_share:.0%}{upper} of the time")
    if bottleneck.lock_share is not None:
        parts.append(f"Python's interpreter lock held {bottleneck.lock_share:.0%} of the time")
    if bottleneck.sustained_bytes_per_s is not None and bottleneck.burst_bytes is not None:
        parts.append(
            f"burst {format_size(round(bottleneck.burst_bytes))},"
            f" then {format_rate(bottleneck.sustained_bytes_per_s)} each"
        )
    return "; ".join(parts)


def _idle_slots(slots: Mapping[str, float] | None) -> str:
    """Describe the share of idle slot time and its reasons, if it is notable."""
    if slots is None or idle_share(slots) < NOTABLE_IDLE:
        return ""
    ordered = sorted(_IDLE, key=slots.__getitem__, reverse=True)
    parts = [f"{_IDLE[reason]} {slots[reason]:.0%}" for reason in ordered if slots[reason] >= 0.01]
    return f"slots idle {idle_share(slots):.0%} of the time ({', '.join(parts)})"


def idle_share(slots: Mapping[str, float] | None) -> float:
    """Return the share of idle slot time."""
    return sum(slots[reason] for reason in _IDLE) if slots else 0.0
