"""Which requests of a witness are of a run: several runs may share one file.

By bucket, key and time; and by worker, where the user agent names it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from serverless_bench.lab.audit.reported_run import ReportedRun
from serverless_bench.lab.audit.witness import StoreRequest

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
