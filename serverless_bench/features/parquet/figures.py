"""Scans of files: the time to the footer, and the bytes read against those needed. Pure."""

import numpy as np
from msgspec import Struct

from serverless_bench.base.units import NS_PER_S
from serverless_bench.features.parquet.workload import WORKLOAD
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import Mask, Percentiles, is_text, percentiles


class Scans(Struct, frozen=True, kw_only=True):
    """Scans that read parts of files; figures.toml defines each figure."""

    files: int
    footer_s: Percentiles | None
    requests_per_file: float
    read_bytes: int
    needed_bytes: int | None
    needed_bytes_per_s: float | None


def scans(run: Run, good: Mask, *, elapsed_s: float | None) -> Scans | None:
    """Return the results of scans; None without any.

    Parameters
    ----------
    run
        A saved run.
    good
        Mask of the successful operations that count.
    elapsed_s
        Duration of the run; None omits rates.
    """
    operations, attempts = run.operations, run.attempts
    done = good & is_text(operations["kind"], "scan")
    files, plan = int(done.sum()), WORKLOAD.scan(run.job)
    if not files:
        return None
    # Each file that sbench did not write has a layout of its own.
    needed_bytes = None if plan is None else files * plan.needed_bytes
    row = run.operation_rows(attempts)
    answered = np.flatnonzero(done[row] & is_text(attempts["error"], None))
    scan, first, count = np.unique(row[answered], return_index=True, return_counts=True)
    # The requests for the footer precede all others.
    last = answered[first + np.minimum(plan.footer_requests if plan else 1, count) - 1]
    footer_s = percentiles((attempts["end_ns"][last] - operations["start_ns"][scan]) / NS_PER_S)
    return Scans(
        files=files,
        footer_s=None if plan is None else footer_s,
        requests_per_file=len(answered) / files,
        read_bytes=int(operations["bytes"][done].sum()),
        needed_bytes=needed_bytes,
        needed_bytes_per_s=needed_bytes / elapsed_s if elapsed_s and needed_bytes else None,
    )
