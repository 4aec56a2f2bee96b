"""Selection of a run's requests from a request log, and assignment of these to attempts.

Multiple runs may share a file: requests are distinguished by bucket, key and time, and by
worker if the user agent names it.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from serverless_bench.features.audit.sources import ReportedFunction, ReportedRun, Row, by_key
from serverless_bench.features.loopback.request_log import StoreRequest

MARGIN_NS: Final = 2_000_000
"""Maximum offset between two clocks of one machine."""
_LISTINGS: Final = frozenset({"list_objects", "list_versions"})
_QUEUEING: Final = frozenset({"put", "list_objects"})
"""Requests of a driver for the events of the run, apart from deletions."""


@dataclass(slots=True)
class RunRequests:
    """The requests of a run, without those of other runs."""

    data: list[StoreRequest] = field(default_factory=list)
    """Requests of the functions during the run."""
    barrier: list[StoreRequest] = field(default_factory=list)
    control: list[StoreRequest] = field(default_factory=list)
    """Requests for claims, records and events, and the driver's polling for them."""
    probes: list[StoreRequest] = field(default_factory=list)
    """Requests of the driver for the store's clock, including those of another driver at the same
    time, and tests by its functions before the run.
    """
    unrecorded: list[StoreRequest] = field(default_factory=list)
    """Requests for the run's keys during the run, by workers without a record."""
    other_keys: list[StoreRequest] = field(default_factory=list)
    """Requests of the functions for keys that are not part of the job."""
    without_worker: int = 0
    """Number of requests in ``data`` with a user agent that names no worker."""


def requests_of_run(run: ReportedRun, requests: Sequence[StoreRequest]) -> RunRequests:
    """Return the requests of a run."""
    sorter = _Sorter(run)
    for request in requests:
        sorter.take(request)
    return sorter.found


class _Sorter:
    def __init__(self, run: ReportedRun) -> None:
        target, control = run.job["target"], run.job.get("control")
        self.run = run
        self.bucket, self.prefix = target["bucket"], target["prefix"]
        self.barrier = f"{target['prefix']}{run.run_id}/barrier/"
        self.probe = f"{target['prefix']}{run.run_id}/probe/"
        self.gated = run.job.get("barrier") is not None
        control = {"bucket": None, "prefix": ""} if control is None else control
        self.control_bucket, prefix = control["bucket"], control["prefix"]
        folders = (f"{run.run_id}/", f"events/{run.run_id}/", "events/")
        self.control = tuple(prefix + folder for folder in folders)
        """Folders of the run's claims and records, of its events, and of the events of all runs."""
        self.begin_ns = run.created_ns
        starts = [function.start_ns for function in run.functions] if run.probed else []
        first_ns = min(starts, default=0)
        self.asking = [(self.begin_ns, first_ns), *(run.asked_again if run.probed else ())]
        self.end_ns = (
            max([run.last_ns, *(function.end_ns for function in run.functions)]) + MARGIN_NS
        )
        self.probed_ns = max([self.end_ns, *(probe[1] for probe in run.probes)])
        self.workers = {function.worker for function in run.functions}
        self.keys = frozenset(run.keys)
        arrays = run.keys if run.load.get("array") is not None else ()
        self.arrays = tuple(f"{key}/" for key in arrays)
        self.gone: set[str] = set()
        self.found = RunRequests()

    def take(self, request: StoreRequest) -> None:
        selected = self.found
        if request.operation == "create_session":
            # Sessions of directory buckets are created on behalf of other requests, and no record
            # has them.
            return
        if request.bucket == self.control_bucket and request.key.startswith(self.control):
            self._take_control(request)
        elif request.bucket == self.bucket:
            if request.operation == "head_bucket":
                if self.begin_ns <= request.head_ns <= self.probed_ns:
                    selected.probes.append(request)
            elif request.key.startswith(self.probe) or self._was_tried(request):
                selected.probes.append(request)
            elif self._is_of_barrier(request):
                self._take_barrier(request)
            elif self.begin_ns <= request.head_ns <= self.end_ns:
                self._take_data(request)

    def _was_tried(self, request: StoreRequest) -> bool:
        """Return whether a function read an object before a launch, to test its permissions."""
        return request.key in self.keys and any(
            since <= request.head_ns < until for since, until in self.asking
        )

    def _take_barrier(self, request: StoreRequest) -> None:
        # The driver deletes the objects of the barrier; later requests for them come from another
        # driver.
        if request.key not in self.gone:
            self.found.barrier.append(request)
        if request.operation in {"delete", "list_uploads"}:
            self.gone.add(request.key)

    def _take_data(self, request: StoreRequest) -> None:
        selected, is_of_worker = self.found, request.worker in self.workers
        is_own = not self.run.ledger.isdisjoint((request.key, *request.keys))
        if is_own or request.key in self.keys or request.key.startswith(self.arrays):
            if is_of_worker or request.worker is None:
                selected.data.append(request)
                selected.without_worker += request.worker is None
            elif is_own:
                selected.unrecorded.append(request)
        elif is_of_worker and request.operation in _LISTINGS:
            selected.data.append(request)
        elif is_of_worker and at_work(self.run, request):
            selected.other_keys.append(request)

    def _take_control(self, request: StoreRequest) -> None:
        records, events, _ = self.control
        # Workers that poll look for events of any run; no bill includes this.
        if request.key.startswith(records) or (
            request.key.startswith(events) and request.operation in _QUEUEING
        ):
            self.found.control.append(request)

    def _is_of_barrier(self, request: StoreRequest) -> bool:
        if request.operation != "list_uploads":
            return request.key.startswith(self.barrier)
        # This listing starts the driver's deletion of the barrier's objects.
        is_at_end = self.end_ns - 2 * MARGIN_NS <= request.head_ns and request.worker is None
        return self.gated and request.key == self.prefix and is_at_end


def at_work(run: ReportedRun, request: StoreRequest) -> bool:
    """Return whether a recorded function was running; a process may run more than that."""
    return any(
        function.worker == request.worker
        and function.start_ns <= request.head_ns <= function.end_ns
        for function in run.functions
    )


OPERATIONS: Final[Mapping[str, str]] = {"list": "list_objects", "delete_many": "delete_objects"}
"""Operations of the store that have different names in records."""

_OF_LOGS: Final = frozenset({"append", "observe"})
"""Kinds of operations on a key that may be a log with manifests as objects."""


@dataclass(slots=True)
class Matches:
    """Assignment of requests to attempts."""

    of_operation: defaultdict[tuple[int, int], list[tuple[Row, StoreRequest]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    """Pairs of attempt and request, by position of the function and number of the operation."""
    unmatched_attempts: list[tuple[ReportedFunction, Row, Row]] = field(default_factory=list)
    """Attempts without a request at the store, with their function and operation."""
    unmatched_requests: list[StoreRequest] = field(default_factory=list)
    """Requests without an attempt."""


def match(run: ReportedRun, requests: RunRequests) -> Matches:
    """Find the request of each attempt by id, or else by worker, key and time."""
    by_id = defaultdict[str, list[StoreRequest]](list)
    for request_seen in requests.data:
        by_id[request_seen.request_id].append(request_seen)
    keys, unmatched = (
        by_key(requests.data),
        {id(request_seen): request_seen for request_seen in requests.data},
    )
    matches, later = Matches(), list[tuple[int, ReportedFunction, Row, Row]]()

    def take(position: int, attempt: Row, fitting: Iterator[StoreRequest]) -> bool:
        request = next((candidate for candidate in fitting if id(candidate) in unmatched), None)
        if request is None:
            return False
        matches.of_operation[position, attempt["operation"]].append((attempt, request))
        del unmatched[id(request)]
        return True

    for position, function in enumerate(run.functions):
        for operation, attempt in attempts_of(function):
            named = by_id.get(attempt["request_id"] or "", ())
            fitting = (candidate for candidate in named if is_for(operation, attempt, candidate))
            if not take(position, attempt, fitting):
                later.append((position, function, operation, attempt))
    for position, function, operation, attempt in later:
        if not take(position, attempt, _likely(keys, function, operation, attempt)):
            matches.unmatched_attempts.append((function, operation, attempt))
    matches.unmatched_requests = list(unmatched.values())
    return matches


def _likely(
    keys: Mapping[str, Sequence[StoreRequest]],
    function: ReportedFunction,
    operation: Row,
    attempt: Row,
) -> Iterator[StoreRequest]:
    """Yield the requests that may correspond to an attempt without an id."""
    begin_ns, end_ns = attempt["start_ns"] - MARGIN_NS, attempt["end_ns"] + MARGIN_NS
    # The store may read a request after it was given up, for another or because of a stop.
    is_given_up = attempt["error"] in {"hedged", "stopped"}
    key = "" if attempt["request"] == "delete_many" else operation["key"]
    fitting: Iterable[StoreRequest] = keys.get(key, ())
    if operation["kind"] in _OF_LOGS:
        fitting = (request for name in keys if name.startswith(f"{key}/") for request in keys[name])
    yield from (
        request
        for request in (fitting if not attempt["request_id"] else ())
        if is_for(operation, attempt, request)
        and request.worker in {function.worker, None}
        and begin_ns <= request.head_ns
        and (is_given_up or request.head_ns <= end_ns)
        and attempt["status"] in {None, request.status}
    )


def attempts_of(function: ReportedFunction) -> Iterator[tuple[Row, Row]]:
    """Yield each attempt of a function with the operation."""
    operations = {operation["index"]: operation for operation in function.operations}
    for number, attempts in function.attempts.items():
        yield from ((operations[number], attempt) for attempt in attempts)


def is_for(operation: Row, attempt: Row, seen: StoreRequest) -> bool:
    """Return whether a request may be an attempt of an operation."""
    request: str = attempt["request"]
    # The store supports Google's copies, but not those of S3.
    if OPERATIONS.get(request, request) != (seen.operation or "copy"):
        return False
    # Requests for a log go to its manifests.
    manifest = operation["kind"] in _OF_LOGS and seen.key.startswith(f"{operation['key']}/")
    return manifest or seen.key == operation["key"] or request == "delete_many"


def requests_of(pairs: Sequence[tuple[Row, StoreRequest]]) -> list[StoreRequest]:
    """Return the requests of attempts that are ok."""
    return [request for attempt, request in pairs if attempt["error"] is None]
