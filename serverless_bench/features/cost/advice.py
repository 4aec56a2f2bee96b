"""Warnings about a plan."""

import math
from collections.abc import Iterator
from typing import Final

from serverless_bench.base.units import MIB
from serverless_bench.features.aws.lambda_network import BASE_MBPS, RAISED_FROM_MIB
from serverless_bench.features.cost.forecast import Forecast, Operations, Sampler
from serverless_bench.job.endpoint import is_directory_bucket
from serverless_bench.job.operations import OperationKind
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import DEFAULT_CLIENTS, StoreProtocol

MAX_FUNCTION_S: Final = 900
"""AWS Lambda quotas: timeout of a function."""

MAX_EVENT_BYTES: Final = 1_000_000
"""AWS Lambda quotas: payload of an asynchronous invocation, 1 MB."""

_WARN_PER_S: Final = {OperationKind.PUT: 2500, OperationKind.GET: 4000}
_PART_STEP: Final = 8 * MIB
_BASE_MIB: Final = {DEFAULT_CLIENTS[StoreProtocol.S3]: 60}
_OTHER_BASE_MIB: Final = 90
"""Largest resident set of a worker (docs/performance-full.md, 40 and 80 MiB for boto3), plus an
estimate for Lambda's runtime.
"""


def event_warnings(event_bytes: int) -> Iterator[str]:
    """Yield that the event of a function is too large, if it is."""
    if event_bytes > MAX_EVENT_BYTES:
        yield (
            f"event: that of a function has {event_bytes / 1e6:.1f} MB, and AWS Lambda takes 1 MB;"
            " take more functions, with fewer keys each"
        )


def warnings(load: Operations, expected: Forecast, sampler: Sampler) -> Iterator[str]:
    """Yield possible problems of a phase and their solutions."""
    setting = sampler.conditions
    if expected.batches > 1:
        yield (
            f"quota: {sampler.job.number} functions exceed a concurrency of {expected.concurrency};"
            f" this will be {expected.batches} batches. Ask AWS for {sampler.job.number} (Service"
            " Quotas, Lambda, concurrent executions) or lower --number"
        )
    yield from _partition(load, expected, sampler)
    if (memory := _memory_needed_mib(sampler.job)) > setting.memory_mib:
        yield (
            f"memory: a function needs about {memory} MB and has"
            f" {setting.memory_mib}; raise --memory, or lower --connections or --block-size"
        )
    if expected.function_s.p95 > MAX_FUNCTION_S:
        yield (
            f"time: a function would need up to {expected.function_s.p95:.0f} s, but AWS stops it"
            f" after {MAX_FUNCTION_S}; transfer less per function, or use more memory"
        )
    if setting.network_mbps > BASE_MBPS and setting.memory_mib <= RAISED_FROM_MIB:
        yield (
            f"network: a higher quota has no effect up to {RAISED_FROM_MIB} MB of memory, and a"
            f" function has {setting.memory_mib}; raise --memory"
        )
    if setting.in_vpc:
        yield (
            "VPC: 256 functions in one got 21.9 MB/s each instead of 106 (Skyrise, EDBT 2025),"
            " and a higher network quota does not apply there."
            " Without a gateway endpoint NAT is billed for every byte"
        )


def _memory_needed_mib(job: JobSpec) -> int:
    """Return the memory of a function: the base, and two blocks per connection."""
    blocks = 2 * job.load.threads * job.transfer.connections * job.transfer.block_size
    return _BASE_MIB.get(job.target.client, _OTHER_BASE_MIB) + math.ceil(blocks / MIB)


def _partition(load: Operations, expected: Forecast, sampler: Sampler) -> Iterator[str]:
    if is_directory_bucket(sampler.job.target.bucket):
        # Its directories support hundreds of thousands of requests per second.
        return
    warn = _WARN_PER_S[load.kind]
    if expected.asked_per_s <= warn:
        return
    at_all = expected.asked_per_s * sampler.job.number / expected.concurrency
    rate_of_all = f" ({at_all:,.0f} if all ran concurrently)" if expected.batches > 1 else ""
    part = (sampler.job.transfer.part_length(load.kind, int(load.size)) or load.size) / MIB
    pieces = "parts" if load.kind is OperationKind.PUT else "ranges"
    unit = f"{part:g} MiB {pieces}" if load.parts > 1 else "whole objects"
    limit = getattr(sampler.model.store, f"{load.kind}_per_s") or math.inf
    text = (
        f"S3: {unit} make {expected.asked_per_s:,.0f} {load.kind.upper()}/s{rate_of_all}; a"
        f" partition, and a new bucket has only one, supports {limit:,.0f} and"
        " returns 503 above"
    )
    # The last part may be smaller, but it is a request, too.
    most = max(1.0, warn * load.parts / expected.asked_per_s)
    calm = math.ceil(load.size / math.floor(most) / _PART_STEP) * _PART_STEP
    if load.size > calm:
        text += f". --part-size {calm // MIB}MiB stays below {warn:,}"
    yield text
