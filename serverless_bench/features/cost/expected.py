"""Expected usage of a job with any workload, and the most that a function can use.

``forecast`` predicts the time of transfers; this module derives the operations of a job: random
sizes count with their mean, the operations of a mix with their weights, an array with its chunks.
The operations of a user's function are unknown: it has no expectation, only a bound.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from serverless_bench.features.aws.lambda_network import BURST_BYTES, MOST_MBPS, function_network
from serverless_bench.features.aws.options import FunctionOptions
from serverless_bench.features.cost.forecast import (
    LIMIT_PER_S,
    OVERHEAD_S,
    REQUEST_S,
    CostConditions,
    PlannedLoad,
    busy_s,
    functions_usage,
    launch,
    line_rate,
    load_of,
    one_load,
)
from serverless_bench.features.cost.places import placed
from serverless_bench.features.cost.prices import BilledUsage
from serverless_bench.features.remote.options import look_s, progress_objects
from serverless_bench.job.abilities import (
    Conditional,
    Paging,
    Phase,
    Scan,
    Scanning,
    Tally,
    pieces_of,
    tally_of,
)
from serverless_bench.job.operations import CONTENDED, OperationKind
from serverless_bench.job.planned_objects import mean_size
from serverless_bench.job.policy import named_policies
from serverless_bench.job.sizes import parse_sizes
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Stat, Transfer
from serverless_bench.job.workload import Trait

LEAST_REQUEST_S: Final = {kind: seconds / 2 for kind, seconds in REQUEST_S.items()}
"""Minimum duration of a request, which bounds the requests of a function in a time. Assumed."""
RECORD_S: Final = 5.0
"""Maximum time after the deadline for saving the record (``delivery.RECORD_S``)."""
PROBE_S: Final = 20.0
"""Maximum time for a response to the probe (``aws_lambda_probe.ANSWER_S``)."""
_PROBES: Final = 20
"""HEAD requests of the driver to read the store's clock (``coordinator``)."""
_LOOK_EVERY_S: Final = 0.2
_BARRIER_SLACK_S: Final = 5.0
_IN_ARRAYS: Final = 8
"""Concurrent requests of an array library, assumed."""
_PAGE: Final = 1000
_LIKE: Final[Mapping[OperationKind, OperationKind]] = {
    OperationKind.GET: OperationKind.GET,
    OperationKind.GET_RANGE: OperationKind.GET,
    OperationKind.HEAD: OperationKind.GET,
}
"""Kinds of a mix in the GET class; all others are in the PUT class, or free."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedPhase:
    """Expected result of a phase."""

    end_s: float
    """Time from the start of the job to the end of the phase."""
    function_s: float
    """Time of a function, including that for which it waits for the previous phase."""
    requests: int
    """Requests for the data of all functions; a waiting function may need more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """Expected result of a job."""

    function_s: float
    """Billed time of a function."""
    operations: float
    """Operations of a function on objects or arrays, including preparations and warm-up."""
    bytes: int
    """Bytes transferred by all functions."""
    usage: BilledUsage
    """Usage of the whole job, without storing the objects."""
    phases: tuple[ExpectedPhase, ...] = ()
    """The phases of a job whose functions do not all do the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _FunctionWork:
    """Work of a function, without the barrier and the record."""

    seconds: float = 0.0
    operations: float = 0.0
    bytes: float = 0.0
    uploaded: float = 0.0
    """Part of ``bytes``; the rest was read."""
    puts: float = 0.0
    gets: float = 0.0

    def plus(self, other: "_FunctionWork", times: float) -> "_FunctionWork":
        """Return the sum of this work and ``times`` times the other work."""
        names = (field.name for field in fields(self))
        return _FunctionWork(**{n: getattr(self, n) + times * getattr(other, n) for n in names})


def expected(job: JobSpec, setting: CostConditions) -> Expected | None:
    """Return the expected usage of a job; None if its transfers are unknown."""
    work = _work(job, setting)
    if work is None:
        return None
    count, function_s = job.number, work.seconds + OVERHEAD_S
    load = one_load(job, setting, OperationKind.PUT, 1)
    first, last = launch(replace(load, functions=min(count, load.quota)), function_s)
    polls = lists = 0.0
    barrier = _barrier(job)
    if barrier is not None:
        # The first functions wait for all others, at most until the timeout.
        waited_s = min(barrier["timeout_s"], (last - first) / 2 + _LOOK_EVERY_S)
        function_s += waited_s
        polls = 1 + waited_s / barrier["poll_s"]
        lists = (last - first + _LOOK_EVERY_S) / _LOOK_EVERY_S * -(-count // _PAGE)
    each = replace(work, seconds=function_s, puts=work.puts + bool(barrier), gets=work.gets + polls)
    driver = _FunctionWork(
        puts=lists + bool(barrier),
        gets=_PROBES * (Trait.NO_REQUESTS not in job.declared.traits),
    )
    return Expected(
        function_s=function_s,
        operations=work.operations,
        bytes=round(count * work.bytes),
        usage=_usage(job, setting, each, count, driver),
        phases=tuple(_phases(job, setting)),
    )


def _barrier(job: JobSpec) -> Any:
    """Return the times of the start barrier, as functions get them; None without a barrier."""
    barrier = named_policies(job).get("barrier")
    return None if barrier is None else barrier.in_invocation(job, 0)


def at_most(job: JobSpec, setting: CostConditions) -> BilledUsage:
    """Return the maximum usage of a function that runs until its deadline.

    The requests are the planned requests; with a duration, as many as fit into it with
    ``LEAST_REQUEST_S`` each. Retries of requests without a response are excluded, but their bytes
    are included.
    """
    seconds = job.deadline + OVERHEAD_S + RECORD_S * (job.control is not None)
    if setting.timeout_s is not None:
        seconds = min(seconds, setting.timeout_s)
    work = _requests_at_most(job, setting)
    if "hedge" in job.options:
        work = replace(work, gets=2 * work.gets)
    sent, received = _bytes_at_most(job, setting, work, seconds)
    work = replace(work, bytes=sent + received, uploaded=sent)
    if (barrier := _barrier(job)) is not None:
        polls = (barrier["timeout_s"] + _BARRIER_SLACK_S) / (0.8 * barrier["poll_s"])
        work = replace(work, puts=work.puts + 1, gets=work.gets + polls)
    return _usage(job, setting, replace(work, seconds=seconds), 1, _FunctionWork())


def probe_at_most(job: JobSpec, setting: CostConditions) -> BilledUsage:
    """Return the maximum usage of the probes, which precede all launches."""
    options = FunctionOptions.from_work(job)
    asked = len(options.function) if options.probe else 0
    seconds = min(PROBE_S, setting.timeout_s or PROBE_S)
    return _usage(
        job, setting, _FunctionWork(seconds=seconds, puts=1, gets=1), asked, _FunctionWork()
    )


def until_now(
    job: JobSpec,
    setting: CostConditions,
    functions: int,
    function_s: float,
    *,
    requests: tuple[int, int] = (0, 0),
    moved: tuple[int, int] = (0, 0),
) -> BilledUsage:
    """Return the usage of functions that have run for ``function_s`` on average.

    Parameters
    ----------
    job, setting
        The job of the functions.
    functions, function_s
        Number of functions, and their mean time until now.
    requests
        Requests of the PUT and of the GET class, of all functions together.
    moved
        Bytes that they have sent and received.
    """
    each = _FunctionWork(
        seconds=function_s,
        bytes=sum(moved) / functions,
        uploaded=moved[0] / functions,
        puts=requests[0] / functions,
        gets=requests[1] / functions,
    )
    return _usage(job, setting, each, functions, _FunctionWork())


def mean_bytes(job: JobSpec, setting: CostConditions) -> int | None:
    """Return the mean size of the job's objects; None if it is unknown."""
    size = mean_size(job)
    return setting.object_bytes if size is None else max(1, round(size))


def _usage(
    job: JobSpec, setting: CostConditions, each: _FunctionWork, count: int, driver: _FunctionWork
) -> BilledUsage:
    """Return the usage of ``count`` functions, and of the driver's requests."""
    sent, received = count * each.uploaded, count * (each.bytes - each.uploaded)
    functions = functions_usage(
        setting,
        count,
        each.seconds,
        look_s=math.inf if job.control is None else look_s(job.max_concurrency),
    )
    shown = math.ceil(progress_objects(job, each.seconds) * count / job.number)
    return replace(
        functions,
        control_puts=functions.control_puts + shown,
        control_gets=functions.control_gets + shown,
        **placed(job, sent=sent, received=received),
        uploaded_bytes=round(sent),
        retrieved_bytes=round(received),
        puts=math.ceil(count * each.puts + driver.puts),
        gets=math.ceil(count * each.gets + driver.gets),
    )


def _work(job: JobSpec, setting: CostConditions) -> _FunctionWork | None:
    workload = job.declared
    tally = tally_of(workload, job.load)
    if tally is not None or Trait.NO_REQUESTS in workload.traits:
        return _tallied(job, setting, tally or Tally((0, 0), (), 0.0))
    if pieces_of(workload, job.load) is not None:
        return _of_load(_library_load(job, setting))
    size = mean_bytes(job, setting)
    if _is_unknown(job) or size is None:
        return None
    scan = workload.scan(job) if isinstance(workload, Scanning) else None
    if scan is not None or job.load.is_drawn:
        return _mixed(job, setting, size) if scan is None else _scanned(job, setting, size, scan)
    load = load_of(job, setting, size)
    if load is None:
        return _listed_pages(job, setting, size)
    work = _of_load(load)
    if load.kind is OperationKind.GET and job.transfer.stat is not Stat.KEY:
        heads = load.operations if job.transfer.stat is Stat.EACH else load.objects
        waits_s = heads * REQUEST_S[OperationKind.GET] / load.threads
        work = replace(work, gets=work.gets + heads, seconds=work.seconds + waits_s)
    if job.duration is not None:
        # An open loop may have little work, but lasts its duration.
        work = replace(work, seconds=max(work.seconds, job.duration))
    return work


def _of_load(load: PlannedLoad) -> _FunctionWork:
    requests = load.operations * load.requests
    is_put = load.kind is OperationKind.PUT
    return _FunctionWork(
        seconds=busy_s(load),
        operations=load.operations,
        bytes=load.function_bytes,
        uploaded=load.function_bytes * is_put,
        puts=requests if is_put else 0,
        gets=0 if is_put else requests,
    )


def _library_load(job: JobSpec, setting: CostConditions) -> PlannedLoad:
    """Return the load of an array in objects; in files it needs no requests."""
    workload = job.declared
    kind = OperationKind.GET if workload.reads(job.load) else OperationKind.PUT
    pieces, size = pieces_of(workload, job.load) or (1, 1)
    load = one_load(job, setting, kind, size // pieces)
    rounds = (job.read_times if kind is OperationKind.GET else 1) * (1 + job.warm_up)
    load = replace(
        load,
        objects=job.objects * pieces,
        repeats=rounds,
        transfer=Transfer(),
        client=job.load.library or job.target.client,
        threads=_IN_ARRAYS,
    )
    if job.duration is None:
        return load
    from_time = job.duration / max(busy_s(replace(load, repeats=1)), 1e-9)
    return replace(load, repeats=max(1, math.ceil(from_time)) + job.warm_up)


def _scanned(job: JobSpec, setting: CostConditions, size: int, scan: Scan) -> _FunctionWork:
    """Return the work for writing the files, and for the requests of their scans."""
    made = _of_load(one_load(job, setting, OperationKind.PUT, size))
    each = one_load(job, setting, OperationKind.GET, round(scan.bytes / scan.requests))
    # A function waits for the requests of a scan that precede the others, then for several at once.
    rounds = scan.footer_requests + math.ceil(
        (scan.requests - scan.footer_requests) / job.transfer.connections
    )
    moving_s = scan.bytes / line_rate(each)
    scan_s = moving_s + rounds * REQUEST_S[OperationKind.GET] / job.load.threads
    once = job.objects * job.read_times
    count: float = once
    if job.duration is not None:
        most_per_s = math.inf if job.load.rate is None else job.load.rate / job.number
        count = job.duration * min(most_per_s, 1 / scan_s)
    work = _FunctionWork(seconds=scan_s, operations=1, bytes=scan.bytes, gets=scan.requests)
    work = made.plus(work, count + job.warm_up * once)
    return replace(work, seconds=max(work.seconds, job.duration or 0))


def _mixed(job: JobSpec, setting: CostConditions, size: int) -> _FunctionWork:
    """Return the work for preparations and for the operations of a mix, by their weights."""
    each = _mean_of_mix(job, setting, size)
    made = _FunctionWork()
    if not job.reads_given:
        made = _of_load(one_load(job, setting, OperationKind.PUT, size))
    seconds, threads = job.duration, job.load.threads
    if job.load.operations is not None:
        count = float(job.load.operations * (1 + job.warm_up))
        seconds = count * each.seconds / threads
    elif seconds is not None:
        count = seconds * threads / each.seconds
        if job.load.rate is not None:
            count = min(count, job.load.rate * seconds / job.number)
    else:
        count = seconds = 0.0
    each = replace(each, operations=1.0)
    return replace(made.plus(each, count), seconds=made.seconds + seconds)


def _listed_pages(job: JobSpec, setting: CostConditions, size: int) -> _FunctionWork | None:
    """Return the work for writing keys and listing them; None for a job that does not."""
    if not isinstance(job.declared, Paging):
        return None
    made, pages = _FunctionWork(), job.declared.pages(job)
    if pages.written:
        made = _of_load(one_load(job, setting, OperationKind.PUT, size))
    page = replace(_of_kind(job, setting, OperationKind.LIST_ALL, 0), operations=1.0)
    seconds = pages.pages * page.seconds / job.load.threads
    rounds = job.warm_up + max(1.0, (job.duration or 0.0) / seconds)
    work = made.plus(page, pages.pages * rounds)
    return replace(work, seconds=made.seconds + rounds * seconds)


def _tallied(job: JobSpec, setting: CostConditions, tally: Tally) -> _FunctionWork:
    """Return a function's share of the listed operations, at their mean size by kind."""
    made = _listed(job, setting, [(OperationKind.PUT, *tally.prepared)])
    listed = _listed(job, setting, tally.rows)
    threads = job.load.threads
    seconds = made.seconds / threads + max(tally.seconds, listed.seconds / threads)
    if tally.phases:
        pairs = zip(tally.phases, _phases(job, setting), strict=True)
        seconds = sum(phase.functions * plan.function_s for phase, plan in pairs) / job.number
    return replace(made.plus(listed, 1), seconds=seconds)


def _listed(
    job: JobSpec, setting: CostConditions, rows: Sequence[tuple[OperationKind, int, int]]
) -> _FunctionWork:
    """Return a function's share of operations, given by kind, number and bytes."""
    work = _FunctionWork()
    for kind, count, moved in rows:
        each = _of_kind(job, setting, kind, moved // max(1, count))
        work = work.plus(replace(each, operations=1.0), count / job.number)
    return work


def _phases(job: JobSpec, setting: CostConditions) -> Iterator[ExpectedPhase]:
    """Yield the phases of a job.

    A phase lasts as long as its functions, in turns if there are more than may run at once, or as
    long as a partition of the store needs for its requests.
    """
    tally, end_s = tally_of(job.declared, job.load), 0.0
    all_at_once = job.max_concurrency >= job.number
    for phase in () if tally is None else tally.phases:
        work = _of_phase(job, setting, phase)
        lasts_s = work.seconds / job.load.threads
        limited_s = max(
            count / LIMIT_PER_S[_LIKE.get(kind, OperationKind.PUT)] for kind, count, _ in phase.rows
        )
        turns = -(-phase.functions // job.max_concurrency)
        phase_s = max(lasts_s * turns, limited_s)
        if phase.overlaps and all_at_once:
            # The last objects of the previous phase are still to be read.
            end_s = max(end_s, phase_s) + lasts_s / max(1.0, work.operations)
        else:
            end_s += phase_s
        yield ExpectedPhase(
            end_s=end_s,
            function_s=end_s if all_at_once else phase_s / turns,
            requests=round(phase.functions * (work.puts + work.gets)),
        )


def _of_phase(job: JobSpec, setting: CostConditions, phase: Phase) -> _FunctionWork:
    """Return the work of one of a phase's functions."""
    work = _listed(job, setting, phase.rows)
    return _FunctionWork().plus(work, job.number / phase.functions)


def _mean_of_mix(job: JobSpec, setting: CostConditions, size: int) -> _FunctionWork:
    """Return the mean work of an operation of the mix."""
    mix = job.declared.kinds(job.load)
    total = sum(mix.values())
    found = _FunctionWork()
    for kind, weight in mix.items():
        moved = {
            OperationKind.PUT: size,
            OperationKind.GET: size,
            OperationKind.GET_RANGE: min(size, job.load.range_size),
        }.get(kind, 0)
        found = found.plus(_of_kind(job, setting, kind, moved), weight / total)
    return found


def _of_kind(
    job: JobSpec, setting: CostConditions, kind: OperationKind, moved: int
) -> _FunctionWork:
    """Return the work of one operation."""
    like = _LIKE.get(kind, OperationKind.PUT)
    load = one_load(job, setting, like, moved)
    requests = 0 if kind in {OperationKind.DELETE, OperationKind.DELETE_MANY} else load.requests
    moving_s = moved / line_rate(load) * load.threads
    writes = like is OperationKind.PUT
    return _FunctionWork(
        seconds=REQUEST_S[like] + moving_s,
        bytes=moved,
        uploaded=moved * writes,
        puts=requests * writes,
        gets=requests * (not writes),
    )


def _is_unknown(job: JobSpec) -> bool:
    """Return whether the number of requests of a job's operations is unknown."""
    kinds = job.declared.kinds(job.load)
    # The number of rejected writes is a result of a contended job.
    return not kinds or not kinds.keys().isdisjoint(CONTENDED)


def _requests_at_most(job: JobSpec, setting: CostConditions) -> _FunctionWork:
    """Return the maximum number of requests of a function."""
    workload = job.declared
    if Trait.NO_REQUESTS not in workload.traits and _is_unknown(job):
        return _in_time(job, job.deadline, puts=1.0)
    if job.load.sizes is not None:
        job = replace(job, size=parse_sizes(job.load.sizes).maximum())
    tally = tally_of(workload, job.load)
    if tally is not None and tally.phases:
        # Any function may be of any phase, and may list until its deadline.
        each = [_of_phase(job, setting, phase) for phase in tally.phases]
        most = {name: max(getattr(work, name) for work in each) for name in ("puts", "gets")}
        most["puts"] += job.deadline / tally.poll_s if tally.poll_s else 0.0
        return _FunctionWork(**most)
    duration_s, rate_per_s = job.duration, job.load.rate
    if duration_s is not None and rate_per_s is not None:
        due = math.ceil(rate_per_s * duration_s / job.number) + job.load.threads
        return _planned(job, setting, due)
    once = _planned(job, setting)
    if duration_s is None:
        return once
    if job.load.is_drawn:
        share = _mean_of_mix(job, setting, mean_bytes(job, setting) or 1)
        timed = _in_time(job, duration_s, puts=share.puts / (share.puts + share.gets or 1))
    else:
        timed = _in_time(job, duration_s, puts=float(once.puts > 0))
    return replace(once, puts=once.puts + timed.puts, gets=once.gets + timed.gets)


def _bytes_at_most(
    job: JobSpec, setting: CostConditions, work: _FunctionWork, seconds: float
) -> tuple[float, float]:
    """Return the maximum number of bytes that a function sends and receives.

    Each attempt of a planned request transfers a full object or part; the sum is limited by the
    network of a function with the highest quota that an account can get.
    """
    carried = BURST_BYTES + seconds * function_network(setting.memory_mib, quota_mbps=MOST_MBPS)
    workload = job.declared
    if Trait.NO_REQUESTS not in workload.traits and not workload.kinds(job.load):
        return carried, carried
    attempts = 1 + job.transfer.retries
    pieces = (work.puts, OperationKind.PUT), (work.gets, OperationKind.GET)
    sent, received = (
        min(carried, count * attempts * _piece_bytes(job, setting, kind)) if count else 0.0
        for count, kind in pieces
    )
    return sent, received


def _piece_bytes(job: JobSpec, setting: CostConditions, kind: OperationKind) -> float:
    """Return the maximum number of bytes of a request; infinity if the size is unknown."""
    workload = job.declared
    if isinstance(workload, Conditional):
        return workload.most_bytes
    if pieces_of(workload, job.load) is not None:
        return _library_load(job, setting).object_bytes
    sizes = job.load.sizes
    size = mean_bytes(job, setting) if sizes is None else parse_sizes(sizes).maximum()
    return math.inf if size is None else one_load(job, setting, kind, size).part_bytes


def _planned(job: JobSpec, setting: CostConditions, due: int | None = None) -> _FunctionWork:
    """Return the work of a function without its duration: a round, or ``due`` operations."""
    job = replace(job, duration=None)
    is_drawn = job.load.is_drawn
    if due is not None and is_drawn:
        job = replace(job, load=replace(job.load, operations=due))
    once = _work(job, setting)
    if once is None:
        # A read of objects of unknown size reads each object in one request.
        once = _FunctionWork(gets=job.objects * job.read_times * (1 + job.warm_up))
    if due is None or is_drawn:
        return once
    rounds = 1 + due / (job.objects * job.read_times)
    return replace(once, puts=once.puts * rounds, gets=once.gets * rounds)


def _in_time(job: JobSpec, seconds: float, *, puts: float) -> _FunctionWork:
    """Return the requests that fit into a time; ``puts`` is the fraction in the PUT class."""
    streams = job.load.threads * job.transfer.connections
    if job.load.library is not None:
        streams = _IN_ARRAYS
    each_s = puts * LEAST_REQUEST_S[OperationKind.PUT]
    each_s += (1 - puts) * LEAST_REQUEST_S[OperationKind.GET]
    count = streams * seconds / each_s
    return _FunctionWork(seconds=seconds, puts=count * puts, gets=count * (1 - puts))
