"""Everything that a witness can say about a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from serverless_bench.lab.audit.bill_check import check_bill, check_probes, leftovers
from serverless_bench.lab.audit.bytes_check import check_attempts, check_bytes
from serverless_bench.lab.audit.discrepancy import Discrepancy
from serverless_bench.lab.audit.job_check import check_job
from serverless_bench.lab.audit.matching import match
from serverless_bench.lab.audit.reported_run import read_reported_run
from serverless_bench.lab.audit.run_requests import requests_of_run
from serverless_bench.lab.audit.timing_check import check_clocks, check_latencies, check_schedule
from serverless_bench.lab.audit.witness import StoreRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Billed:
    """What the bill says about requests."""

    requests: Mapping[str, int]
    """By kind, and as ``control``, ``gate`` and ``probes``."""
    exact: bool
    """Whether it says that these are all; else there were at least as many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """A run beside what the store saw of it."""

    differences: tuple[Discrepancy, ...]
    requests: Mapping[str, int]
    """How many requests were looked at: of the functions (``data``), of the ``gate``, below the
    ``control`` prefix, and ``probes`` of the store's clock."""
    matched: int
    """Attempts whose request was found."""
    by_key_and_time: int
    """Requests of functions whose user agent names no worker."""
    not_compared: int
    """Requests on the run's own keys by workers that left no record."""
    left: tuple[str, ...]
    """What the run made, and nobody has deleted."""


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
