"""Determine the bottleneck of each function, as far as the records of a run show it. Pure.

The causes are tested in this order, and the first match is reported:

launch
    Starting the function took longer than its work.
client
    A faster store would not help: for at least 85 % of the time of its requests, the function
    used a CPU or waited for one, or it kept all of its CPUs busy.
interpreter lock
    Its threads queued for CPython's interpreter lock (GIL): their Python code held it for three
    quarters of the time, or a thread that periodically requested it had to wait in half of the
    cases. A faster store would not help either.
schedule
    In an open loop, the last operation finished soon after it was due, so there was no further
    work.
own code
    A user's function had requests in flight for less than half of its time. If requests were in
    flight at the same time, it has threads of its own, whose number is unknown; so is the cause.
other functions
    It waited for objects of other functions for more than half of its operations' time.
function network
    After a burst, its bytes over time form a straight line with the rate that AWS documents for a
    function of this memory size (``features.aws.lambda_network``).
rate limit
    The client is idle, and bytes flow for most of the time, or at a constant rate that is the
    same in the other functions. The limit applies to each connection, to each function, or to all
    functions together. ``rate_limit_of`` lists the scopes that fit the run: all of them, if other
    commands loaded the store. ``sbench scale`` distinguishes them.
retries
    For at least half of the time requests failed, or backed off after failures.
pauses
    Its threads were between operations, without computing, for more than half of the time while
    further operations were left: a policy or the workload let them wait, not the store.
answers
    Bytes flow for less than half of the time of the operations, and the client is idle: the
    operations wait for responses, because of the latency of the store or the network or in a
    queue; or bytes of a write that the store's kernel has received wait to be processed.
store or network
    The client took less than half of the time, and none of the above applies. This is the
    remainder, not evidence for a limit of the store.

Cases in between are ``unknown``. The same applies if a worker did not report CPU usage
(imported data, threads without wait times), and if a library sends an unknown number of
concurrent requests: the share of such a client is only known to be within bounds.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from serverless_bench.base.units import NS_PER_S
from serverless_bench.features.bottleneck.rate_limit import (
    FLOW_SHARE,
    SCOPES,
    limited_functions,
    sample_of,
    share_of_sample,
    slot_shares,
)
from serverless_bench.job.abilities import RunsCode
from serverless_bench.job.operations import OperationKind
from serverless_bench.metrics.attempt_stats import unacknowledged
from serverless_bench.metrics.throughput import elapsed
from serverless_bench.metrics.timeline import function_spans
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import (
    ABSENT,
    READS,
    Floats,
    Ints,
    Mask,
    failed_attempts,
    is_among,
    is_one_of,
    is_text,
    largest_by,
    least_by,
    median_of,
    sum_by,
)

CAUSES: Final = (
    *("launch", "client", "interpreter_lock", "schedule", "own_code", "other_functions"),
    *("function_network", "rate_limit", "retries", "pauses", "answers"),
    *("store_or_network", "unknown"),
)
_REPLACED: Final = ("rate_limit", "answers", "store_or_network", "unknown")
"""Causes that are replaced by a rate limit if the rate is constant while bytes flow."""
CLIENT_SHARE: Final = 0.85
STORE_SHARE: Final = 0.5
"""Below this client share, an infinitely fast store would have doubled the rate."""
KEPT_SHARE: Final = 0.75
"""Threads queue for a lock that is held for at least this share of the time."""
DELAYED_SHARE: Final = 0.5
"""A periodic lock request is delayed this often only if other threads also queue."""
LEAST_PROBES: Final = 8
"""Minimum number of probes; it is small because each probe of a busy lock has to wait."""
_SOON: Final = 0.05
"""Maximum delay of the last operation as a share of the schedule's duration."""
_LAMBDA_MIB_PER_CPU: Final = 1769
"""AWS Lambda developer guide, "Configure Lambda function memory"."""


class Bottleneck(Struct, frozen=True, kw_only=True):
    """The bottlenecks of a run's functions; metrics/figures.toml defines each field."""

    functions: Mapping[str, int] = field(default_factory=dict)
    rate_limit_of: tuple[str, ...] | None = None
    slots: Mapping[str, float] | None = None
    flow_share: float | None = None
    client_share: float | None = None
    client_share_most: float | None = None
    workers_per_cpu: float | None = None
    lock_share: float | None = None
    launch_share: float | None = None
    generator_bytes_per_s: float | None = None
    burst_bytes: float | None = None
    sustained_bytes_per_s: float | None = None


def bottleneck(run: Run, good: Mask) -> Bottleneck:
    """Return the bottlenecks of the functions of a run.

    Parameters
    ----------
    run
        A saved run with worker timestamps on the driver's clock.
    good
        Mask of successful operations that count, shape ``(operations,)``.
    """
    rows = function_spans(run).rows
    if not len(rows):
        return Bottleneck(slots=slot_shares(run))
    share, flow = _client_share(run, rows), _flow_share(run, good, rows)
    cause, limits = (
        _before_rates(run, rows, share, flow),
        limited_functions(run, good, rows, flow[0]),
    )
    counts = Counter(cause.tolist())
    sample = sample_of(len(rows))
    shaped = is_among(sample, sorted(limits.functions["rate_limit"]))
    # Other commands on the store leave each function the same rate at any concurrency.
    unshaped = run.neighbours or (is_text(cause, "rate_limit")[sample] & ~shaped).any()
    for name in _REPLACED:
        # Extrapolate the share in the sample to all functions.
        of_cause, before = cause == name, counts[name]
        for limit, limited in limits.functions.items():
            count = round(before * share_of_sample(sample, limited, of_cause))
            counts[name] -= count
            counts[limit] += count
    speeds = run.functions["generator_bytes_per_s"][rows]
    fits = limits.fits if any(counts[limit] for limit in limits.functions) else ()
    return Bottleneck(
        functions={name: counts[name] for name in CAUSES if counts[name]},
        rate_limit_of=(SCOPES if unshaped else limits.scopes) if counts["rate_limit"] else None,
        slots=slot_shares(run),
        flow_share=median_of(flow[1]),
        client_share=median_of(share.least),
        client_share_most=None if _lanes_are_known(run) else median_of(share.most),
        workers_per_cpu=len(set(run.functions["worker_id"][rows])) / cpus
        if (cpus := run.provenance.get("cpus")) and run.job.control is None
        else None,
        lock_share=median_of(share.lock),
        launch_share=median_of(_launch_share(run, rows)),
        generator_bytes_per_s=median_of(speeds[speeds != ABSENT]),
        burst_bytes=median_of([fit.burst_bytes for fit in fits]),
        sustained_bytes_per_s=median_of([fit.sustained_bytes_per_s for fit in fits]),
    )


def bounded_functions(run: Run, good: Mask) -> tuple[Ints, NDArray[np.str_]]:
    """Return the bottlenecks of a sample of functions: all of them, or evenly spaced functions.

    Parameters
    ----------
    run, good
        See ``bottleneck``, which adds up the causes.

    Returns
    -------
    tuple
        Rows of ``functions``, and the names of their causes.
    """
    rows = function_spans(run).rows
    if not len(rows):
        return rows, np.empty(0, dtype=np.str_)
    flow = _flow_share(run, good, rows)
    cause = _before_rates(run, rows, _client_share(run, rows), flow)
    replaced = is_one_of(cause, _REPLACED)
    for limit, limited in limited_functions(run, good, rows, flow[0]).functions.items():
        cause[replaced & is_among(np.arange(len(rows)), sorted(limited))] = limit
    sample = sample_of(len(rows))
    return rows[sample], cause[sample]


def _before_rates(
    run: Run, rows: Ints, share: "_ClientShare", flow: Sequence[Floats]
) -> NDArray[np.str_]:
    """Return the bottleneck of each function without considering its rate."""
    least, most = flow
    idle_client = share.most < STORE_SHARE
    applies = {
        "launch": _launch_share(run, rows) > 0.5,
        "client": share.least >= CLIENT_SHARE,
        "interpreter_lock": share.is_queue,
        "schedule": _on_schedule(run, rows),
        "own_code": _leaves_the_store(run, rows),
        "other_functions": _waits_for_others(run, rows),
        "unknown": _own_threads(run, rows),
        "retries": idle_client & (_retry_share(run, rows) >= FLOW_SHARE),
        "pauses": _pauses(run, rows, share.awake_ns),
        "rate_limit": idle_client & (least >= FLOW_SHARE),
        "answers": idle_client & (most < FLOW_SHARE),
        "store_or_network": idle_client,
    }
    cause = np.select(list(applies.values()), list(applies), "unknown")
    # NumPy would truncate names that are longer than the column's type.
    return cause.astype(f"<U{max(map(len, CAUSES))}")


def _flow_share(run: Run, good: Mask, rows: Ints) -> tuple[Floats, Floats]:
    """Return bounds of the share of a function's operation time during which bytes flowed.

    Each has the shape ``(rows,)``, with NaN if unknown: the client does not expose when bytes
    arrived or were acknowledged, or objects are transferred in parts with hidden pauses.
    """
    operations, count = run.operations, len(run.functions["index"])
    start, end = operations["start_ns"], operations["end_ns"]
    first, sent = operations["first_byte_ns"], operations["last_byte_sent_ns"]
    kind, length = operations["kind"], end - start
    of_step = run.operation_rows(run.steps)
    carrying = np.where(run.steps["step_bytes"] > 0, run.steps["step_ns"], 0)
    transfer_ns = np.where(
        first != ABSENT, end - first, np.where(sent != ABSENT, sent - start, length)
    )
    # No bytes flow during a stall.
    most = np.minimum(sum_by(of_step, carrying, len(start)), transfer_ns)
    # If its time is unknown, the last byte arrived at some point during the last of these steps.
    last = np.zeros(len(start), dtype=np.int64)
    last[of_step[carrying > 0]] = carrying[carrying > 0]
    least = np.where((first == ABSENT) & (sent == ABSENT), most - np.minimum(last, most), most)
    counts = good & (operations["bytes"] > 0)
    part = run.job.transfer.part_size
    hidden = unacknowledged(run) | (is_one_of(kind, READS) & (first == ABSENT))
    is_scan = is_text(kind, OperationKind.SCAN)
    if is_scan.any():
        # Each request of a scan waits for its own response, and several may do so at a time.
        attempts, of_attempt = run.attempts, run.operation_rows(run.attempts)
        answered, done = attempts["answered_ns"], attempts["end_ns"]
        waiting = np.where(answered == ABSENT, done, answered)
        unseen = (answered == ABSENT) & is_text(attempts["error"], None)
        length = np.where(
            is_scan, sum_by(of_attempt, done - attempts["start_ns"], len(kind)), length
        )
        of_scans = sum_by(of_attempt, done - waiting, len(kind))
        least, most = (np.where(is_scan, of_scans, flow) for flow in (least, most))
        hidden |= is_scan & (sum_by(of_attempt, unseen.astype(np.int64), len(kind)) > 0)
    if part is not None:
        hidden |= ~is_scan & (operations["bytes"] > part)
    function = operations["function"][counts]

    def total(values: Ints) -> Ints:
        return sum_by(function, values[counts], count)

    time, silent = total(length), total(hidden.astype(np.int64)) > 0
    silent |= _own_threads(run, np.arange(count))
    low, high = (
        np.where(silent | (time <= 0), np.nan, total(flow) / np.maximum(time, 1))[rows]
        for flow in (least, most)
    )
    return low, high


def _leaves_the_store(run: Run, rows: Ints) -> Mask:
    """Return a mask of the user's functions with requests in flight for less than half the time."""
    table = run.functions
    if not isinstance(run.job.declared, RunsCode):
        return np.zeros(len(rows), dtype=np.bool_)
    in_flight = _time_ns(run, rows, ~is_text(run.operations["kind"], OperationKind.CALL))
    wall_ns = table["end_ns"][rows] - table["start_ns"][rows]
    return np.asarray(in_flight < STORE_SHARE * wall_ns, dtype=np.bool_)


def _own_threads(run: Run, rows: Ints) -> Mask:
    """Return a mask of the user's functions that made requests at the same time."""
    if not isinstance(run.job.declared, RunsCode):
        return np.zeros(len(rows), dtype=np.bool_)
    return overlapping(run, ~is_text(run.operations["kind"], OperationKind.CALL))[rows]


def _waits_for_others(run: Run, rows: Ints) -> Mask:
    """Return a mask of functions that waited for objects of others for most of their time."""
    waits = is_text(run.operations["kind"], OperationKind.WAIT)
    if not waits.any():
        return np.zeros(len(rows), dtype=np.bool_)
    waited_ns, all_ns = (_time_ns(run, rows, mask) for mask in (waits, np.ones_like(waits)))
    return np.asarray(waited_ns > STORE_SHARE * all_ns, dtype=np.bool_)


def _pauses(run: Run, rows: Ints, awake_ns: Floats) -> Mask:
    """Return a mask of functions whose threads slept between operations for most of the time.

    The time ends when the last operation starts, because after it threads have none left. Threads
    of a user's code are unknown, a library starts operations when it likes, and in an open loop
    threads wait until the next operation is due.
    """
    operations, count = run.operations, len(run.functions["index"])
    starts_freely = isinstance(run.job.declared, RunsCode) or run.job.load.library is not None
    if starts_freely or (operations["intended_ns"] != ABSENT).any():
        return np.zeros(len(rows), dtype=np.bool_)
    function, start = operations["function"], operations["start_ns"]
    last = largest_by(function, start, count)
    busy = np.maximum(np.minimum(operations["end_ns"], last[function]) - start, 0)
    threads = np.minimum(
        sum_by(function, np.ones_like(start), count), run.job.load.threads - run.job.idle_threads
    )
    time = (threads * (last - least_by(function, start, count)))[rows]
    slept = time - sum_by(function, busy, count)[rows] - awake_ns
    return np.asarray(slept > (1 - STORE_SHARE) * time, dtype=np.bool_)


def _time_ns(run: Run, rows: Ints, mask: Mask) -> Ints:
    """Return the time of each function's operations in a mask."""
    operations, count = run.operations, len(run.functions["index"])
    took = np.where(mask, operations["end_ns"] - operations["start_ns"], 0)
    return sum_by(operations["function"], took, count)[rows]


def _retry_share(run: Run, rows: Ints) -> Floats:
    """Return the share of request and backoff time due to failures and backoff."""
    attempts, count = run.attempts, len(run.functions["index"])
    took, pause = attempts["end_ns"] - attempts["start_ns"], np.maximum(attempts["wait_ns"], 0)
    function = attempts["function"]
    lost = sum_by(function, np.where(failed_attempts(attempts), took, 0) + pause, count)
    return np.asarray((lost / np.maximum(sum_by(function, took + pause, count), 1))[rows])


def _launch_share(run: Run, rows: Ints) -> Floats:
    """Return the launch time as a share of launch and work; warm-up and barrier count as work.

    Unknown submission times yield NaN, which is not above any threshold.
    """
    table = run.functions
    submitted = table["submitted_ns"][rows]
    unknown = submitted == ABSENT
    if run.job.concurrency >= run.job.number:
        # A wave is submitted at once, so slow submission is part of the launch.
        _, wave = np.unique(table["launch"][rows], return_inverse=True)
        first = least_by(wave[~unknown], submitted[~unknown], len(rows))
        submitted = np.where(unknown, submitted, first[wave])
    start = table["start_ns"][rows]
    launch = np.maximum(elapsed(run).between_each_ns(submitted, start), 0)
    work = np.maximum(table["end_ns"][rows] - start, 1)
    return np.where(unknown, np.nan, launch / (launch + work))


class _ClientShare(Struct, frozen=True, kw_only=True, eq=False):
    """Share of each function's time that its client took, shape ``(rows,)`` each."""

    least: Floats
    most: Floats
    """Lower and upper bound of the share, 0 to 1; NaN if unknown, so that comparisons are false."""
    lock: Floats
    """Share of the time, or of the probes, in which the interpreter lock was held; NaN if the
    function has a single thread, or if it is unknown."""
    is_queue: Mask
    """Whether threads queued for the interpreter lock."""
    awake_ns: Floats
    """Time that the function used CPUs or waited for one; NaN if unknown."""


def _client_share(run: Run, rows: Ints) -> _ClientShare:
    table = run.functions
    wall_ns = table["end_ns"][rows] - table["start_ns"][rows]
    wall_ns = np.maximum(wall_ns - np.maximum(table["barrier_wait_ns"][rows], 0), 1)
    cpu_ns = (table["cpu_user_s"] + table["cpu_sys_s"])[rows] * NS_PER_S
    awake_ns = cpu_ns + np.maximum(table["run_wait_ns"][rows], 0)
    cores = np.maximum(table["cpus"][rows], 1)
    memory = table["memory_mib"][rows]
    given = np.where(memory == ABSENT, cores, memory / _LAMBDA_MIB_PER_CPU)
    processors = np.minimum(1, cpu_ns / (wall_ns * np.minimum(cores, given)))
    # Each concurrent request is a lane, which either computes or waits.
    attempts = run.attempts
    requests_ns = np.maximum(attempts["end_ns"] - attempts["start_ns"], 0)
    in_flight_ns = sum_by(attempts["function"], requests_ns, len(table["index"]))[rows]
    lanes = np.minimum(1, awake_ns / np.maximum(in_flight_ns, wall_ns))
    lock, is_queue = _lock(run, rows, wall_ns)
    at_least = np.maximum(processors, lanes) if _lanes_are_known(run) else processors
    at_most = np.fmax(np.maximum(processors, lanes), lock)
    # Records of older versions lack the wait times of threads.
    silent = is_unknown = table["cpus"][rows] == ABSENT
    if _shares_threads(run):
        silent = is_unknown | (table["interpreter_ns"][rows] == ABSENT)
    return _ClientShare(
        least=np.where(silent, np.nan, at_least),
        most=np.where(silent, np.nan, at_most),
        lock=lock,
        is_queue=is_queue,
        awake_ns=np.where(is_unknown, np.nan, awake_ns),
    )


def _shares_threads(run: Run) -> bool:
    return run.job.load.threads > 1 or run.job.transfer.connections > 1


def _lanes_are_known(run: Run) -> bool:
    """Return whether every recorded request is a single request with a thread of its own."""
    return (
        run.job.load.library is None
        and not isinstance(run.job.declared, RunsCode)
        and "hedge" not in run.job.options
        and bool(run.provenance.get("client", {}).get("attempts") == "exact")
    )


def _lock(run: Run, rows: Ints, wall_ns: Ints) -> tuple[Floats, Mask]:
    """Return the busy share of the interpreter lock, and whether threads queued for it.

    The user time of Python threads is an upper bound of the time they hold the lock, except with
    TLS, because OpenSSL releases it. Otherwise the results of lock probes are used, if the run was
    long enough.
    """
    table = run.functions
    if not _shares_threads(run):
        return np.full(len(rows), np.nan), np.zeros(len(rows), dtype=np.bool_)
    probes, delayed = table["lock_probes"][rows], table["lock_delayed"][rows]
    probed = np.where(probes >= LEAST_PROBES, delayed / np.maximum(probes, 1), np.nan)
    plain = not run.job.target.endpoint_url.startswith("https:")
    is_known = (table["interpreter_ns"][rows] != ABSENT) & plain
    kept = np.where(is_known, np.minimum(1, table["interpreter_ns"][rows] / wall_ns), np.nan)
    return np.fmax(probed, kept), (kept >= KEPT_SHARE) | (probed >= DELAYED_SHARE)


def _on_schedule(run: Run, rows: Ints) -> Mask:
    """Return a mask of functions that kept up with the schedule of their operations."""
    operations = run.operations
    due = operations["intended_ns"] != ABSENT
    function, intended = operations["function"][due], operations["intended_ns"][due]
    count = len(run.functions["index"])
    first = least_by(function, intended, count)[rows]
    last = largest_by(function, intended, count)[rows]
    end = largest_by(function, operations["end_ns"][due], count)[rows]
    kept_up = (last > first) & (end - last <= _SOON * (last - first))
    # A function with dropped operations did not keep up, even if it ended early.
    return np.asarray(kept_up & ~is_among(rows, run.dropped["function"]), dtype=np.bool_)


def overlapping(run: Run, mask: Mask) -> Mask:
    """Return a mask of the functions in which operations of a mask were in progress together."""
    rows = np.flatnonzero(mask)
    function, start, end = (run.operations[n][rows] for n in ("function", "start_ns", "end_ns"))
    order = np.lexsort((start, function))
    function, start, end = function[order], start[order], end[order]
    together = (function[1:] == function[:-1]) & (start[1:] < end[:-1])
    return np.bincount(function[1:][together], minlength=len(run.functions["index"])) > 0
