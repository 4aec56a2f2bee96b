"""Attempts and requests, one to one."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from serverless_bench.lab.audit.reported_run import ReportedFunction, ReportedRun, Row
from serverless_bench.lab.audit.run_requests import MARGIN_NS, RunRequests
from serverless_bench.lab.audit.witness import StoreRequest, by_key

OPERATIONS: Final[Mapping[str, str]] = {"list": "list_objects", "delete_many": "delete_objects"}
"""What the store calls a request that a record calls otherwise."""

_OF_LOGS: Final = frozenset({"append", "observe"})
"""Kinds of operations whose key may be a log, with manifests as its objects."""


@dataclass(slots=True)
class Matches:
    """Which request each attempt was."""

    of_operation: defaultdict[tuple[int, int], list[tuple[Row, StoreRequest]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    """By position of the function and number of the operation."""
    unmatched_attempts: list[tuple[ReportedFunction, Row, Row]] = field(default_factory=list)
    """Attempts that the store did not see, with their function and operation."""
    unmatched_requests: list[StoreRequest] = field(default_factory=list)
    """Requests that no attempt tells of."""


def match(run: ReportedRun, requests: RunRequests) -> Matches:
    """Find the request of every attempt: by its id, else by its worker, key and time."""
    by_id = defaultdict[str, list[StoreRequest]](list)
    for one in requests.data:
        by_id[one.request_id].append(one)
    keys, left = by_key(requests.data), {id(one): one for one in requests.data}
    matches, later = Matches(), list[tuple[int, ReportedFunction, Row, Row]]()

    def take(position: int, attempt: Row, fitting: Iterator[StoreRequest]) -> bool:
        request = next((one for one in fitting if id(one) in left), None)
        if request is None:
            return False
        matches.of_operation[position, attempt["operation"]].append((attempt, request))
        del left[id(request)]
        return True

    for position, function in enumerate(run.functions):
        for operation, attempt in attempts_of(function):
            named = by_id.get(attempt["request_id"] or "", ())
            fitting = (one for one in named if is_for(operation, attempt, one))
            if not take(position, attempt, fitting):
                later.append((position, function, operation, attempt))
    for position, function, operation, attempt in later:
        if not take(position, attempt, _likely(keys, function, operation, attempt)):
            matches.unmatched_attempts.append((function, operation, attempt))
    matches.unmatched_requests = list(left.values())
    return matches


def _likely(
    keys: Mapping[str, Sequence[StoreRequest]],
    function: ReportedFunction,
    operation: Row,
    attempt: Row,
) -> Iterator[StoreRequest]:
    """Yield the requests that an attempt without an id may have been."""
    begin_ns, end_ns = attempt["start_ns"] - MARGIN_NS, attempt["end_ns"] + MARGIN_NS
    key = "" if attempt["request"] == "delete_many" else operation["key"]
    fitting: Iterable[StoreRequest] = keys.get(key, ())
    if operation["kind"] in _OF_LOGS:
        fitting = (one for name in keys if name.startswith(f"{key}/") for one in keys[name])
    for one in fitting if not attempt["request_id"] else ():
        if (
            is_for(operation, attempt, one)
            and one.worker in {function.worker, None}
            and begin_ns <= one.head_ns <= end_ns
            and attempt["status"] in {None, one.status}
        ):
            yield one


def attempts_of(function: ReportedFunction) -> Iterator[tuple[Row, Row]]:
    """Yield each attempt of a function with its operation."""
    operations = {operation["index"]: operation for operation in function.operations}
    for number, attempts in function.attempts.items():
        yield from ((operations[number], attempt) for attempt in attempts)


def is_for(operation: Row, attempt: Row, one: StoreRequest) -> bool:
    """Tell whether a request may be an attempt of an operation."""
    request: str = attempt["request"]
    # The store knows copies of Google's, but not S3's.
    if OPERATIONS.get(request, request) != (one.operation or "copy"):
        return False
    # What is about a log goes to its manifests.
    manifest = operation["kind"] in _OF_LOGS and one.key.startswith(f"{operation['key']}/")
    return manifest or one.key == operation["key"] or request == "delete_many"


def requests_of(pairs: Sequence[tuple[Row, StoreRequest]]) -> list[StoreRequest]:
    """Return the requests of successful attempts."""
    return [one for attempt, one in pairs if attempt["error"] is None]
