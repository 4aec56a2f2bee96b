"""Attempts and requests, one to one."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from serverless_bench.audit.claims import Claims, Function, Row
from serverless_bench.audit.scope import MARGIN_NS, Scope
from serverless_bench.audit.witness import Seen

OPERATIONS: Final[Mapping[str, str | None]] = {
    "list": "list_objects",
    "delete_many": "delete_objects",
    "copy": None,
}
"""What the store calls a request that a record calls otherwise."""


@dataclass(slots=True)
class Pairs:
    """Which request each attempt was."""

    of_operation: dict[tuple[int, int], list[tuple[Row, Seen]]] = field(default_factory=dict)
    """By position of the function and number of the operation."""
    alone: list[tuple[Function, Row, Row]] = field(default_factory=list)
    """Attempts that the store did not see, with their function and operation."""
    untold: list[Seen] = field(default_factory=list)
    """Requests that no try tells of."""


def pair(claims: Claims, found: Scope) -> Pairs:
    """Find the request of every attempt: by its id, else by who asked for what and when."""
    return _Pairing(found).pair(claims)


class _Pairing:
    def __init__(self, found: Scope) -> None:
        self.ids: dict[str, list[Seen]] = {}
        self.keys: dict[str, list[Seen]] = {}
        self.left: dict[int, Seen] = {}
        for one in found.data:
            self.keys.setdefault(one.key, []).append(one)
            self.ids.setdefault(one.request_id, []).append(one)
            self.left[id(one)] = one

    def pair(self, claims: Claims) -> Pairs:
        pairs = Pairs()
        later: list[tuple[int, Function, Row, Row]] = []
        for position, function in enumerate(claims.functions):
            for operation, attempt in tries_of(function):
                request = self._named(operation, attempt)
                if request is None:
                    later.append((position, function, operation, attempt))
                else:
                    self._join(pairs, position, attempt, request)
        for position, function, operation, attempt in later:
            request = self._likely(function, operation, attempt)
            if request is None:
                pairs.alone.append((function, operation, attempt))
            else:
                self._join(pairs, position, attempt, request)
        pairs.untold = list(self.left.values())
        return pairs

    def _join(self, pairs: Pairs, position: int, attempt: Row, request: Seen) -> None:
        key = (position, attempt["operation"])
        pairs.of_operation.setdefault(key, []).append((attempt, request))
        del self.left[id(request)]

    def _named(self, operation: Row, attempt: Row) -> Seen | None:
        wanted = self.ids.get(attempt["request_id"] or "", ())
        fitting = [
            one for one in wanted if id(one) in self.left and is_for(operation, attempt, one)
        ]
        return fitting[0] if fitting else None

    def _likely(self, function: Function, operation: Row, attempt: Row) -> Seen | None:
        if attempt["request_id"]:
            return None
        key = "" if attempt["request"] == "delete_many" else operation["key"]
        for one in self.keys.get(key, ()):
            if (
                id(one) in self.left
                and is_for(operation, attempt, one)
                and one.worker in {function.worker, None}
                and attempt["start_ns"] - MARGIN_NS <= one.head_ns <= attempt["end_ns"] + MARGIN_NS
                and (attempt["status"] is None or attempt["status"] == one.status)
            ):
                return one
        return None


def tries_of(function: Function) -> Iterator[tuple[Row, Row]]:
    """Yield each attempt of a function with its operation."""
    operations = {operation["index"]: operation for operation in function.operations}
    for number, attempts in function.attempts.items():
        for attempt in attempts:
            yield operations[number], attempt


def is_for(operation: Row, attempt: Row, one: Seen) -> bool:
    """Tell whether a request may be an attempt of an operation."""
    request: str = attempt["request"]
    same = OPERATIONS.get(request, request) == one.operation
    return same and (one.key == operation["key"] or request == "delete_many")


def requests_of(pairs: Sequence[tuple[Row, Seen]]) -> list[Seen]:
    """Return the requests of successful attempts."""
    return [one for attempt, one in pairs if attempt["error"] is None]
