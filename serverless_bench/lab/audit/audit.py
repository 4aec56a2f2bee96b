"""Everything that a witness can say about a run."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Final

from serverless_bench.lab.audit.bytes_check import check_attempts, check_bytes
from serverless_bench.lab.audit.job_check import check_job
from serverless_bench.lab.audit.matching import MARGIN_NS, RunRequests, match, requests_of_run
from serverless_bench.lab.audit.sources import (
    ReportedRun,
    read_reported_run,
    read_witness,
)
from serverless_bench.lab.audit.timing_check import check_clocks, check_latencies, check_schedule
from serverless_bench.lab.loopback.witness import StoreRequest
from serverless_bench.rundir.audited import Audit, Billed, Discrepancies, Discrepancy

_FREE: Final = frozenset({"abort_multipart", "delete", "delete_objects"})
_NAMES: Final = {"list_objects": "list", "list_uploads": "list", "head_bucket": "head"}
_UPLOADS: Final = {"create_multipart": 1, "complete_multipart": -1, "abort_multipart": -1}
_MADE: Final = frozenset({"copy", "put", "complete_multipart"})
_GONE: Final = frozenset({"delete", "delete_objects"})
_GET_CLASS: Final = frozenset({"get", "head"})
_AROUND: Final = ("control", "gate", "probes")


def billed(requests: Sequence[StoreRequest]) -> Counter[str]:
    """Count requests that cost something, by the words of the bill: no deletion, abort or 5xx."""
    return Counter(
        _NAMES.get(one.operation or "", one.operation or "copy")
        for one in requests
        if one.operation not in _FREE and (one.status is None or one.status < 500)
    )


def check_bill(
    run: ReportedRun, requests: RunRequests, bill: Mapping[str, int], *, exact: bool
) -> Discrepancies:
    """Yield kinds of requests of which the bill has others than the store saw.

    Parameters
    ----------
    run, requests
        The run, and its requests.
    bill
        The bill's requests, by kind, and as ``control``, ``gate`` and ``probes``.
    exact
        Whether the bill says that these are all of them.
    """
    # What left no record is in no bill.
    exact = exact and not (run.lost or run.again)
    around = {name: sum(billed(getattr(requests, name)).values()) for name in _AROUND}
    # An attempt without a response is billed: it may have been refused, or never have come.
    unsure = Counter(
        attempt["request"]
        for function in run.functions
        for attempts in function.attempts.values()
        for attempt in attempts
        if attempt["status"] is None
    )
    data = Counter({kind: count for kind, count in bill.items() if kind not in _AROUND})
    there = billed(requests.data)
    if not run.exact:
        # A library puts in parts what it was to put; what each costs is the same.
        data, there, unsure = _classes(data), _classes(there), _classes(unsure)
    for kind in sorted({*there, *data}):
        count, saw = data[kind], there[kind]
        if count - unsure[kind] > saw or (exact and count < saw):
            yield Discrepancy("bill", f"{count} {kind} are billed, the store saw {saw}")
    for name, saw in around.items():
        count = bill.get(name, 0)
        # Two workers may try to claim one event, and who is slower leaves no record of that.
        races = name == "control" and run.polled
        if count > saw or (exact and not races and count < saw):
            text = f"{count} requests are billed for {name}, the store saw {saw}"
            yield Discrepancy("bill", text)


def _classes(kinds: Mapping[str, int]) -> Counter[str]:
    found: Counter[str] = Counter()
    for kind, count in kinds.items():
        found["of the GET class" if kind in _GET_CLASS else "of the PUT class"] += count
    return found


def check_probes(run: ReportedRun, requests: RunRequests) -> Discrepancies:
    """Yield looks at the store's clock that the store did not have."""
    looks = (one for one in requests.probes if one.ok and one.operation == "head_bucket")
    free = sorted(one.head_ns for one in looks)
    for sent_ns, received_ns, *_ in run.probes:
        inside = [ns for ns in free if sent_ns - MARGIN_NS <= ns <= received_ns + MARGIN_NS]
        if inside:
            free.remove(inside[0])
        else:
            yield Discrepancy("requests", "the driver's look at the clock was not seen")


def leftovers(run: ReportedRun, requests: Sequence[StoreRequest]) -> list[str]:
    """Return what the run made and nobody deleted: keys, and keys of open uploads."""
    target, control = run.job["target"], run.job.get("control")
    folders = [(target["bucket"], f"{target['prefix']}{run.run_id}/gate/")]
    if control is not None:
        below = (f"{run.run_id}/", f"events/{run.run_id}/")
        folders += [(control["bucket"], control["prefix"] + folder) for folder in below]
    there: dict[tuple[str, str], None] = {}
    uploads: Counter[str] = Counter()
    for one in requests:
        mine = one.bucket == target["bucket"] and one.key in run.ledger
        if not one.ok:
            continue
        if mine or any(one.bucket == b and one.key.startswith(f) for b, f in folders):
            uploads[one.key] += _UPLOADS.get(one.operation or "", 0)
            if one.operation in _MADE:
                there[one.bucket, one.key] = None
        for key in (one.key, *one.keys) if one.operation in _GONE else ():
            there.pop((one.bucket, key), None)
    return [*(key for _, key in there), *(key for key, count in uploads.items() if count > 0)]


def audit_file(
    path: Path, witness: Path, *, billed: Billed | None = None, cleaned: bool = False
) -> Audit:
    """Hold the run in ``path`` against a file that ``sbench serve --witness`` wrote.

    Raises
    ------
    ArchiveError
        If the directory holds no run.
    UsageError
        If the witness cannot be read.
    """
    return audit(path, read_witness(witness), billed=billed, cleaned=cleaned)


def audit(
    path: Path,
    requests: Sequence[StoreRequest],
    *,
    billed: Billed | None = None,
    cleaned: bool = False,
) -> Audit:
    """Hold the run in ``path`` against a witness.

    Parameters
    ----------
    path
        The run directory.
    requests
        Every request that the store saw, of this run and of others.
    billed
        The bill; None if the run has none.
    cleaned
        Whether nothing of the run may be left.

    Raises
    ------
    ArchiveError
        If the directory holds no run.
    """
    run = read_reported_run(path)
    own = requests_of_run(run, requests)
    matches = match(run, own)
    left = leftovers(run, requests)
    checks = chain(
        check_job(run, own, matches),
        check_attempts(run, matches),
        check_bytes(run, own, matches),
        check_latencies(run, own, matches),
        check_clocks(run, matches),
        check_schedule(run, matches),
        check_probes(run, own),
        () if billed is None else check_bill(run, own, billed.requests, exact=billed.exact),
        (Discrepancy("left", "was not deleted", key) for key in left if cleaned),
    )
    return Audit(
        differences=tuple(checks),
        requests={name: len(getattr(own, name)) for name in ("data", "gate", "control", "probes")},
        matched=sum(map(len, matches.of_operation.values())),
        by_key_and_time=own.without_worker,
        not_compared=len(own.unrecorded),
        left=tuple(left),
    )
