"""Compute memory, threads and CPU time of monitored libraries. Pure."""

import numpy as np
from msgspec import Struct

from serverless_bench.base.units import GIB
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import (
    ABSENT,
    Ints,
    Mask,
    Percentiles,
    at_percentiles,
    is_text,
)


class LibraryUsage(Struct, frozen=True, kw_only=True):
    """Resource usage of operations of a kind; figures.toml defines each field."""

    kind: str
    count: int
    bytes: int
    memory_ratio: Percentiles | None
    rss_peak_bytes: int | None
    threads_peak: int | None
    cpu_user_s: float
    cpu_sys_s: float
    cpu_s_per_gib: float | None


def library_usage(run: Run, good: Mask) -> tuple[LibraryUsage, ...]:
    """Return the resource usage of each kind of monitored operation.

    Parameters
    ----------
    run
        A saved run.
    good
        Mask of successful operations that count, shape ``(operations,)``.
    """
    usages = run.usages
    if not usages or not len(usages["operation"]):
        return ()
    row = run.operation_rows(usages)
    kinds = run.operations["kind"][row]
    monitored_kinds = dict.fromkeys(kinds[good[row]].tolist())
    return tuple(
        _usage(run, kind, row, good[row] & is_text(kinds, kind)) for kind in monitored_kinds
    )


def _usage(run: Run, kind: str, row: Ints, wanted: Mask) -> LibraryUsage:
    usages = {name: column[wanted] for name, column in run.usages.items()}
    size = run.operations["bytes"][row[wanted]]
    before, peak = usages["rss_before_bytes"], usages["rss_peak_bytes"]
    seen = (before != ABSENT) & (peak != ABSENT) & (size > 0)
    ratio = np.maximum(peak - before, 0)[seen] / size[seen]
    total = int(size.sum())
    user_s, sys_s = float(usages["cpu_user_s"].sum()), float(usages["cpu_sys_s"].sum())
    return LibraryUsage(
        kind=kind,
        count=len(size),
        bytes=total,
        memory_ratio={
            "min": float(ratio.min()),
            "p50": float(at_percentiles(ratio, (50,))[0]),
            "max": float(ratio.max()),
        }
        if len(ratio)
        else None,
        rss_peak_bytes=_largest(peak),
        threads_peak=_largest(usages["threads_peak"]),
        cpu_user_s=user_s,
        cpu_sys_s=sys_s,
        cpu_s_per_gib=(user_s + sys_s) / (total / GIB) if total else None,
    )


def _largest(column: Ints) -> int | None:
    largest = int(column.max())
    return None if largest == ABSENT else largest
