"""What the measured operations of a run cost in processor time. Pure."""

import numpy as np

from serverless_bench.analysis.timeline import counted, measured_operations
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import ABSENT, Ints, Mask
from serverless_bench.units import NS_PER_S


def measured_cpu_s(run: Run) -> float | None:
    """Return the processor time that functions that count used for measured operations.

    None unless it is known of all of them: a worker that does not say where the warm-up
    ended, or whose threads were not through with it when the first measurement began, has
    used an unknown share of its time for it.
    """
    functions, mine = run.functions, counted(run)
    if not mine.any() or not (functions["max_rss_bytes"][mine] > 0).all():
        return None
    told = functions["measured_cpu_ns"]
    whole_ns = np.rint((functions["cpu_user_s"] + functions["cpu_sys_s"]) * NS_PER_S)
    warm_until, measured_from = _ends_of_warmup(run)
    is_told = (told != ABSENT) & (warm_until <= measured_from)
    # Without a warm-up, or a gate that is asked again and again, everything was for measurements.
    is_all = (told == ABSENT) & (warm_until == _NEVER) & (functions["gate_wait_ns"] == ABSENT)
    if not (is_told | is_all)[mine].all():
        return None
    return float(np.where(is_told, told, whole_ns)[mine].sum()) / NS_PER_S


def told_of_all(run: Run, warmup: Mask) -> Ints:
    """Return the column ``measured_cpu_ns`` if the operations of the warm-up count as well."""
    told = run.functions["measured_cpu_ns"].copy()
    told[run.operations["function"][warmup]] = ABSENT
    return np.asarray(told, dtype=np.int64)


_NEVER = np.iinfo(np.int64).min


def _ends_of_warmup(run: Run) -> tuple[Ints, Ints]:
    """Return when each function's last warm-up ended and its first measurement began."""
    operations, size = run.operations, len(run.functions["index"])
    until, begin = np.full(size, _NEVER), np.full(size, np.iinfo(np.int64).max)
    warm, mine = operations["warmup"] > 0, measured_operations(run)
    np.maximum.at(until, operations["function"][warm], operations["end_ns"][warm])
    np.minimum.at(begin, operations["function"][mine], operations["start_ns"][mine])
    return until, begin
