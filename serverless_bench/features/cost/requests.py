"""Count the requests of a run that Amazon S3 bills, by their origin. Pure.

Responses with a 5xx status are free (Amazon S3 user guide, "Billing for Amazon S3 error
responses"), and so are deletions and aborted uploads; attempts without a response are counted.
HEAD has the price of GET; COPY and LIST have the price of PUT (Amazon S3 pricing).
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from serverless_bench.features.cost.forecast import CONTROL_GETS, CONTROL_LISTS
from serverless_bench.job.abilities import ThroughLibrary
from serverless_bench.job.operations import OperationKind
from serverless_bench.job.price_classes import FREE, FREE_STATUS, GET_CLASS
from serverless_bench.job.spec import JobSpec
from serverless_bench.rundir.record import InvocationRecord
from serverless_bench.rundir.rows import column
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import ABSENT, Table, is_text

_CALLS: Final = frozenset({"append_array", "create_array", "read_array", "write_array"})
"""Calls of array libraries, which are not requests."""
_UPLOADING: Final = ("put", "upload_part")
_RETRIEVING: Final = ("get",)
_SENDING: Final = (*_UPLOADING, "append_array", "write_array")
_RECEIVING: Final = (*_RETRIEVING, "read_array")


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """Billed requests by kind (put, get, list, upload_part, ...) and purpose."""

    data: Mapping[str, int]
    """Requests of the functions for their operations."""
    overhead: Mapping[str, Mapping[str, int]]
    """``control``: claims and records of the functions, and the driver's requests to find them;
    ``barrier``: announcements and polls of the functions, and the driver's lists, its start object,
    and its GET requests before the deletion; ``probes``: the driver's requests for the store's
    clock, and probes of the functions before the run. Empty parts are omitted, except for
    ``control``.
    """
    moved: Mapping[str, int]
    """Bytes of all requests for data, by kind."""
    kept: Mapping[str, int]
    """Bytes of the successful requests."""
    exact: bool = True
    """Whether the requests are complete: False if a library hides its requests, or if a driver or
    function ended before it could report them.
    """

    @property
    def sent(self) -> int:
        """Bytes that functions sent, including retries."""
        return sum(self.moved[kind] for kind in _SENDING)

    @property
    def received(self) -> int:
        """Bytes that functions received, including retries."""
        return sum(self.moved[kind] for kind in _RECEIVING)

    def billed(self) -> dict[str, Any]:
        """Return requests by price class and bytes of objects, named as in ``BilledUsage``."""
        billed = Counter(
            uploaded_bytes=sum(self.kept[kind] for kind in _UPLOADING),
            retrieved_bytes=sum(self.kept[kind] for kind in _RETRIEVING),
        )
        for part, counts in {"data": self.data, **self.overhead}.items():
            prefix = "control_" if part == "control" else ""
            for name, count in counts.items():
                billed[prefix + ("gets" if name in GET_CLASS else "puts")] += count
        return dict(billed)


def requests_of(run: Run) -> Requests:
    """Return the requests of the driver and of the functions with records."""
    barrier, barrier_known = _barrier(run)
    # A driver reports at its end how it looked for records.
    control_known = run.job.control is None or run.requests is not None
    probes = Counter(head=(run.store_requests or {}).get("head", 0)) + _of_probe(run, "data")
    return _requests(
        run.job,
        run.attempts,
        run.operations,
        {"control": _control(run), "barrier": barrier, "probes": probes},
        exact=barrier_known and control_known and run.drivers_reported and _shows_all(run),
    )


def requests_of_record(record: InvocationRecord, job: JobSpec) -> Requests:
    """Return the requests of a function; those of the driver for its record are assumed."""
    barrier = {"put": record.barrier_puts or 0, "get": record.barrier_gets or 0}
    control: dict[str, int] = {}
    if job.control is not None:
        gets = (record.control_gets or 0) + round(CONTROL_GETS)
        control = {"put": record.control_puts or 0, "get": gets}
    attempts = _table(record.attempts, request="", status=ABSENT, bytes=0)
    operations = _table(record.operations, kind="", size=ABSENT, error=None)
    return _requests(job, attempts, operations, {"control": control, "barrier": barrier})


def _table(rows: Sequence[object], **absent: object) -> Table:
    """Return columns of rows, with a replacement for None."""
    return {
        name: np.array([other if value is None else value for value in column(rows, name)], object)
        for name, other in absent.items()
    }


def _requests(
    job: JobSpec,
    attempts: Table,
    operations: Table,
    overhead: Mapping[str, Mapping[str, int]],
    *,
    exact: bool = True,
) -> Requests:
    """Count attempts, hidden requests of a library, and bytes."""
    requests, status = attempts["request"], attempts["status"]
    size = np.maximum(attempts["bytes"], 0)
    succeeded = (status < 300) & (status != ABSENT)
    moved, kept = dict[str, int](), dict[str, int]()
    for kind in (*_SENDING, *_RECEIVING):
        of_kind = is_text(requests, kind)
        moved[kind], kept[kind] = int(size[of_kind].sum()), int(size[of_kind & succeeded].sum())
    data = Counter(map(str, requests[status < FREE_STATUS]))
    workload = job.declared
    if isinstance(workload, ThroughLibrary):
        good = is_text(operations["error"], None)
        rows = zip(operations["kind"][good], operations["size"][good].tolist(), strict=True)
        done = ((OperationKind(name), count) for name, count in rows)
        data += workload.hidden_requests(job.load, done)
    parts = {part: _some(counts) for part, counts in overhead.items()}
    return Requests(
        data=_some(data),
        overhead={part: some for part, some in parts.items() if some or part == "control"},
        moved=moved,
        kept=kept,
        exact=exact,
    )


def _barrier(run: Run) -> tuple[dict[str, int], bool]:
    functions, driver = run.functions, run.store_requests or {}
    started = functions["start_ns"] != ABSENT
    puts, gets = (functions[name][started] for name in ("barrier_puts", "barrier_gets"))
    # A function that failed before its barrier made no request there, or failed because of it.
    did = functions["duplicate"][started] != 1
    is_complete = "barrier" not in run.job.options or bool((puts[did] != ABSENT).all())
    counts = {
        "put": int(puts[puts != ABSENT].sum()) + driver.get("put", 0),
        "get": int(gets[gets != ABSENT].sum()) + driver.get("get", 0),
        "list": driver.get("list", 0),
    }
    return counts, is_complete


def _control(run: Run) -> Mapping[str, int]:
    if run.job.control is None:
        return {}
    functions = run.functions
    started = functions["start_ns"] != ABSENT
    puts, gets = (functions[name][started].clip(0) for name in ("control_puts", "control_gets"))
    counts = Counter({"put": int(puts.sum()), "get": int(gets.sum())})
    if run.requests is None:
        count = int(started.sum())
        counts += Counter(get=round(CONTROL_GETS * count), list=math.ceil(CONTROL_LISTS * count))
    else:
        counts += Counter(run.requests)
    return counts + _of_probe(run, "control")


def _of_probe(run: Run, part: str) -> Counter[str]:
    """Return the requests of probes of the functions before the run, for data or control."""
    counts = (Counter(probe["requests"].get(part, {})) for probe in run.probed)
    return sum(counts, Counter[str]())


def _shows_all(run: Run) -> bool:
    kinds = run.operations["kind"]
    hidden = run.provenance.get("client", {}).get("attempts") != "exact"
    return not (hidden or is_text(kinds, OperationKind.CALL).any())


def _some(counts: Mapping[str, int]) -> dict[str, int]:
    free = FREE | _CALLS
    return {name: count for name, count in sorted(counts.items()) if count and name not in free}
