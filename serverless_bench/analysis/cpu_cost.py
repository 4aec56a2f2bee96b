"""What the measured operations of a run cost in processor time. Pure."""

import numpy as np

from serverless_bench.analysis.timeline import counted, measured_operations
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import ABSENT, EARLIEST, Ints, Mask, largest_by, least_by
from serverless_bench.units import NS_PER_S


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


def cpu_with_warmup(run: Run, warmup: Mask) -> Ints:
    """Return the column ``measured_cpu_ns`` if the operations of the warm-up count as well."""
    measured_ns = run.functions["measured_cpu_ns"].copy()
    measured_ns[run.operations["function"][warmup]] = ABSENT
    return np.asarray(measured_ns, dtype=np.int64)


def _ends_of_warmup(run: Run) -> tuple[Ints, Ints]:
    """Return when each function's last warm-up ended and its first measurement began."""
    operations, count = run.operations, len(run.functions["index"])
    function, warm = operations["function"], operations["warmup"] > 0
    measured = measured_operations(run)
    return (
        largest_by(function[warm], operations["end_ns"][warm], count),
        least_by(function[measured], operations["start_ns"][measured], count),
    )
