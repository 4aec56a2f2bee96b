"""What the attempts of a run add up to: offered load, goodput, throttles, waits. Pure.

The attempts are those of measured operations: of functions that count, without the warm-up.
Goodput is what operations that succeeded moved; offered load is what every attempt moved,
the ones in vain included. A store that answers 503 is a result: throttles are counted
per second and per prefix, because S3 limits requests per prefix.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from serverless_bench.analysis.timeline import measured_operations
from serverless_bench.analysis.visibility import shown
from serverless_bench.errors import Throttled
from serverless_bench.rundir.record import Shown
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import READS, Floats, Ints, Mask, is_one_of, is_text
from serverless_bench.units import NS_PER_S


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptStats:
    """Totals over the attempts of measured operations; analysis/figures.toml defines each."""

    attempts: int
    failed_attempts: int
    throttled: int
    throttled_peak_per_s: int
    throttled_by_prefix: Mapping[str, int]
    errors_of_attempts: Mapping[str, int]
    offered_bytes: int
    retried_bytes: int
    new_connections: int | None
    read_amplification: float | None


def attempt_stats(run: Run, good: Mask) -> AttemptStats:
    """Return the totals of a run's attempts.

    Parameters
    ----------
    run
        A saved run.
    good
        Which operations succeeded and count, shape ``(operations,)``.
    """
    measured = measured_operations(run)[run.operation_rows(run.attempts)]
    attempts = {name: run.attempts[name][measured] for name in ("bytes", "error", "reused")}
    failed = ~is_text(attempts["error"], None)
    moved = attempts["bytes"]
    throttled = throttles_per_s(run)
    by_prefix = {prefix: int(counts.sum()) for prefix, counts in throttled.items()}
    return AttemptStats(
        attempts=len(moved),
        failed_attempts=int(failed.sum()),
        throttled=sum(by_prefix.values()),
        throttled_peak_per_s=int(np.max(sum(throttled.values(), np.zeros(1, dtype=np.int64)))),
        throttled_by_prefix=by_prefix,
        errors_of_attempts=dict(Counter(attempts["error"][failed]).most_common()),
        offered_bytes=int(moved.sum()),
        retried_bytes=int(moved[failed].sum()),
        new_connections=int((attempts["reused"] == 0).sum())
        if Shown.CONNECTION in shown(run)
        else None,
        read_amplification=_amplification(run, good),
    )


def throttles_per_s(run: Run, start_ns: int | None = None) -> dict[str, Ints]:
    """Return throttled attempts of each prefix in each second from ``start_ns`` on.

    Parameters
    ----------
    run
        A saved run.
    start_ns
        Where the first second begins; the first measured attempt's start without it.

    Returns
    -------
    dict
        Arrays of equal length by prefix, which is the key up to its last ``/``; all under
        ``""`` if the run was loaded without its keys. Attempts count when their answer came.
    """
    attempts = run.attempts
    is_throttled = is_text(attempts["error"], Throttled.code)
    if not is_throttled.any():
        return {}
    measured = measured_operations(run)[run.operation_rows(run.attempts)]
    rows = np.flatnonzero(measured & is_throttled)
    if not len(rows):
        return {}
    origin = int(attempts["start_ns"][measured].min()) if start_ns is None else start_ns
    second = np.maximum(attempts["end_ns"][rows] - origin, 0) // NS_PER_S
    names, prefix = np.unique(_prefixes(run, rows), return_inverse=True)
    length = int(second.max()) + 1
    return {
        str(name): np.asarray(
            np.bincount(second[prefix == number], minlength=length), dtype=np.int64
        )
        for number, name in enumerate(names)
    }


def service_s(run: Run, good: Mask) -> Floats:
    """Return how long each good operation took without the waits between its attempts.

    Shape ``(good operations,)``. Waits of parts that ran side by side are taken off
    once each, so the figure is a lower bound there.
    """
    operations, attempts = run.operations, run.attempts
    took = (operations["end_ns"] - operations["start_ns"]).astype(np.float64)
    waiting = np.flatnonzero(attempts["wait_ns"] > 0)
    if len(waiting):
        row = run.operation_rows(attempts)[waiting]
        np.subtract.at(took, row, attempts["wait_ns"][waiting].astype(np.float64))
    return np.asarray(np.maximum(took[good], 0) / NS_PER_S, dtype=np.float64)


def _prefixes(run: Run, rows: Ints) -> list[str]:
    if "key" not in run.operations:
        return [""] * len(rows)
    keys = run.operations["key"][run.operation_rows(run.attempts)[rows]]
    return [key[: key.rfind("/") + 1] for key in keys]


def _amplification(run: Run, good: Mask) -> float | None:
    reads = good & is_one_of(run.operations["kind"], READS)
    useful = int(run.operations["bytes"][reads].sum())
    if not useful:
        return None
    fetched = reads[run.operation_rows(run.attempts)] & is_text(run.attempts["request"], "get")
    return float(run.attempts["bytes"][fetched].sum() / useful)
