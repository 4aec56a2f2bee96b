"""The bottleneck of each function, as far as the records of one run can tell. Pure.

Tested in this order; the first that applies counts:

launch
    Getting the function to work took longer than its work.
client
    A faster store would not have been noticed: for 85 % of the time or more that its
    requests took the function used a processor or waited for one, or it kept all
    processors busy that it may use.
interpreter lock
    It has several threads, and they queued for CPython's global lock: their Python code
    kept it for three quarters of the time, or a thread that asked for it now and then had to
    wait every other time. A faster store would not have been noticed either.
schedule
    In an open loop it was through with its last operation soon after that was due: nothing
    else was to be done.
own code
    The user's function had requests in flight for less than half of its time.
function network
    Its bytes over time are a straight line after a burst, as steep as AWS says that a function of
    its memory has (``aws.lambda_network``).
rate limit
    Its client is idle, and bytes flow for most of the time, or its rate is constant while they do
    and that of the other functions: a limit of each connection, of each function, or one for all.
    ``rate_limit_of`` names those that the run leaves open: all, if other commands loaded the
    store. ``sbench scale`` tells them apart.
retries
    For half of the time or more its requests failed, or paused because earlier ones had.
answers
    Bytes flow for less than half of the time that its operations take, and its client is idle: the
    operations wait for answers, by the latency of the store or the network, or in a queue; or bytes
    of a write that the store's kernel has taken wait for what lies behind it.
store or network
    Its client took less than half of the time, and nothing above applies. This is what is left
    over, not evidence for a limit of the store.

In between nobody can tell: ``unknown``. So it is where a worker did not say what it
computed (imported data, threads whose waits were not counted), and where a library sends
several requests at once of its own and hides how many: its share is only known to lie
between two bounds.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from serverless_bench.analysis.bottleneck.rate_limit import (
    FLOW_SHARE,
    SCOPES,
    limited_functions,
    sample_of,
    share_of_sample,
)
from serverless_bench.analysis.bottleneck.slots import slot_shares
from serverless_bench.analysis.throughput import elapsed
from serverless_bench.analysis.timeline import function_spans
from serverless_bench.analysis.visibility import unacknowledged
from serverless_bench.job.operations import OperationKind
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import (
    ABSENT,
    READS,
    Floats,
    Ints,
    Mask,
    at_ranks,
    is_among,
    is_one_of,
    is_text,
    largest_by,
    least_by,
    sum_by,
)
from serverless_bench.units import NS_PER_S

CAUSES: Final = (
    *("launch", "client", "interpreter_lock", "schedule", "own_code", "function_network"),
    *("rate_limit", "retries", "answers", "store_or_network", "unknown"),
)
_REPLACED: Final = ("rate_limit", "answers", "store_or_network", "unknown")
"""Causes that a rate which is constant while bytes flow comes before."""
CLIENT_SHARE: Final = 0.85
STORE_SHARE: Final = 0.5
"""Below this share of the client a store that costs nothing would have doubled the rate."""
KEPT_SHARE: Final = 0.75
"""Threads queue for a lock that is taken for this share of the time or more."""
DELAYED_SHARE: Final = 0.5
"""A thread that asks for the lock now and then is late this often only if others queue, too."""
LEAST_PROBES: Final = 8
"""Where the lock is taken there are few: each waits for its turn."""
_SOON: Final = 0.05
"""Share of a schedule's length by which its last operation may be late."""
_LAMBDA_MIB_PER_CPU: Final = 1769
"""AWS Lambda developer guide, "Configure Lambda function memory"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bottleneck:
    """What bounded the functions of a run; analysis/figures.toml defines each figure."""

    functions: Mapping[str, int] = field(default_factory=dict)
    rate_limit_of: tuple[str, ...] | None = None
    slots: Mapping[str, float] | None = None
    flow_share: float | None = None
    client_share: float | None = None
    lock_share: float | None = None
    launch_share: float | None = None
    generator_bytes_per_s: float | None = None
    burst_bytes: float | None = None
    sustained_bytes_per_s: float | None = None


def bottleneck(run: Run, good: Mask) -> Bottleneck:
    """Return what bounded each function of a run.

    Parameters
    ----------
    run
        A saved run, its workers' instants on the driver's clock.
    good
        Which operations succeeded and count, shape ``(operations,)``.
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
    # Shared with other commands, a store leaves each function the same rate, however many work.
    unshaped = run.neighbours or (is_text(cause, "rate_limit")[sample] & ~shaped).any()
    for name in _REPLACED:
        # The share in the sample stands for all functions.
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
        flow_share=_median(flow[1]),
        client_share=_median(share.least),
        lock_share=_median(share.lock),
        launch_share=_median(_launch_share(run, rows)),
        generator_bytes_per_s=_median(speeds[speeds != ABSENT]),
        burst_bytes=_median([fit.burst_bytes for fit in fits]),
        sustained_bytes_per_s=_median([fit.sustained_bytes_per_s for fit in fits]),
    )


def bounded_functions(run: Run, good: Mask) -> tuple[Ints, NDArray[np.str_]]:
    """Return what bounded each of some functions: of few all, of many evenly spaced ones.

    Parameters
    ----------
    run, good
        As of ``bottleneck``, which counts them.

    Returns
    -------
    tuple
        Rows of ``functions``, and as many names of causes.
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
    """Return what bounded each function, without a look at its rate."""
    least, most = flow
    idle_client = share.most < STORE_SHARE
    applies = {
        "launch": _launch_share(run, rows) > 0.5,
        "client": share.least >= CLIENT_SHARE,
        "interpreter_lock": share.is_queue,
        "schedule": _on_schedule(run, rows),
        "own_code": _leaves_the_store(run, rows),
        "retries": idle_client & (_retry_share(run, rows) >= FLOW_SHARE),
        "rate_limit": idle_client & (least >= FLOW_SHARE),
        "answers": idle_client & (most < FLOW_SHARE),
        "store_or_network": idle_client,
    }
    cause = np.select(list(applies.values()), list(applies), "unknown")
    # Room for every cause: what is longer than a column of texts would be cut off.
    return cause.astype(f"<U{max(map(len, CAUSES))}")


def _flow_share(run: Run, good: Mask, rows: Ints) -> tuple[Floats, Floats]:
    """Return bounds of the share of its operations' time in which a function's bytes flowed.

    Shape ``(rows,)`` each; NaN where nothing is known: the client does not show when bytes
    came or were acknowledged, or objects are moved in parts, with pauses that nobody sees.
    """
    operations, count = run.operations, len(run.functions["index"])
    start, end = operations["start_ns"], operations["end_ns"]
    first, sent = operations["first_byte_ns"], operations["last_byte_sent_ns"]
    kind, length = operations["kind"], end - start
    of_step = run.operation_rows(run.steps)
    carrying = np.where(run.steps["step_bytes"] > 0, run.steps["step_ns"], 0)
    known = np.where(first != ABSENT, end - first, np.where(sent != ABSENT, sent - start, length))
    # A stall carries nothing.
    most = np.minimum(sum_by(of_step, carrying, len(start)), known)
    # Without an instant of its own the last byte was there at some time in the last of these steps.
    last = np.zeros(len(start), dtype=np.int64)
    last[of_step[carrying > 0]] = carrying[carrying > 0]
    least = np.where((first == ABSENT) & (sent == ABSENT), most - np.minimum(last, most), most)
    counts = good & (operations["bytes"] > 0)
    part = run.job.transfer.part_size
    hidden = unacknowledged(run) | (is_one_of(kind, READS) & (first == ABSENT))
    if part is not None:
        hidden |= operations["bytes"] > part
    function = operations["function"][counts]

    def total(values: Ints) -> Ints:
        return sum_by(function, values[counts], count)

    time, silent = total(length), total(hidden.astype(np.int64)) > 0
    low, high = (
        np.where(silent | (time <= 0), np.nan, total(flow) / np.maximum(time, 1))[rows]
        for flow in (least, most)
    )
    return low, high


def _leaves_the_store(run: Run, rows: Ints) -> Mask:
    """Return which of the user's own functions had nothing in flight for half of their time."""
    table, operations = run.functions, run.operations
    if not run.job.declared.runs_code:
        return np.zeros(len(rows), dtype=np.bool_)
    took = operations["end_ns"] - operations["start_ns"]
    took = np.where(is_text(operations["kind"], OperationKind.CALL), 0, took)
    in_flight = sum_by(operations["function"], took, len(table["index"]))[rows]
    wall_ns = table["end_ns"][rows] - table["start_ns"][rows]
    return np.asarray(in_flight < STORE_SHARE * wall_ns, dtype=np.bool_)


def _retry_share(run: Run, rows: Ints) -> Floats:
    """Return the share of its requests' time, with the pauses between, that failed ones took."""
    attempts, count = run.attempts, len(run.functions["index"])
    took, pause = attempts["end_ns"] - attempts["start_ns"], np.maximum(attempts["wait_ns"], 0)
    failed = ~is_text(attempts["error"], None)
    function = attempts["function"]
    lost = sum_by(function, np.where(failed, took, 0) + pause, count)
    return np.asarray((lost / np.maximum(sum_by(function, took + pause, count), 1))[rows])


def _median(values: "Floats | Ints | list[float]") -> float | None:
    """Return the median of what is known: of values that are not NaN."""
    known = np.asarray(values)[~np.isnan(values)]
    middle = ((len(known) + 1) // 2, len(known) // 2 + 1)
    return float(at_ranks(known, middle).mean()) if len(known) else None


def _launch_share(run: Run, rows: Ints) -> Floats:
    """Return launch over launch and work; a warm-up, or waiting at a gate, is work.

    NaN, which is above no threshold, where nobody knows when it was submitted.
    """
    table = run.functions
    submitted = table["submitted_ns"][rows]
    unknown = submitted == ABSENT
    if run.job.concurrency >= run.job.number:
        # A wave is submitted at once: a slow submission is a part of the launch.
        _, wave = np.unique(table["launch"][rows], return_inverse=True)
        first = least_by(wave[~unknown], submitted[~unknown], len(rows))
        submitted = np.where(unknown, submitted, first[wave])
    start = table["start_ns"][rows]
    launch = np.maximum(elapsed(run).between_each_ns(submitted, start), 0)
    work = np.maximum(table["end_ns"][rows] - table["start_ns"][rows], 1)
    return np.where(unknown, np.nan, launch / (launch + work))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _ClientShare:
    """How much of each function's time its client took, shape ``(rows,)`` each."""

    least: Floats
    most: Floats
    """Bounds of the share, 0 to 1; NaN, which is below and above nothing, if unknown."""
    lock: Floats
    """Share of the time, or of the probes, in which the interpreter's lock was taken; NaN where
    no threads share it, and where it is unknown."""
    is_queue: Mask
    """Whether threads queued for the lock."""


def _client_share(run: Run, rows: Ints) -> _ClientShare:
    table = run.functions
    wall_ns = table["end_ns"][rows] - table["start_ns"][rows]
    wall_ns = np.maximum(wall_ns - np.maximum(table["gate_wait_ns"][rows], 0), 1)
    cpu_ns = (table["cpu_user_s"] + table["cpu_sys_s"])[rows] * NS_PER_S
    awake_ns = cpu_ns + np.maximum(table["run_wait_ns"][rows], 0)
    cores = np.maximum(table["cpus"][rows], 1)
    memory = table["memory_mib"][rows]
    given = np.where(memory == ABSENT, cores, memory / _LAMBDA_MIB_PER_CPU)
    processors = np.minimum(1, cpu_ns / (wall_ns * np.minimum(cores, given)))
    # Requests that run side by side are so many lanes; what a lane does is one or the other.
    attempts = run.attempts
    requests_ns = np.maximum(attempts["end_ns"] - attempts["start_ns"], 0)
    in_flight_ns = sum_by(attempts["function"], requests_ns, len(table["index"]))[rows]
    lanes = np.minimum(1, awake_ns / np.maximum(in_flight_ns, wall_ns))
    lock, is_queue = _lock(run, rows, wall_ns)
    at_least = np.maximum(processors, lanes) if _lanes_are_known(run) else processors
    at_most = np.fmax(np.maximum(processors, lanes), lock)
    # Records of before do not have the waits of threads.
    silent = table["cpus"][rows] == ABSENT
    if _shares_threads(run):
        silent |= table["interpreter_ns"][rows] == ABSENT
    return _ClientShare(
        least=np.where(silent, np.nan, at_least),
        most=np.where(silent, np.nan, at_most),
        lock=lock,
        is_queue=is_queue,
    )


def _shares_threads(run: Run) -> bool:
    return run.job.load.threads > 1 or run.job.transfer.connections > 1


def _lanes_are_known(run: Run) -> bool:
    """Whether each request of the record is one request at a time, with a thread of its own."""
    if run.job.load.library is not None or run.job.declared.runs_code:
        return False
    return bool(run.provenance.get("client", {}).get("attempts") == "exact")


def _lock(run: Run, rows: Ints, wall_ns: Ints) -> tuple[Floats, Mask]:
    """Return how busy the interpreter's lock was, and whether threads queued for it.

    The user time of Python's threads bounds how long they kept it, unless they encrypt:
    OpenSSL works without it. Beyond that a thread that asks for it tells, where the run was
    long enough.
    """
    table = run.functions
    if not _shares_threads(run):
        return np.full(len(rows), np.nan), np.zeros(len(rows), dtype=np.bool_)
    probes, delayed = table["lock_probes"][rows], table["lock_delayed"][rows]
    probed = np.where(probes >= LEAST_PROBES, delayed / np.maximum(probes, 1), np.nan)
    plain = not run.job.target.endpoint_url.startswith("https:")
    known = (table["interpreter_ns"][rows] != ABSENT) & plain
    kept = np.where(known, np.minimum(1, table["interpreter_ns"][rows] / wall_ns), np.nan)
    return np.fmax(probed, kept), (kept >= KEPT_SHARE) | (probed >= DELAYED_SHARE)


def _on_schedule(run: Run, rows: Ints) -> Mask:
    """Return which functions kept up with the instants at which operations were due."""
    operations = run.operations
    due = operations["intended_ns"] != ABSENT
    function, intended = operations["function"][due], operations["intended_ns"][due]
    count = len(run.functions["index"])
    first = least_by(function, intended, count)[rows]
    last = largest_by(function, intended, count)[rows]
    end = largest_by(function, operations["end_ns"][due], count)[rows]
    kept_up = (last > first) & (end - last <= _SOON * (last - first))
    # Who left undone what was due did not keep up, however soon it ended.
    return np.asarray(kept_up & ~is_among(rows, run.overdue["function"]), dtype=np.bool_)
