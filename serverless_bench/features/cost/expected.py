"""Expected usage of a job with any workload, and the most that a function can use.

``forecast`` samples the times of operations; this module derives the operations of a job: random
sizes count with their mean, the operations of a mix with their weights, an array with its chunks.
The operations of a user's function are unknown: it has no expectation, only a bound.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from serverless_bench.features.aws.lambda_network import BURST_BYTES, MOST_MBPS, function_network
from serverless_bench.features.aws.options import FunctionOptions
from serverless_bench.features.cost.forecast import (
    CostConditions,
    ForecastRange,
    FunctionTimes,
    Operations,
    Sampler,
    bytes_of,
    functions_usage,
    load_of,
    objects_of,
    requests_of,
)
from serverless_bench.features.cost.model import AWS_LAMBDA, Model
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
from serverless_bench.job.target import Stat
from serverless_bench.job.workload import Trait

START_S: Final = 1.0
"""Maximum time before the deadline's begin: start of the runtime, and imports. Assumed."""
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
_PUT, _GET = OperationKind.PUT, OperationKind.GET
_LIKE: Final[Mapping[OperationKind, OperationKind]] = {
    OperationKind.GET: OperationKind.GET,
    OperationKind.GET_RANGE: OperationKind.GET,
    OperationKind.HEAD: OperationKind.GET,
}
"""Kinds of a mix in the GET class; all others are in the PUT class, or free."""
Rows = tuple[Operations, ...]
"""Work of a function."""
_FREE: Final = {OperationKind.DELETE, OperationKind.DELETE_MANY}


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
    """Mean of the billed times of the functions: the median of the forecast."""
    operations: float
    """Operations of a function on objects or arrays, including preparations and warm-up."""
    bytes: int
    """Bytes transferred by all functions."""
    usage: BilledUsage
    """Usage of the whole job, without storing the objects."""
    usages: tuple[BilledUsage, BilledUsage, BilledUsage]
    """The same for the p5, p50 and p95 of that mean."""
    phases: tuple[ExpectedPhase, ...] = ()
    """The phases of a job whose functions do not all do the same."""
    requests: float
    """Requests of a function for its operations."""
    times: FunctionTimes = field(repr=False)
    """The sampled functions."""


def expected(
    job: JobSpec,
    setting: CostConditions,
    model: Model = AWS_LAMBDA,
    *,
    function_s: float | None = None,
) -> Expected | None:
    """Return the expected usage of a job; None if its transfers are unknown.

    Parameters
    ----------
    job, setting, model
        The job, its functions, and the parameters of the forecast.
    function_s
        Billed time of a function, instead of the forecast's.
    """
    sampler = Sampler(job=job, conditions=setting, model=model)
    work = _work(sampler)
    if work is None:
        return None
    tally = tally_of(job.declared, job.load)
    phases = () if tally is None else tuple(_phases(sampler, tally.phases))
    times = sampler.times(work)
    if phases:
        times = replace(times, transfer_s=np.hstack([seconds for _, seconds in phases]))
    waited_s = polls = lists = 0.0
    barrier = _barrier(job)
    if barrier is not None:
        # The first functions wait for all others, at most until the timeout.
        launch_s = float(np.median(times.run[1]))
        waited_s = min(barrier["timeout_s"], launch_s / 2 + _LOOK_EVERY_S)
        polls = 1 + waited_s / barrier["poll_s"]
        lists = (launch_s + _LOOK_EVERY_S) / _LOOK_EVERY_S * -(-job.number // _PAGE)
    function = (*work, *_overhead(bool(barrier), polls))
    driver = _overhead(
        lists + bool(barrier), _PROBES * (Trait.NO_REQUESTS not in job.declared.traits)
    )
    means = ForecastRange.of(times.billed_s.mean(axis=1) + waited_s)
    usages = tuple(
        _usage(job, setting, function, seconds, job.number, driver)
        for seconds in (means.p5, function_s or means.p50, means.p95)
    )
    return Expected(
        function_s=function_s or means.p50,
        operations=sum(row.count for row in work if row.counted),
        bytes=round(job.number * (bytes_of(work, _PUT) + bytes_of(work, _GET))),
        usage=usages[1],
        usages=usages,  # type: ignore[arg-type] # three of them
        phases=tuple(phase for phase, _ in phases),
        requests=requests_of(work, _PUT) + requests_of(work, _GET),
        times=times,
    )


def _overhead(puts: float, gets: float) -> tuple[Operations, ...]:
    """Return billed requests that are no operations."""
    usual: dict[str, Any] = {"lasts_s": 0.0, "counted": False}
    return Operations(kind=_PUT, count=puts, **usual), Operations(kind=_GET, count=gets, **usual)


def _lump(
    requests: Mapping[OperationKind, float], moved: Iterable[float], functions: int = 1
) -> Rows:
    """Return requests and bytes of functions as the work of one; another row has the bytes."""
    sizes = zip((_PUT, _GET), moved, strict=True)
    return (
        *_overhead(requests[_PUT] / functions, requests[_GET] / functions),
        *(Operations(kind=kind, count=1, size=n / functions, billed=False) for kind, n in sizes),
    )


def _repeated(rows: Iterable[Operations], times: float, **changed: Any) -> Rows:
    """Return operations that are repeated."""
    return tuple(replace(row, count=times * row.count, **changed) for row in rows)


def _barrier(job: JobSpec) -> Any:
    """Return the times of the start barrier, as functions get them; None without a barrier."""
    barrier = named_policies(job).get("barrier")
    return None if barrier is None else barrier.in_invocation(job, 0)


def at_most(job: JobSpec, setting: CostConditions, model: Model = AWS_LAMBDA) -> BilledUsage:
    """Return the maximum usage of a function that runs until its deadline.

    The requests are the planned requests; with a duration, as many as fit into it if each takes
    half of the model's median. Retries of requests without a response are excluded, but their
    bytes are included.
    """
    seconds = job.deadline + START_S + RECORD_S * (job.control is not None)
    if setting.timeout_s is not None:
        seconds = min(seconds, setting.timeout_s)
    sampler = Sampler(job=job, conditions=setting, model=model)
    requests = _requests_at_most(sampler)
    if "hedge" in job.options:
        requests[_GET] *= 2
    sizes = _bytes_at_most(sampler, requests, seconds)
    if (barrier := _barrier(job)) is not None:
        requests[_PUT] += 1
        requests[_GET] += (barrier["timeout_s"] + _BARRIER_SLACK_S) / (0.8 * barrier["poll_s"])
    return _usage(job, setting, _lump(requests, [sizes[_PUT], sizes[_GET]]), seconds, 1)


def probe_at_most(job: JobSpec, setting: CostConditions) -> BilledUsage:
    """Return the maximum usage of the probes, which precede all launches."""
    options = FunctionOptions.from_work(job)
    asked = len(options.function) if options.probe else 0
    seconds = min(PROBE_S, setting.timeout_s or PROBE_S)
    return _usage(job, setting, _overhead(1, 1), seconds, asked)


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
    function = _lump(dict(zip((_PUT, _GET), requests, strict=True)), moved, functions)
    return _usage(job, setting, function, function_s, functions)


def mean_bytes(job: JobSpec, setting: CostConditions) -> int | None:
    """Return the mean size of the job's objects; None if it is unknown."""
    size = mean_size(job)
    return setting.object_bytes if size is None else max(1, round(size))


def _usage(
    job: JobSpec,
    setting: CostConditions,
    each: Sequence[Operations],
    seconds: float,
    count: int,
    driver: Rows = (),
) -> BilledUsage:
    """Return the usage of ``count`` functions of ``seconds``, and of the driver's requests."""
    sent, received = (count * bytes_of(each, kind) for kind in (_PUT, _GET))
    look = math.inf if job.control is None else look_s(job.max_concurrency)
    usage = functions_usage(setting, count, seconds, look_s=look)
    puts, gets = (
        math.ceil(count * requests_of(each, kind) + requests_of(driver, kind))
        for kind in (_PUT, _GET)
    )
    shown = math.ceil(progress_objects(job, seconds) * count / job.number)
    return replace(
        usage,
        **placed(job, sent=sent, received=received),
        uploaded_bytes=round(sent),
        retrieved_bytes=round(received),
        puts=puts,
        gets=gets,
        control_puts=usage.control_puts + shown,
        control_gets=usage.control_gets + shown,
    )


def _work(sampler: Sampler) -> Rows | None:
    job, workload = sampler.job, sampler.job.declared
    tally = tally_of(workload, job.load)
    if tally is not None or Trait.NO_REQUESTS in workload.traits:
        return _tallied(job, tally or Tally((0, 0), (), 0.0))
    if pieces_of(workload, job.load) is not None:
        return (_library_row(sampler),)
    size = mean_bytes(job, sampler.conditions)
    if _is_unknown(job) or size is None:
        return None
    scan = workload.scan(job) if isinstance(workload, Scanning) else None
    if scan is not None or job.load.is_drawn:
        return _mixed(sampler, size) if scan is None else _scanned(sampler, size, scan)
    load = load_of(sampler, size)
    return _listed_pages(sampler, size) if load is None else (load, *_heads(job, load))


def _heads(job: JobSpec, load: Operations) -> Iterator[Operations]:
    """Yield the requests for the sizes of objects."""
    if load.kind is _GET and job.transfer.stat is not Stat.KEY:
        count = load.count if job.transfer.stat is Stat.EACH else job.objects
        yield Operations(kind=_GET, count=count, threads=load.threads, counted=False)


def _library_row(sampler: Sampler) -> Operations:
    """Return the operations of an array in objects; in files it needs no requests."""
    job, workload = sampler.job, sampler.job.declared
    kind = _GET if workload.reads(job.load) else _PUT
    pieces, size = pieces_of(workload, job.load) or (1, 1)
    once = job.objects * pieces
    rounds = (job.read_times if kind is _GET else 1) * (1 + job.warm_up)
    row = Operations(
        kind=kind, count=once * rounds, size=max(1, size // pieces), threads=_IN_ARRAYS
    )
    if job.duration is None:
        return row
    done = max(1, math.ceil(sampler.done_in([row], job.duration) / once))
    return replace(row, count=once * (done + job.warm_up), lasts_s=job.duration)


def _scanned(sampler: Sampler, size: int, scan: Scan) -> Rows:
    """Return the work for writing the files, and for the requests of their scans."""
    job = sampler.job
    made = objects_of(job, _PUT, size)
    usual: dict[str, Any] = {"kind": _GET, "threads": job.load.threads, "count": 1.0}
    # A function waits for the requests of a scan that precede the others, then for several at once.
    rest = max(1, scan.requests - scan.footer_requests)
    rows = (
        Operations(**usual, size=scan.bytes, parts=rest, lanes=min(rest, job.transfer.connections)),
        *[Operations(**usual, counted=False)] * min(scan.footer_requests, scan.requests - rest),
    )
    once = job.objects * job.read_times
    if job.duration is None:
        return made, *_repeated(rows, once * (1 + job.warm_up))
    warm = _repeated(rows, job.warm_up * once)
    return made, *warm, *_in_duration(sampler, rows)


def _mixed(sampler: Sampler, size: int) -> Rows:
    """Return the work for preparations and for the operations of a mix, by their weights."""
    job = sampler.job
    made = () if job.reads_given else (objects_of(job, _PUT, size),)
    rows = _mean_of_mix(job, size)
    if job.load.operations is not None:
        return *made, *_repeated(rows, job.load.operations * (1 + job.warm_up))
    return *made, *(() if job.duration is None else _in_duration(sampler, rows))


def _listed_pages(sampler: Sampler, size: int) -> Rows | None:
    """Return the work for writing keys and listing them; None for a job that does not."""
    job = sampler.job
    if not isinstance(job.declared, Paging):
        return None
    pages = job.declared.pages(job)
    made = (replace(objects_of(job, _PUT, size), count=pages.written),) if pages.written else ()
    # AWS bills a page of a listing like a PUT.
    page = (Operations(kind=_PUT, count=1.0, threads=job.load.threads),)
    if job.duration is None:
        return made + _repeated(page, pages.pages * (1 + job.warm_up))
    warm = _repeated(page, pages.pages * job.warm_up)
    return made + warm + _in_duration(sampler, page)


def _in_duration(sampler: Sampler, rows: Rows) -> Rows:
    """Return how often operations are repeated in the duration of a job."""
    job, lasts_s = sampler.job, (sampler.job.duration or 0.0) / len(rows)
    return _repeated(
        rows, sampler.done_in(rows, lasts_s * len(rows), job.load.rate), lasts_s=lasts_s
    )


def _tallied(job: JobSpec, tally: Tally) -> Rows:
    """Return a function's share of the listed operations, at their mean size by kind."""
    made = _listed(job, [(_PUT, *tally.prepared)], job.number)
    listed = _listed(job, tally.rows, job.number)
    lasts_s = tally.seconds / max(1, len(listed)) or None
    return made + _repeated(listed, 1, lasts_s=lasts_s)


def _listed(
    job: JobSpec, rows: Sequence[tuple[OperationKind, int, int]], functions: int
) -> tuple[Operations, ...]:
    """Return a function's share of operations, given by kind, number and bytes."""
    return tuple(
        replace(_of_kind(job, kind, moved // max(1, count)), count=count / functions)
        for kind, count, moved in rows
    )


def _phases(
    sampler: Sampler, phases: Sequence[Phase]
) -> Iterator[tuple[ExpectedPhase, np.ndarray[Any, Any]]]:
    """Yield the phases of a job, and the sampled times of their functions.

    A phase lasts as long as its slowest function, in turns if there are more than may run at once.
    """
    job, ends = sampler.job, np.zeros((1, 1))
    all_at_once = job.max_concurrency >= job.number
    for phase in phases:
        rows = _listed(job, phase.rows, phase.functions)
        seconds = sampler.times(rows, functions=phase.functions).transfer_s
        turns = -(-phase.functions // job.max_concurrency)
        lasts = turns * seconds.max(axis=1, keepdims=True)
        if phase.overlaps and all_at_once:
            # The last objects of the previous phase are still to be read.
            operations = sum(row.count for row in rows)
            ends = np.maximum(ends, lasts) + lasts / turns / max(1.0, operations)
        else:
            ends = ends + lasts
        if all_at_once:
            seconds = np.broadcast_to(ends, seconds.shape)
        yield (
            ExpectedPhase(
                end_s=float(np.median(ends)),
                function_s=float(np.median(seconds)),
                requests=round(phase.functions * sum(row.requests for row in rows)),
            ),
            seconds,
        )


def _mean_of_mix(job: JobSpec, size: int) -> tuple[Operations, ...]:
    """Return the mean work of an operation of the mix."""
    mix = job.declared.kinds(job.load)
    total = sum(mix.values())
    sizes = {_PUT: size, _GET: size, OperationKind.GET_RANGE: min(size, job.load.range_size)}
    return tuple(
        replace(_of_kind(job, kind, sizes.get(kind, 0)), count=weight / total)
        for kind, weight in mix.items()
    )


def _of_kind(job: JobSpec, kind: OperationKind, moved: int) -> Operations:
    """Return one operation."""
    like = _LIKE.get(kind, _PUT)
    row = replace(objects_of(job, like, moved), count=1.0, billed=kind not in _FREE)
    return replace(row, size=moved)


def _is_unknown(job: JobSpec) -> bool:
    """Return whether the number of requests of a job's operations is unknown."""
    kinds = job.declared.kinds(job.load)
    # The number of rejected writes is a result of a contended job.
    return not kinds or not kinds.keys().isdisjoint(CONTENDED)


def _requests_at_most(sampler: Sampler) -> dict[OperationKind, float]:
    """Return the maximum number of requests of a function, by class."""
    job, workload = sampler.job, sampler.job.declared
    if Trait.NO_REQUESTS not in workload.traits and _is_unknown(job):
        return _in_time(sampler, job.deadline, puts=1.0)
    if job.load.sizes is not None:
        job = replace(job, size=parse_sizes(job.load.sizes).maximum())
    tally = tally_of(workload, job.load)
    if tally is not None and tally.phases:
        # Any function may be of any phase, and may list until its deadline.
        each = [_listed(job, one.rows, one.functions) for one in tally.phases]
        most = {kind: max(requests_of(work, kind) for work in each) for kind in (_PUT, _GET)}
        most[_PUT] += job.deadline / tally.poll_s if tally.poll_s else 0.0
        return most
    duration_s, rate_per_s = job.duration, job.load.rate
    if duration_s is not None and rate_per_s is not None:
        due = math.ceil(rate_per_s * duration_s / job.number) + job.load.threads
        return _planned(replace(sampler, job=job), due)
    once = _planned(replace(sampler, job=job))
    if duration_s is None:
        return once
    share = float(once[_PUT] > 0)
    if job.load.is_drawn:
        mix = _mean_of_mix(job, mean_bytes(job, sampler.conditions) or 1)
        puts, gets = requests_of(mix, _PUT), requests_of(mix, _GET)
        share = puts / (puts + gets or 1)
    timed = _in_time(sampler, duration_s, puts=share)
    return {kind: once[kind] + timed[kind] for kind in once}


def _bytes_at_most(
    sampler: Sampler, requests: Mapping[OperationKind, float], seconds: float
) -> dict[OperationKind, float]:
    """Return the maximum number of bytes that a function sends and receives.

    Each attempt of a planned request transfers a full object or part; the sum is limited by the
    network of a function with the highest quota that an account can get.
    """
    job, memory = sampler.job, sampler.conditions.memory_mib
    carried = BURST_BYTES + seconds * function_network(memory, quota_mbps=MOST_MBPS)
    if Trait.NO_REQUESTS not in job.declared.traits and not job.declared.kinds(job.load):
        return dict.fromkeys(requests, carried)
    attempts = 1 + job.transfer.retries
    return {
        kind: min(carried, count * attempts * _piece_bytes(sampler, kind)) if count else 0.0
        for kind, count in requests.items()
    }


def _piece_bytes(sampler: Sampler, kind: OperationKind) -> float:
    """Return the maximum number of bytes of a request; infinity if the size is unknown."""
    job, workload = sampler.job, sampler.job.declared
    if isinstance(workload, Conditional):
        return workload.most_bytes
    if pieces_of(workload, job.load) is not None:
        return _library_row(replace(sampler, job=replace(job, duration=None))).size
    sizes = job.load.sizes
    size = mean_bytes(job, sampler.conditions) if sizes is None else parse_sizes(sizes).maximum()
    return math.inf if size is None else min(size, job.transfer.part_length(kind, size) or size)


def _planned(sampler: Sampler, due: int | None = None) -> dict[OperationKind, float]:
    """Return the requests of a function in a round, or in ``due`` operations."""
    job = replace(sampler.job, duration=None)
    is_drawn = job.load.is_drawn
    if due is not None and is_drawn:
        job = replace(job, load=replace(job.load, operations=due))
    once = _work(replace(sampler, job=job))
    if once is None:
        # A read of objects of unknown size reads each object in one request.
        once = _overhead(0, job.objects * job.read_times * (1 + job.warm_up))
    rounds = 1.0 if due is None or is_drawn else 1 + due / (job.objects * job.read_times)
    return {kind: rounds * requests_of(once, kind) for kind in (_PUT, _GET)}


def _in_time(sampler: Sampler, seconds: float, *, puts: float) -> dict[OperationKind, float]:
    """Return the requests that fit into a time; ``puts`` is the fraction in the PUT class."""
    job, store = sampler.job, sampler.model.store_of(sampler.job.target.bucket)
    streams = job.load.threads * job.transfer.connections
    if job.load.library is not None:
        streams = _IN_ARRAYS
    count = 2 * streams * seconds / (puts * store.put_s + (1 - puts) * store.get_s)
    return {_PUT: count * puts, _GET: count * (1 - puts)}
