"""Compute totals over the attempts of a run, and the CPU time. Pure functions.

Only attempts of measured operations are included: those of counted functions without the warm-up.
Goodput covers the bytes of successful operations; offered load covers the bytes of all attempts,
including failed attempts. Responses with status 503 are valid results: they are counted per second
and per prefix, because S3 limits requests per prefix. CPU time excludes the warm-up, too.

A client may hide details of requests. A metric that needs them is null, not estimated, and the
report names it (docs/decisions/0005-client-instants.md).
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from serverless_bench.base.errors import Throttled
from serverless_bench.base.units import NS_PER_S
from serverless_bench.metrics.timeline import counted, measured_operations
from serverless_bench.rundir.record import Shown
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import (
    ABSENT,
    EARLIEST,
    LATEST,
    READS,
    ChangedTable,
    Floats,
    Ints,
    Mask,
    Table,
    failed_attempts,
    is_one_of,
    is_text,
    largest_by,
    least_by,
)

_ACKNOWLEDGED: Final = "which bytes of a write were acknowledged"
_FAILED: Final = "what requests moved that failed"
SEEN: Final[Mapping[str, str]] = {
    "peak_1s_bytes_per_s": _ACKNOWLEDGED,
    "peak_5s_bytes_per_s": _ACKNOWLEDGED,
    "ttfb_s": "when the first byte came",
    "ack_s": "when the last byte was acknowledged",
    "offered_bytes": _FAILED,
    "retried_bytes": _FAILED,
    "new_connections": "its connections",
}
"""Descriptions of the underlying data, by field of the report."""
SENT: Final = frozenset({"append_array", "put", "write_array"})
"""Operation kinds that send bytes to the store."""


def shown(run: Run) -> frozenset[Shown]:
    """Return the request details that the run's client exposed.

    A run without this information was imported, and its timestamps come from a log. Logs do not
    record the progress of a write.
    """
    client = run.provenance.get("client", {})
    if "shows" in client:
        return frozenset(sign for sign in Shown if sign.value in client["shows"])
    return frozenset(Shown) - {Shown.ACKNOWLEDGED} if "source" in run.provenance else frozenset()


def unacknowledged(run: Run) -> Mask:
    """Return a mask of writes without acknowledged progress.

    Only the end of these writes is known, so neither peak nor burst can be computed. The shape is
    ``(operations,)``.
    """
    return is_one_of(run.operations["kind"], SENT) & (Shown.ACKNOWLEDGED not in shown(run))


def unseen_attempts(run: Run) -> Mask:
    """Return a mask of attempts with unknown transfer on failure; shape ``(attempts,)``."""
    status, rows = run.attempts["status"], run.operation_rows(run.attempts)
    progress = run.provenance.get("client", {}).get("progress")
    if progress == "none":
        return np.ones(len(rows), dtype=np.bool_)
    unseen = unacknowledged(run)[rows]
    if progress == "body":
        # Bytes that arrived before a body read failed are not recorded; errors have no body.
        is_body = (status >= 200) & (status < 300)
        unseen |= is_body & is_one_of(run.operations["kind"], READS)[rows]
    return np.asarray(unseen, dtype=np.bool_)


def not_shown(run: Run, good: Mask, retried_bytes: int | None) -> tuple[str, ...]:
    """Return the fields that are null because the client does not expose the required details.

    Parameters
    ----------
    run
        A saved run.
    good
        Mask of successful operations that count, shape ``(operations,)``.
    retried_bytes
        Value of this field in the report.
    """
    kinds, seen = run.operations["kind"], shown(run)
    peak, retried = (unacknowledged(run) & good).any(), retried_bytes is None
    is_null = {
        "peak_1s_bytes_per_s": peak,
        "peak_5s_bytes_per_s": peak,
        "ttfb_s": Shown.FIRST_BYTE not in seen and (is_one_of(kinds, READS) & good).any(),
        "ack_s": Shown.ACKNOWLEDGED not in seen and (is_text(kinds, "put") & good).any(),
        "offered_bytes": retried,
        "retried_bytes": retried,
        "new_connections": Shown.CONNECTION not in seen and good.any(),
    }
    return tuple(name for name in SEEN if is_null[name])


class AttemptStats(Struct, frozen=True, kw_only=True):
    """Totals over the attempts of measured operations; metrics/figures.toml defines each field."""

    attempts: int
    failed_attempts: int
    throttled: int
    throttled_peak_per_s: int
    throttled_by_prefix: Mapping[str, int]
    errors_of_attempts: Mapping[str, int]
    offered_bytes: int | None
    retried_bytes: int | None
    new_connections: int | None
    read_amplification: float | None


def attempt_stats(run: Run, good: Mask) -> AttemptStats:
    """Return totals over the attempts of a run.

    Parameters
    ----------
    run
        A saved run.
    good
        Mask of successful operations that count, shape ``(operations,)``.
    """
    measured = measured_operations(run)[run.operation_rows(run.attempts)]
    attempts = {name: run.attempts[name][measured] for name in ("bytes", "error", "reused")}
    failed = failed_attempts(attempts)
    moved = attempts["bytes"]
    unseen = unseen_attempts(run) & ~is_text(run.attempts["error"], None)
    is_seen = not unseen[measured].any()
    throttled = throttles_per_s(run)
    by_prefix = {prefix: int(counts.sum()) for prefix, counts in throttled.items()}
    return AttemptStats(
        attempts=len(moved),
        failed_attempts=int(failed.sum()),
        throttled=sum(by_prefix.values()),
        throttled_peak_per_s=int(np.max(sum(throttled.values(), np.zeros(1, dtype=np.int64)))),
        throttled_by_prefix=by_prefix,
        errors_of_attempts=dict(Counter(attempts["error"][failed]).most_common()),
        offered_bytes=int(moved.sum()) if is_seen else None,
        retried_bytes=int(moved[failed].sum()) if is_seen else None,
        new_connections=int((attempts["reused"] == 0).sum())
        if Shown.CONNECTION in shown(run)
        else None,
        read_amplification=_amplification(run, good, unseen),
    )


def throttles_per_s(run: Run, start_ns: int | None = None) -> dict[str, Ints]:
    """Return the number of throttled attempts per prefix for each second after ``start_ns``.

    Parameters
    ----------
    run
        A saved run.
    start_ns
        Start of the first second; defaults to the start of the first measured attempt.

    Returns
    -------
    dict
        Arrays of equal length by prefix, which is the key up to the last ``/``; the prefix is
        ``""`` if the run was loaded without keys. Attempts are counted when they ended.
    """
    attempts = run.attempts
    is_throttled = is_text(attempts["error"], Throttled.code)
    if not is_throttled.any():
        return {}
    measured = measured_operations(run)[run.operation_rows(run.attempts)]
    rows = np.flatnonzero(measured & is_throttled)
    first_ns = attempts["start_ns"][measured].min(initial=LATEST)
    origin = int(first_ns) if start_ns is None else start_ns
    second = np.maximum(attempts["end_ns"][rows] - origin, 0) // NS_PER_S
    names, prefix = np.unique(_prefixes(run, rows), return_inverse=True)
    length = int(second.max(initial=0)) + 1
    return {
        str(name): np.asarray(
            np.bincount(second[prefix == number], minlength=length), dtype=np.int64
        )
        for number, name in enumerate(names)
    }


def latency_without_backoff_s(run: Run, good: Mask) -> Floats:
    """Return the duration of each successful operation without the backoff between attempts.

    The shape is ``(good operations,)``. Backoff of parallel parts is subtracted for each part, so
    the result is a lower bound in this case.
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


def _amplification(run: Run, good: Mask, unseen: Mask) -> float | None:
    reads = good & is_one_of(run.operations["kind"], READS)
    useful = int(run.operations["bytes"][reads].sum())
    fetched = reads[run.operation_rows(run.attempts)] & is_text(run.attempts["request"], "get")
    if not useful or (fetched & unseen).any():
        return None
    return float(run.attempts["bytes"][fetched].sum() / useful)


def unrecorded_launches(run: Run) -> int:
    """Return the number of launches known to have left no record of their requests."""
    functions = run.functions
    index, launch, not_started = (functions[name] for name in ("index", "launch", "not_started"))
    # An index without a line also has a row.
    has_line = (not_started != ABSENT) & (functions["duplicate"] != 1)
    lost = is_one_of(functions["status"], ("lost", "superseded")) & (not_started == 0)
    recorded = has_line & (functions["start_ns"] != ABSENT)
    recorded_launches = set(zip(index[recorded].tolist(), launch[recorded].tolist(), strict=True))
    count = len(
        {*zip(index[lost].tolist(), launch[lost].tolist(), strict=True)} - recorded_launches
    )
    first = 0
    for started, last in run.killed:
        arrived = has_line & (first <= launch) & (launch <= last)
        count += max(0, started - int(arrived.sum()))
        first = last + 1
    return count


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
    # Without a warm-up or a polled barrier, all CPU time belongs to measurements.
    is_all = (
        (measured_ns == ABSENT)
        & (warm_until == EARLIEST)
        & (functions["barrier_wait_ns"] == ABSENT)
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
