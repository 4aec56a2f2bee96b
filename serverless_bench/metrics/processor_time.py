"""Compute the processor time of measurements, without that of the warm-up. Pure functions."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from serverless_bench.base.units import NS_PER_S
from serverless_bench.metrics.timeline import counted, measured_operations
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import (
    ABSENT,
    EARLIEST,
    ChangedTable,
    Ints,
    Table,
    largest_by,
    least_by,
)


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
