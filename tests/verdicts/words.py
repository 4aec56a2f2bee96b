"""Verdicts as answers: the only place that knows the words of reports."""

from collections.abc import Mapping
from math import inf
from typing import Any, Final

from serverless_bench.features.bottleneck.part import MOSTLY_IDLE, NOTABLE_IDLE

LAUNCH: Final = "launch"
IDLE: Final = "slots idle"
OWN_CODE: Final = "user code"
OTHER_FUNCTIONS: Final = "other functions"
CPU: Final = "CPU"
LOCK: Final = "GIL"
SCHEDULE: Final = "schedule"
FUNCTION: Final = "limit per function"
CONNECTION: Final = "limit per connection"
ALL: Final = "limit of all"
LATENCY: Final = "time to answer"
QUEUE: Final = "queue of requests"
THROTTLED: Final = "refusals (503)"

Answer = frozenset[str]
"""Causes of which at least one is reported as true; empty if nothing is reported."""
NOT_KNOWN: Final[Answer] = frozenset()
ANSWERS: Final[Mapping[str, Answer]] = {
    "launch": frozenset({LAUNCH}),
    "client": frozenset({CPU}),
    "interpreter_lock": frozenset({LOCK}),
    "schedule": frozenset({SCHEDULE}),
    "function_network": frozenset({FUNCTION}),
    "own_code": frozenset({OWN_CODE}),
    "other_functions": frozenset({OTHER_FUNCTIONS}),
    "pauses": frozenset({OWN_CODE}),
    # For the scopes that the report leaves open; see ``answers``.
    "rate_limit": frozenset({FUNCTION, CONNECTION, ALL}),
    "retries": frozenset({THROTTLED}),
    "answers": frozenset({LATENCY, QUEUE}),
    "store_or_network": NOT_KNOWN,
    "unknown": NOT_KNOWN,
}
"""Answer of each name below ``bottleneck.functions``. A residual, which remains when other causes
are excluded, is ``NOT_KNOWN``.
"""


_SCOPES: Final = {"connection": CONNECTION, "function": FUNCTION, "all": ALL}
_IDLE: Final = {"delivery": IDLE, "unfilled": IDLE, "launch": LAUNCH, "cold_start": LAUNCH}


def said_words(report: Mapping[str, Any]) -> Mapping[str, int]:
    """Return the number of functions by name of their bottleneck, from a report as JSON."""
    return {name: number for name, number in report["bottleneck"]["functions"].items() if number}


def answers(report: Mapping[str, Any]) -> list[Answer]:
    """Return the answer for every function."""
    scopes = report["bottleneck"]["rate_limit_of"] or ()
    named = {**ANSWERS, "rate_limit": frozenset(_SCOPES[scope] for scope in scopes)}
    if report["workload"] == "write":
        # The process that accepted the bytes may be slow to pass them on.
        named["answers"] |= {CONNECTION, ALL}
    slots = report["bottleneck"]["slots"] or {}
    idle = {reason: slots.get(reason, 0.0) for reason in _IDLE}
    text = [named[name] for name, number in said_words(report).items() for _ in range(number)]
    # Below that reports do not name idle slots; above half of the time they come first.
    if sum(idle.values()) >= MOSTLY_IDLE:
        return [frozenset({_IDLE[max(idle, key=lambda reason: idle[reason])]})] * len(text)
    if sum(idle.values()) >= NOTABLE_IDLE:
        reasons = frozenset(_IDLE[reason] for reason, share in idle.items() if share >= 0.01)
        return [answer | reasons if answer else answer for answer in text]
    return text


NO_LEVEL: Final = "no level holds"
NO_DIFFERENCE: Final = "no difference"
A_FIFTH: Final = "a fifth slower"
ANOTHER: Final = "another difference"
ELSEWHERE: Final = "a limit elsewhere"
MADE_WORSE: Final = "slower by second requests"
LIMITS: Final = {f"limit at {rate}/s": rate for rate in (25, 50, 100, 200, 400, 800)}
_FIFTH: Final = 0.8
_NEAR_LIMIT: Final = 1.1
"""A limit depends on the minute and on this machine: a known one is met within a tenth."""
_NEAR_RATIO: Final = 1.05
_DIFFERENCES: Final[Mapping[str, Answer]] = {
    "same": frozenset({NO_DIFFERENCE}),
    "passed": frozenset({NO_DIFFERENCE}),
    "slower": frozenset({A_FIFTH}),
    "regressed": frozenset({A_FIFTH}),
    "undecided": NOT_KNOWN,
    "not enough runs": NOT_KNOWN,
}


def load_limited(limit: str) -> str:
    """Return the name of a limit that is attributed to the load."""
    return f"{limit} of the load"


def limit_answer(report: Mapping[str, Any]) -> Answer:
    """Return the limits that the report of a search leaves open."""
    if report["ended"] == "undecided":
        return NOT_KNOWN
    if report["ended"] in {"lowest", "none"}:
        return frozenset({NO_LEVEL})
    low, high = report["low"] or 0, report["high"] or inf
    near = frozenset(
        name
        for name, rate in LIMITS.items()
        if low <= rate * _NEAR_LIMIT and rate / _NEAR_LIMIT <= high
    )
    limits = near or {ELSEWHERE}
    return frozenset(map(load_limited, limits) if report["load_limited"] else limits)


def difference_answer(verdict: str, interval: tuple[float, float] | None) -> Answer:
    """Return the difference that a verdict on two sides states.

    Parameters
    ----------
    verdict
        Verdict of ``ab``, ``compare`` or ``history check``.
    interval
        Interval of the ratio; None if there is none.
    """
    answer = _DIFFERENCES.get(verdict, frozenset({ANOTHER}))
    if A_FIFTH in answer and interval is not None:
        low, high = interval
        if not (low <= _FIFTH * _NEAR_RATIO and high >= _FIFTH / _NEAR_RATIO):
            return frozenset({ANOTHER})
    return answer
