"""Which requests of a witness are of a run, and which attempt each of them was.

Several runs may share one file: requests are told apart by bucket, key and time, and by worker,
where the user agent names it.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from serverless_bench.lab.audit.sources import (
    ReportedFunction,
    ReportedRun,
    Row,
    by_key,
)
from serverless_bench.lab.loopback.witness import StoreRequest

MARGIN_NS: Final = 2_000_000
"""What two clocks of one machine may be apart."""
_LAYING: Final = frozenset({"put", "list_objects"})
"""What a driver does among the events of its run, besides deleting them."""


@dataclass(slots=True)
class RunRequests:
    """The requests of one run; those of others are left out."""

    data: list[StoreRequest] = field(default_factory=list)
    """Of its functions, while it ran."""
    gate: list[StoreRequest] = field(default_factory=list)
    control: list[StoreRequest] = field(default_factory=list)
    """Claims, records and events, and looks of the driver for them."""
    probes: list[StoreRequest] = field(default_factory=list)
    """Looks of the driver at the store's clock; of another driver's at the same time, too. And
    what its functions tried before the run."""
    unrecorded: list[StoreRequest] = field(default_factory=list)
    """On its own keys, while it ran, by workers that left no record."""
    other_keys: list[StoreRequest] = field(default_factory=list)
    """Of its functions, on keys that are not of its job."""
    without_worker: int = 0
    """Of ``data``, those whose user agent names none."""


def requests_of_run(run: ReportedRun, requests: Sequence[StoreRequest]) -> RunRequests:
    """Return the requests of a run."""
    sorter = _Sorter(run)
    for one in requests:
        sorter.take(one)
    return sorter.found


class _Sorter:
    def __init__(self, run: ReportedRun) -> None:
        target, control = run.job["target"], run.job.get("control")
        self.run = run
        self.bucket, self.prefix = target["bucket"], target["prefix"]
        self.gate = f"{target['prefix']}{run.run_id}/gate/"
        self.probe = f"{target['prefix']}{run.run_id}/probe/"
        self.gated = run.job.get("gate") is not None
        control = {"bucket": None, "prefix": ""} if control is None else control
        self.control_bucket, prefix = control["bucket"], control["prefix"]
        folders = (f"{run.run_id}/", f"events/{run.run_id}/", "events/")
        self.control = tuple(prefix + folder for folder in folders)
        """Of the run's claims and records, of its events, and of the events of all runs."""
        self.begin_ns = run.created_ns
        starts = [one.start_ns for one in run.functions] if run.probed else []
        first_ns = min(starts, default=0)
        self.asking = [(self.begin_ns, first_ns), *(run.asked_again if run.probed else ())]
        self.end_ns = max([run.last_ns, *(one.end_ns for one in run.functions)]) + MARGIN_NS
        self.probed_ns = max([self.end_ns, *(probe[1] for probe in run.probes)])
        self.workers = {function.worker for function in run.functions}
        self.keys = frozenset(run.keys)
        arrays = run.keys if run.load.get("array") is not None else ()
        self.arrays = tuple(f"{key}/" for key in arrays)
        self.gone: set[str] = set()
        self.found = RunRequests()

    def take(self, one: StoreRequest) -> None:
        found = self.found
        if one.operation == "create_session":
            # Of a directory bucket: made for requests on objects, on whose behalf no record has it.
            return
        if one.bucket == self.control_bucket and one.key.startswith(self.control):
            self._take_control(one)
        elif one.bucket == self.bucket:
            if one.operation == "head_bucket":
                if self.begin_ns <= one.head_ns <= self.probed_ns:
                    found.probes.append(one)
            elif one.key.startswith(self.probe) or self._was_tried(one):
                found.probes.append(one)
            elif self._is_of_gate(one):
                self._take_gate(one)
            elif self.begin_ns <= one.head_ns <= self.end_ns:
                self._take_data(one)

    def _was_tried(self, one: StoreRequest) -> bool:
        """Tell whether a function read an object before a launch, to see whether it may."""
        return one.key in self.keys and any(
            since <= one.head_ns < until for since, until in self.asking
        )

    def _take_gate(self, one: StoreRequest) -> None:
        # The driver deletes what the gate left; who looks for it after that is another one.
        if one.key not in self.gone:
            self.found.gate.append(one)
        if one.operation in {"delete", "list_uploads"}:
            self.gone.add(one.key)

    def _take_data(self, one: StoreRequest) -> None:
        found, mine = self.found, one.worker in self.workers
        is_own = not self.run.ledger.isdisjoint((one.key, *one.keys))
        if is_own or one.key in self.keys or one.key.startswith(self.arrays):
            if mine or one.worker is None:
                found.data.append(one)
                found.without_worker += one.worker is None
            elif is_own:
                found.unrecorded.append(one)
        elif mine and one.operation == "list_objects":
            found.data.append(one)
        elif mine and at_work(self.run, one):
            found.other_keys.append(one)

    def _take_control(self, one: StoreRequest) -> None:
        own, laid, _ = self.control
        # Workers that nobody invokes look for events, of whatever run: that is in no bill.
        if one.key.startswith(own) or (one.key.startswith(laid) and one.operation in _LAYING):
            self.found.control.append(one)

    def _is_of_gate(self, one: StoreRequest) -> bool:
        if one.operation != "list_uploads":
            return one.key.startswith(self.gate)
        # It is how the driver begins to delete what the gate left.
        ends = self.end_ns - 2 * MARGIN_NS <= one.head_ns and one.worker is None
        return self.gated and one.key == self.prefix and ends


def at_work(run: ReportedRun, one: StoreRequest) -> bool:
    """Tell whether a function that left a record was at work; a process may do more than that."""
    return any(
        function.worker == one.worker and function.start_ns <= one.head_ns <= function.end_ns
        for function in run.functions
    )


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
