"""Everything that a witness can say about a run."""

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from serverless_bench.lab.audit.bill_check import check_bill, check_probes, leftovers
from serverless_bench.lab.audit.bytes_check import check_attempts, check_bytes
from serverless_bench.lab.audit.job_check import check_job
from serverless_bench.lab.audit.matching import match
from serverless_bench.lab.audit.reported_run import read_reported_run
from serverless_bench.lab.audit.run_requests import requests_of_run
from serverless_bench.lab.audit.timing_check import check_clocks, check_latencies, check_schedule
from serverless_bench.lab.audit.witness import StoreRequest, read_witness
from serverless_bench.rundir.audited import Audit, Billed, Discrepancy


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
