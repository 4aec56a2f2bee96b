"""Compute CPU time of measurements, and memory and threads of monitored libraries. Pure."""

from dataclasses import replace
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from serverless_bench.base.units import GIB, NS_PER_S
from serverless_bench.metrics.timeline import counted, measured_operations
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


class LibraryUsage(Struct, frozen=True, kw_only=True):
    """Resource usage of operations of a kind; metrics/figures.toml defines each field."""

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


def measured_cpu_s(run: Run) -> float | None:
    """Return the CPU time that counted functions used for measured operations.

    None unless it is known for all of them. It is unknown if a worker does not report the end of
    the warm-up, or if some threads were still in the warm-up when the first measurement started.
    """
    functions, counts = run.functions, counted(run)
    if not counts.any() or not (functions["max_rss_bytes"][counts] > 0).all():
        return None
    measured_ns = functions["measured_cpu_ns"]
    whole_ns = np.rint((functions["cpu_user_s"] + functions["cpu_sys_s"]) * NS_PER_S)
    warm_until, measured_from = _ends_of_warmup(run)
    is_known = (measured_ns != ABSENT) & (warm_until <= measured_from)
    # Without a warm-up or a polled gate, all CPU time belongs to measurements.
    is_all = (
        (measured_ns == ABSENT) & (warm_until == EARLIEST) & (functions["gate_wait_ns"] == ABSENT)
    )
    if not (is_known | is_all)[counts].all():
        return None
    return float(np.where(is_known, measured_ns, whole_ns)[counts].sum()) / NS_PER_S


def all_measured(run: Run) -> Run:
    """Return the run with its warm-up converted to measured operations."""

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
    """Return the end of the last warm-up and the start of the first measurement per function."""
    operations, count = run.operations, len(run.functions["index"])
    function, warm = operations["function"], operations["warmup"] > 0
    measured = measured_operations(run)
    return (
        largest_by(function[warm], operations["end_ns"][warm], count),
        least_by(function[measured], operations["start_ns"][measured], count),
    )
