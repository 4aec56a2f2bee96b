"""The verdict of a report as answers: the only place that knows the words of reports."""

from collections.abc import Mapping
from typing import Any, Final

LAUNCH: Final = "launch"
IDLE: Final = "slots idle"
OWN_CODE: Final = "own code"
PROCESSOR: Final = "processor"
LOCK: Final = "interpreter's lock"
SCHEDULE: Final = "schedule"
FUNCTION: Final = "limit per function"
CONNECTION: Final = "limit per connection"
ALL: Final = "limit of all"
LATENCY: Final = "time to answer"
QUEUE: Final = "queue of requests"
THROTTLED: Final = "refusals (503)"

Answer = frozenset[str]
"""Causes of which at least one is said to be true; empty if nothing is said."""
NOT_KNOWN: Final[Answer] = frozenset()
ANSWERS: Final[Mapping[str, Answer]] = {
    "launch": frozenset({LAUNCH}),
    "client": frozenset({PROCESSOR}),
    "interpreter_lock": frozenset({LOCK}),
    "schedule": frozenset({SCHEDULE}),
    "function_network": frozenset({FUNCTION}),
    # A reader of this word looks for the cause in the store, not in the functions.
    "store": frozenset({CONNECTION, ALL, LATENCY, QUEUE, THROTTLED}),
    "unknown": NOT_KNOWN,
}
"""Answer of each name below ``bottleneck.functions``. A residual, which is what remains when
other causes are excluded, is ``NOT_KNOWN``."""


def said_words(report: Mapping[str, Any]) -> Mapping[str, int]:
    """Return the number of functions by name of their bottleneck, from a report as JSON."""
    return {name: number for name, number in report["bottleneck"]["functions"].items() if number}


def answers(report: Mapping[str, Any]) -> list[Answer]:
    """Return the answer for every function."""
    return [ANSWERS[name] for name, number in said_words(report).items() for _ in range(number)]
