"""Processor time of measurements; memory and threads of libraries that were watched. Pure."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from serverless_bench.analysis.timeline import counted, measured_operations
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import (
    ABSENT,
    EARLIEST,
    ChangedTable,
    Ints,
    Mask,
    Percentiles,
    Table,
    at_percentiles,
    is_text,
    largest_by,
    least_by,
)
from serverless_bench.units import GIB, NS_PER_S


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryUsage:
    """What the operations of one kind used; analysis/figures.toml defines each figure."""

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
    """Return what was used by each kind of operation that was watched.

    Parameters
    ----------
    run
        A saved run.
    good
        Which operations succeeded and count, shape ``(operations,)``.
    """
    usages = run.usages
    if not usages or not len(usages["operation"]):
        return ()
    row = run.operation_rows(usages)
    kinds = run.operations["kind"][row]
    found = dict.fromkeys(kinds[good[row]].tolist())
    return tuple(_usage(run, kind, row, good[row] & is_text(kinds, kind)) for kind in found)


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


def measured_cpu_s(run: Run) -> float | None:
    """Return the processor time that functions that count used for measured operations.

    None unless it is known of all of them: a worker that does not say where the warm-up
    ended, or whose threads were not through with it when the first measurement began, has
    used an unknown share of its time for it.
    """
    functions, counts = run.functions, counted(run)
    if not counts.any() or not (functions["max_rss_bytes"][counts] > 0).all():
        return None
    measured_ns = functions["measured_cpu_ns"]
    whole_ns = np.rint((functions["cpu_user_s"] + functions["cpu_sys_s"]) * NS_PER_S)
    warm_until, measured_from = _ends_of_warmup(run)
    is_known = (measured_ns != ABSENT) & (warm_until <= measured_from)
    # Without a warm-up, or a gate that is polled, everything was for measurements.
    is_all = (
        (measured_ns == ABSENT) & (warm_until == EARLIEST) & (functions["gate_wait_ns"] == ABSENT)
    )
    if not (is_known | is_all)[counts].all():
        return None
    return float(np.where(is_known, measured_ns, whole_ns)[counts].sum()) / NS_PER_S


def all_measured(run: Run) -> Run:
    """Return the run as if its warm-up had been measured."""

    def column(name: str, operations: Table) -> NDArray[Any]:
        return np.zeros_like(operations[name]) if name == "warmup" else operations[name]

    measured_ns = run.functions["measured_cpu_ns"].copy()
    measured_ns[run.operations["function"][run.operations["warmup"] > 0]] = ABSENT
    return replace(
        run,
        operations=ChangedTable(run.operations, column),
        functions={**run.functions, "measured_cpu_ns": measured_ns},
    )


def _ends_of_warmup(run: Run) -> tuple[Ints, Ints]:
    """Return when each function's last warm-up ended and its first measurement began."""
    operations, count = run.operations, len(run.functions["index"])
    function, warm = operations["function"], operations["warmup"] > 0
    measured = measured_operations(run)
    return (
        largest_by(function[warm], operations["end_ns"][warm], count),
        least_by(function[measured], operations["start_ns"][measured], count),
    )
