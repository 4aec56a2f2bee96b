"""Texts about the bottleneck of a run."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from serverless_bench.base.units import format_count, format_rate, format_size
from serverless_bench.features.bottleneck.causes import Bottleneck, bottleneck
from serverless_bench.metrics.part import Part, Position, Reduced, Rows
from serverless_bench.metrics.summary import Summary

CAUSES: Final[Mapping[str, str]] = {
    "answers": "latency",
    "client": "client CPU",
    "function_network": "network of the function",
    "interpreter_lock": "GIL",
    "launch": "launch",
    "other_functions": "waiting for other functions",
    "own_code": "user code",
    "pauses": "pauses between operations",
    "rate_limit": "bandwidth",
    "retries": "errors and retries",
    "schedule": "target rate reached",
    "store_or_network": "store or network",
    "unknown": "not known",
}
_SCOPES: Final = {
    "connection": "per connection",
    "function": "per function",
    "all": "shared by all functions",
}
_IDLE: Final = {
    "cold_start": "loading code",
    "delivery": "collecting records",
    "launch": "launching",
    "unfilled": "nothing submitted",
}
_AT_ONCE_BYTES: Final = 12 << 10
"""Size up to which the kernel takes an object at once, wherever the bytes are then."""
CROWDED: Final = 4
"""Functions at once per CPU from which on a report says that fewer cost less."""
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

    def rows(self, figures: Bottleneck, summary: Summary) -> Rows:
        """Yield a row with the causes, if they are known."""
        if text := bottleneck_text(summary):
            yield "bottleneck", text

    def brief(self, figures: Bottleneck, summary: Summary) -> Rows:
        """Yield a row with the most frequent cause."""
        if text := bottleneck_text(summary, mixed=False):
            yield "bottleneck", text


PART: Final = _BottleneckPart()


def bottleneck_text(summary: Summary, *, mixed: bool = True, evidence: bool = True) -> str | None:
    """Describe the bottlenecks of functions and the idle time of slots; None if unknown.

    Parameters
    ----------
    summary
        Figures of the run.
    mixed
        Whether to name all bottlenecks, not only the most frequent one.
    evidence
        Whether to add the use of CPU, GIL and network from which they were derived.
    """
    bottleneck = PART.results_in(summary) or Bottleneck()
    total, idle = sum(bottleneck.functions.values()), _idle_slots(bottleneck.slots)
    if not total:
        return idle or None
    names, causes = _labels(summary, bottleneck), Counter(bottleneck.functions).most_common()
    texts = [f"{names[cause]} ({count:,} of {total:,} functions)" for cause, count in causes]
    if not mixed and len(texts) > 1:
        return f"{texts[0]}; details: --full"
    parts = [", ".join(texts), *_details(summary, bottleneck if evidence else Bottleneck())]
    if idle:
        parts.insert(0 if idle_share(bottleneck.slots) >= MOSTLY_IDLE else 1, idle)
    return "; ".join(parts)


def main_bottleneck(summary: Summary) -> str | None:
    """Return the label of the most frequent bottleneck of functions; None if it is not known."""
    found = PART.results_in(summary) or Bottleneck()
    for cause, _ in Counter(found.functions).most_common(1):
        return _labels(summary, found)[cause] if cause != "unknown" else None
    return None


def _labels(summary: Summary, bottleneck: Bottleneck) -> dict[str, str]:
    """Return the labels of the causes, as far as this run tells."""
    # With polling workers, functions are not launched.
    names = {**CAUSES, **({"launch": "waiting for a worker"} if summary.polled else {})}
    if summary.bytes <= _AT_ONCE_BYTES * summary.operations:
        names["answers"] += " or a full network, which small objects do not show"
    scopes = [_SCOPES[scope] for scope in bottleneck.rate_limit_of or ()]
    if len(scopes) < len(_SCOPES):
        names["rate_limit"] += f" {' or '.join(scopes)}"
    return names


def _details(summary: Summary, bottleneck: Bottleneck) -> Iterator[str]:
    """Yield what else is known about the limits of a run."""
    if summary.neighbours is not None:
        yield f"store shared with {format_count(summary.neighbours.commands, 'other command')}"
    if bottleneck.client_share is not None:
        upper = "" if (most := bottleneck.client_share_most) is None else f" to {most:.0%}"
        yield f"CPU {bottleneck.client_share:.0%}{upper} (running or runnable)"
    if "client" in bottleneck.functions and (bottleneck.workers_per_cpu or 0) >= CROWDED:
        yield (
            f"{bottleneck.workers_per_cpu:.3g} functions at once per CPU, which cost more than"
            " fewer with more --threads"
        )
    if bottleneck.lock_share is not None:
        yield f"GIL held {bottleneck.lock_share:.0%} of the time"
    if bottleneck.sustained_bytes_per_s is not None and bottleneck.burst_bytes is not None:
        yield (
            f"burst {format_size(round(bottleneck.burst_bytes))},"
            f" then {format_rate(bottleneck.sustained_bytes_per_s)} each"
        )


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
