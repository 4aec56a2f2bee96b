"""Predict duration and requests of a planned job.

Network
-------
Each function has a token bucket per direction: a burst, and a rate that depends on its memory, its
VPC and its account's quota (``aws.lambda_network`` has the numbers). The function takes bytes
out of the bucket at the minimum of

* the line rate, 1.2 GiB/s in and 0.65 GiB/s out (iPerf3 raw data of hpides/skyrise, EDBT 2025,
  four connections),
* 100 MB/s for each connection (99.7 to 99.85 MB/s in Lithops' published records of 2022,
  p5 to p99 of 1,000 functions; an inference, AWS documents 85 to 90),
* the rate that the function's CPU can sustain.

In this fluid model, a transfer of ``S`` bytes at that rate ``c`` takes ``S / c`` until the
bucket is empty, and ``(S - burst) / rate`` in total after that. At 1,769 MB the model gives
1,045 MiB in 10 s; measured in 2025: 1,059 out, 1,063 in.

CPU
---------
1,769 MB are one vCPU (AWS Lambda developer guide, "Configure Lambda function memory"), and
one thread uses no more; docs/performance-full.md has the core-seconds per GiB of each client
over https, machine X.

Waiting
-------
A request for a small object takes some 40 ms to write and 20 ms to read (Skyrise, EDBT
2025, section 4.3.3: median put of 1 KiB; the get is assumed), and a thread performs one operation
after the other. A transfer takes the longer of both: the tokens, or line and waiting.

Launch
------
1,000 environments immediately and 100 per second after that for each function (AWS Lambda
developer guide, "Lambda function scaling"; refilled continuously, best effort), limited by the
account's quota and by the rate at which a distant driver can send events.
"""

import math
from dataclasses import dataclass, replace
from typing import Final

from serverless_bench.base.units import GIB, MIB
from serverless_bench.features.aws.lambda_network import BASE_MBPS, BURST_BYTES, function_network
from serverless_bench.features.aws.options import FunctionOptions
from serverless_bench.features.aws.stack.template import DEFAULT_QUOTA as DEFAULT_QUOTA
from serverless_bench.features.aws.stack.template import VCPU_MIB as VCPU_MIB
from serverless_bench.features.cost.prices import BilledUsage
from serverless_bench.job.endpoint import is_directory_bucket
from serverless_bench.job.operations import OperationKind
from serverless_bench.job.spec import JobSpec, Work
from serverless_bench.job.target import DEFAULT_CLIENTS, StoreProtocol, Transfer
from serverless_bench.job.workload import Trait, workload_of

CONNECTION_BYTES_PER_S: Final = 100e6
LINE_BYTES_PER_S: Final = {OperationKind.PUT: 0.65 * GIB, OperationKind.GET: 1.2 * GIB}
REQUEST_S: Final = {OperationKind.PUT: 0.04, OperationKind.GET: 0.02}
OVERHEAD_S: Final = 1.0
"""Start of the runtime, imports, first connection, and saving the record: billed; assumed."""
LAUNCH_AT_ONCE: Final = 1000
LAUNCH_PER_S: Final = 100.0
MOST_UNDER_WAY: Final = 128
"""Concurrent requests of a driver for events; a process of macOS may have 256 open files."""

_THIN: Final = DEFAULT_CLIENTS[StoreProtocol.S3]
_CORE_S_PER_GIB: Final = {(_THIN, OperationKind.PUT): 1.19, (_THIN, OperationKind.GET): 1.42}
_OTHER_CORE_S_PER_GIB: Final = {OperationKind.PUT: 2.61, OperationKind.GET: 1.48}
"""Measured with boto3, used for all other clients."""
_BASE_MIB: Final = {_THIN: 60}
_OTHER_BASE_MIB: Final = 90
"""Largest resident set of a worker (docs/performance-full.md, 40 and 80 MiB for boto3), plus an
estimate for Lambda's runtime.
"""

CONTROL_PUTS: Final = 2
"""Per invocation: its claim and its record."""
CONTROL_GETS: Final = 1.0
CONTROL_LISTS: Final = 0.2
"""Per invocation: the driver fetches each record, and lists a thousand records per request."""
LOG_BYTES: Final = 700
"""Per invocation, assumed: the lines START, END and REPORT."""

LIMIT_PER_S: Final = {OperationKind.PUT: 3500, OperationKind.GET: 5500}
"""Limit of a partition (Amazon S3 user guide, "Best practices design patterns")."""
WARN_PER_S: Final = {OperationKind.PUT: 2500, OperationKind.GET: 4000}
_PART_STEP: Final = 8 * MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class CostConditions:
    """Parameters of a prediction besides the job."""

    memory_mib: int
    architecture: str
    """Same as in ``PlannedLoad``."""
    object_bytes: int | None = None
    """Mean size of the objects if the job does not define it, as for a read."""
    quota: int | None = None
    """Limit of concurrent functions; None takes the job's concurrency."""
    timeout_s: float | None = None
    """Time limit of a function on the platform; None if unknown."""
    network_mbps: float = BASE_MBPS
    round_trip_s: float = 0.0
    in_vpc: bool = False
    """Same as in ``PlannedLoad``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedLoad:
    """A phase of a job and its environment."""

    kind: OperationKind
    functions: int
    objects: int = 1
    """Number per function."""
    object_bytes: int
    repeats: int = 1
    """Number of transfers of each object."""
    transfer: Transfer
    client: str = _THIN
    threads: int = 1
    """Concurrent operations in a function."""
    memory_mib: int = VCPU_MIB
    quota: int = 1000
    """Limit of concurrent functions."""
    network_mbps: float = BASE_MBPS
    """The account's quota for the network of a function."""
    names: int = 1
    """Number of Lambda functions that share the invocations."""
    round_trip_s: float = 0.0
    """Round trip from the driver to Lambda's API."""
    express: bool = False
    """Whether the objects are in S3 Express One Zone."""
    in_vpc: bool = False
    """Whether the functions are in a VPC, where a higher network quota does not apply."""

    @property
    def operations(self) -> int:
        """Number of operations per function."""
        return self.objects * self.repeats

    @property
    def function_bytes(self) -> int:
        """Bytes transferred per function."""
        return self.operations * self.object_bytes

    @property
    def total_bytes(self) -> int:
        """Bytes transferred by all functions."""
        return self.functions * self.function_bytes

    @property
    def part_bytes(self) -> int:
        """Largest number of bytes in one request."""
        return self.transfer.part_length(self.kind, self.object_bytes) or self.object_bytes

    @property
    def parts(self) -> int:
        """Number of requests that transfer the bytes of an object."""
        return -(-self.object_bytes // self.part_bytes)

    @property
    def requests(self) -> int:
        """Number of requests for an object; a multipart upload is also created and completed."""
        return self.parts + 2 * (self.kind is OperationKind.PUT and self.parts > 1)

    @property
    def sustained_bytes_per_s(self) -> float:
        """Network rate of a function after the burst."""
        return function_network(self.memory_mib, quota_mbps=self.network_mbps, in_vpc=self.in_vpc)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """Prediction for a phase."""

    function_s: float
    """Billed time of a function."""
    transfer_s: float
    """Part of it for transfers and for waiting for the store."""
    concurrency: int
    """Number of concurrent functions."""
    batches: int
    """Number of times that the quota is used up, including the first time."""
    launch_s: float
    """Time between the start of the first and of the last function."""
    run_s: float
    """Time between the start of the first function and the end of the last."""
    requests_per_s: float
    """Rate of requests with bytes at the highest concurrency."""
    part_bytes: int
    """Smallest part or range, in steps of 8 MiB, that keeps ``requests_per_s`` below the warning.
    """
    memory_needed_mib: int
    """Memory of a function: the base, and two blocks per connection."""


def load_of(job: JobSpec, setting: CostConditions, object_bytes: int) -> PlannedLoad | None:
    """Return the load of a job; None for a workload without transfers.

    Parameters
    ----------
    job
        Planned or completed job.
    setting
        Parameters of its environment.
    object_bytes
        Size of an object, or the mean size; functions that share an object read a part of it.
    """
    kind = moving_kind(job)
    if kind is None:
        return None
    load = one_load(job, setting, kind, -(-object_bytes // (job.load.split or 1)))
    rounds = (job.read_times if kind is OperationKind.GET else 1) * (1 + job.warm_up)
    load = replace(load, repeats=rounds)
    if job.duration is None:
        return load
    from_time = done_in(load, job.duration, job.load.rate) / load.objects
    return replace(load, repeats=max(1, round(from_time)) + job.warm_up)


def one_load(
    job: JobSpec, setting: CostConditions, kind: OperationKind, object_bytes: int
) -> PlannedLoad:
    """Return the load of a job that transfers each object once."""
    return PlannedLoad(
        kind=kind,
        functions=job.number,
        objects=job.objects,
        object_bytes=max(1, object_bytes),
        transfer=job.transfer,
        client=job.target.client,
        threads=job.load.threads,
        memory_mib=setting.memory_mib,
        quota=setting.quota or job.concurrency,
        network_mbps=setting.network_mbps,
        names=max(1, len(FunctionOptions.from_work(job).function)),
        round_trip_s=setting.round_trip_s,
        express=is_directory_bucket(job.target.bucket),
        in_vpc=setting.in_vpc,
    )


def functions_usage(
    of: CostConditions, count: int, function_s: float, *, look_s: float
) -> BilledUsage:
    """Return the usage of functions without their operations on objects.

    Parameters
    ----------
    of, count, function_s
        The functions, how many there are, and the time of each.
    look_s
        Interval at which they look for a stop below the control prefix; infinite without one.
    """
    controlled = count * math.isfinite(look_s)
    return BilledUsage(
        architecture=of.architecture,
        gb_s=count * function_s * of.memory_mib / 1024,
        invocations=count,
        control_puts=math.ceil((CONTROL_PUTS + CONTROL_LISTS) * controlled) + (controlled > 0),
        control_gets=math.ceil((CONTROL_GETS + 1 + function_s / look_s) * controlled),
        log_bytes=LOG_BYTES * count,
    )


def done_in(load: PlannedLoad, seconds: float, rate_per_s: float | None = None) -> float:
    """Return the operations of a function in a time; for an open loop, at most its share."""
    most = moved_bytes(load, seconds) / load.object_bytes
    each_s = REQUEST_S[load.kind] + load.object_bytes / line_rate(load) * load.threads
    most = min(most, seconds * load.threads / each_s)
    return most if rate_per_s is None else min(most, rate_per_s * seconds / load.functions)


def busy_s(load: PlannedLoad) -> float:
    """Return the time of a cold function for all operations, including waiting."""
    moving_s = transfer_s(load, load.function_bytes)
    waiting_s = load.operations * REQUEST_S[load.kind] / load.threads
    return max(moving_s, load.function_bytes / line_rate(load) + waiting_s)


def transfer_s(load: PlannedLoad, size_bytes: int) -> float:
    """Return the time of a cold function for ``size_bytes``; see the top of this file."""
    rate, sustained = line_rate(load), load.sustained_bytes_per_s
    if rate <= sustained or size_bytes * (1 - sustained / rate) <= BURST_BYTES:
        return size_bytes / rate
    return (size_bytes - BURST_BYTES) / sustained


def moved_bytes(load: PlannedLoad, seconds: float) -> int:
    """Return the bytes of a cold function in ``seconds``: the inverse of ``transfer_s``."""
    return int(min(line_rate(load) * seconds, BURST_BYTES + load.sustained_bytes_per_s * seconds))


def line_rate(load: PlannedLoad) -> float:
    """Return the bytes per second of a function with a full bucket."""
    return min(
        LINE_BYTES_PER_S[load.kind],
        load.threads * load.transfer.connections * CONNECTION_BYTES_PER_S,
        min(1.0, load.memory_mib / VCPU_MIB) * GIB / core_s_per_gib(load.client, load.kind),
    )


def core_s_per_gib(client: str, kind: OperationKind) -> float:
    """Return the CPU time of a client for 2**30 bytes over https."""
    return _CORE_S_PER_GIB.get((client, kind), _OTHER_CORE_S_PER_GIB[kind])


def forecast(load: PlannedLoad) -> Forecast:
    """Return the prediction for ``load``."""
    moving_s = busy_s(load)
    function_s = moving_s + OVERHEAD_S
    concurrency = min(load.functions, load.quota)
    first, last = launch(load, function_s)
    per_s = concurrency * load.operations * load.parts / moving_s
    run_s = last - first + function_s
    blocks = 2 * load.threads * load.transfer.connections * load.transfer.block_size
    return Forecast(
        function_s=function_s,
        transfer_s=moving_s,
        concurrency=concurrency,
        batches=-(-load.functions // load.quota),
        launch_s=last - first,
        run_s=run_s,
        requests_per_s=per_s,
        part_bytes=_calm_part(load, concurrency * load.operations / moving_s),
        memory_needed_mib=_BASE_MIB.get(load.client, _OTHER_BASE_MIB) + math.ceil(blocks / MIB),
    )


def _calm_part(load: PlannedLoad, objects_per_s: float) -> int:
    """Return the smallest part size with a request rate below the warning, if there is one."""
    most = max(1.0, WARN_PER_S[load.kind] / objects_per_s)
    # The last part may be smaller, but it is a request, too.
    return math.ceil(load.object_bytes / math.floor(most) / _PART_STEP) * _PART_STEP


def events_under_way(round_trip_s: float) -> int:
    """Return the number of concurrent requests for 1,000 events per second, if possible."""
    return max(24, min(MOST_UNDER_WAY, math.ceil(LAUNCH_AT_ONCE * round_trip_s)))


def launch(load: PlannedLoad, function_s: float) -> tuple[float, float]:
    """Return the start times of the first and the last function in seconds.

    Each name has a token bucket of ``LAUNCH_AT_ONCE`` environments; a function waits for a
    token, for the end of the function that started ``quota`` earlier, and for the driver.
    """
    pace_s = load.round_trip_s / events_under_way(load.round_trip_s)
    capacity = float(LAUNCH_AT_ONCE * load.names)
    per_s = LAUNCH_PER_S * load.names
    starts: list[float] = []
    tokens, now = capacity, 0.0
    for index in range(load.functions):
        free = starts[index - load.quota] + function_s if index >= load.quota else 0.0
        at = max(now + pace_s, free)
        tokens = min(capacity, tokens + (at - now) * per_s)
        wait = max(0.0, 1 - tokens) / per_s
        tokens, now = tokens + wait * per_s - 1, at + wait
        starts.append(now)
    return starts[0], starts[-1]


def moving_kind(work: Work) -> OperationKind | None:
    """Return PUT or GET if a job has only such operations, ranges included; None otherwise."""
    workload = workload_of(work.workload)
    deals = Trait.DEALS_OBJECTS in workload.traits
    kinds = set(workload.kinds(work.load)) if deals else set()
    if kinds == {OperationKind.PUT}:
        return OperationKind.PUT
    return OperationKind.GET if kinds & {OperationKind.GET, OperationKind.GET_RANGE} else None
