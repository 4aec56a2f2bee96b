"""The verdict of a report as answers: the only place that knows the words of reports."""

from collections.abc import Mapping
from typing import Any, Final

from serverless_bench.reporters.bounded_by import MOSTLY_IDLE, NOTABLE_IDLE

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
    "own_code": frozenset({OWN_CODE}),
    # Of the scopes that the report leaves open; see ``answers``.
    "rate_limit": frozenset({FUNCTION, CONNECTION, ALL}),
    "retries": frozenset({THROTTLED}),
    "answers": frozenset({LATENCY, QUEUE}),
    "store_or_network": NOT_KNOWN,
    "unknown": NOT_KNOWN,
}
"""Answer of each name below ``bottleneck.functions``. A residual, which is what remains when
other causes are excluded, is ``NOT_KNOWN``."""


_SCOPES: Final = {"connection": CONNECTION, "function": FUNCTION, "all": ALL}
_IDLE: Final = {"delivery": IDLE, "unfilled": IDLE, "launch": LAUNCH, "cold_start": LAUNCH}


def said_words(report: Mapping[str, Any]) -> Mapping[str, int]:
    """Return the number of functions by name of their bottleneck, from a report as JSON."""
    return {name: number for name, number in report["bottleneck"]["functions"].items() if number}


def answers(report: Mapping[str, Any]) -> list[Answer]:
    """Return the answer for every function."""
    scopes = report["bottleneck"]["rate_limit_of"] or ()
    named = {**ANSWERS, "rate_limit": frozenset(_SCOPES[scope] for scope in scopes)}
    slots = report["bottleneck"]["slots"] or {}
    idle = {reason: slots.get(reason, 0.0) for reason in _IDLE}
    said = [named[name] for name, number in said_words(report).items() for _ in range(number)]
    # Below that reports do not name idle slots; above a half of the time they come first.
    if sum(idle.values()) >= MOSTLY_IDLE:
        return [frozenset({_IDLE[max(idle, key=lambda reason: idle[reason])]})] * len(said)
    if sum(idle.values()) >= NOTABLE_IDLE:
        reasons = frozenset(_IDLE[reason] for reason, share in idle.items() if share >= 0.01)
        return [answer | reasons if answer else answer for answer in said]
    return said
