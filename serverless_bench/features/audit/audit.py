"""All checks of a run against a request log."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Final

from serverless_bench.features.audit.bytes_check import check_attempts, check_bytes
from serverless_bench.features.audit.job_check import check_job
from serverless_bench.features.audit.matching import MARGIN_NS, RunRequests, match, requests_of_run
from serverless_bench.features.audit.sources import ReportedRun, read_reported_run, read_request_log
from serverless_bench.features.audit.timing_check import (
    check_clocks,
    check_latencies,
    check_schedule,
)
from serverless_bench.features.check.audited import Audit, Billed, Discrepancies, Discrepancy
from serverless_bench.features.loopback.request_log import StoreRequest

_NAMES: Final = {"list_objects": "list", "list_uploads": "list", "head_bucket": "head"}
_UPLOADS: Final = {"create_multipart": 1, "complete_multipart": -1, "abort_multipart": -1}
_DELETING: Final = frozenset({"delete", "delete_objects"})
_AROUND: Final = ("control", "barrier", "probes")


def billed(requests: Sequence[StoreRequest]) -> Counter[str]:
    """Count billable requests by the kinds of the bill; deletions, aborts and 5xx are free."""
    return Counter(
        _NAMES.get(request.operation or "", request.operation or "copy")
        for request in requests
        if request.operation not in {"abort_multipart", "delete", "delete_objects"}
        and (request.status is None or request.status < 500)
    )


def check_bill(
    run: ReportedRun, requests: RunRequests, bill: Mapping[str, int], *, exact: bool
) -> Discrepancies:
    """Yield kinds of requests with different numbers in the bill and at the store.

    Parameters
    ----------
    run, requests
        The run and its requests.
    bill
        The bill's requests, by kind, and as ``control``, ``barrier`` and ``probes``.
    exact
        Whether the bill is complete.
    """
    # Requests of functions without a record are not in the bill.
    exact = exact and not (run.lost or run.again)
    around = {name: sum(billed(getattr(requests, name)).values()) for name in _AROUND}
    # An attempt without a response is billed, although it may have been rejected or lost.
    unsure = Counter(
        attempt["request"]
        for function in run.functions
        for attempts in function.attempts.values()
        for attempt in attempts
        if attempt["status"] is None
    )
    data = Counter({kind: count for kind, count in bill.items() if kind not in _AROUND})
    seen_by_store = billed(requests.data)
    if not run.exact:
        # A library may split a put into parts; the price of these requests is the same.
        data, seen_by_store, unsure = _classes(data), _classes(seen_by_store), _classes(unsure)
    for kind in sorted({*seen_by_store, *data}):
        count, saw = data[kind], seen_by_store[kind]
        if count - unsure[kind] > saw or (exact and count < saw):
            yield Discrepancy("bill", f"{count} {kind} are billed, the store saw {saw}")
    for name, saw in around.items():
        count = bill.get(name, 0)
        # Two workers may race to claim an event, and the slower one leaves no record of the
        # attempt.
        races = name == "control" and run.polled
        if count > saw or (exact and not races and count < saw):
            text = f"{count} requests are billed for {name}, the store saw {saw}"
            yield Discrepancy("bill", text)


def _classes(kinds: Mapping[str, int]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for kind, count in kinds.items():
        counts["of the GET class" if kind in {"get", "head"} else "of the PUT class"] += count
    return counts


def check_probes(run: ReportedRun, requests: RunRequests) -> Discrepancies:
    """Yield requests for the store's clock that the store did not receive."""
    looks = (
        request for request in requests.probes if request.ok and request.operation == "head_bucket"
    )
    free = sorted(request.head_ns for request in looks)
    for sent_ns, received_ns, *_ in run.probes:
        inside = [ns for ns in free if sent_ns - MARGIN_NS <= ns <= received_ns + MARGIN_NS]
        if inside:
            free.remove(inside[0])
        else:
            yield Discrepancy("requests", "the driver's request for the clock is missing")


def leftovers(run: ReportedRun, requests: Sequence[StoreRequest]) -> list[str]:
    """Return undeleted keys of the run, including keys of open uploads."""
    target, control = run.job["target"], run.job.get("control")
    folders = [(target["bucket"], f"{target['prefix']}{run.run_id}/barrier/")]
    if control is not None:
        below = (f"{run.run_id}/", f"events/{run.run_id}/")
        folders += [(control["bucket"], control["prefix"] + folder) for folder in below]
    remaining: dict[tuple[str, str], None] = {}
    uploads: Counter[str] = Counter()
    for request in requests:
        is_of_run = request.bucket == target["bucket"] and request.key in run.ledger
        if not request.ok:
            continue
        if is_of_run or any(request.bucket == b and request.key.startswith(f) for b, f in folders):
            uploads[request.key] += _UPLOADS.get(request.operation or "", 0)
            if request.operation in {"copy", "put", "complete_multipart"}:
                remaining[request.bucket, request.key] = None
        for key in (request.key, *request.keys) if request.operation in _DELETING else ():
            remaining.pop((request.bucket, key), None)
    return [*(key for _, key in remaining), *(key for key, count in uploads.items() if count > 0)]


def audit_file(
    path: Path, request_log: Path, *, billed: Billed | None = None, cleaned: bool = False
) -> Audit:
    """Compare the run in ``path`` with a file of ``sbench serve --request-log``.

    Raises
    ------
    ArchiveError
        If the directory holds no run.
    UsageError
        If the request log cannot be read.
    """
    return audit(path, read_request_log(request_log), billed=billed, cleaned=cleaned)


def audit(
    path: Path,
    requests: Sequence[StoreRequest],
    *,
    billed: Billed | None = None,
    cleaned: bool = False,
) -> Audit:
    """Compare the run in ``path`` with a request log.

    Parameters
    ----------
    path
        The run directory.
    requests
        All requests to the store, including those of other runs.
    billed
        The bill; None if the run has none.
    cleaned
        Whether all objects of the run should have been deleted.

    Raises
    ------
    ArchiveError
        If the directory holds no run.
    """
    run = read_reported_run(path)
    requests_of_this_run = requests_of_run(run, requests)
    matches = match(run, requests_of_this_run)
    remaining = leftovers(run, requests)
    checks = chain(
        check_job(run, requests_of_this_run, matches),
        check_attempts(run, matches),
        check_bytes(run, requests_of_this_run, matches),
        check_latencies(run, requests_of_this_run, matches),
        check_clocks(run, matches),
        check_schedule(run, matches),
        check_probes(run, requests_of_this_run),
        ()
        if billed is None
        else check_bill(run, requests_of_this_run, billed.requests, exact=billed.exact),
        (Discrepancy("left", "was not deleted", key) for key in remaining if cleaned),
    )
    return Audit(
        differences=tuple(checks),
        requests={
            name: len(getattr(requests_of_this_run, name))
            for name in ("data", "barrier", "control", "probes")
        },
        matched=sum(map(len, matches.of_operation.values())),
        by_key_and_time=requests_of_this_run.without_worker,
        not_compared=len(requests_of_this_run.unrecorded),
        left=tuple(remaining),
    )
