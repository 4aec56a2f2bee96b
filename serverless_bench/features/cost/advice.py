"""Warnings about a plan."""

from collections.abc import Iterator
from typing import Final

from serverless_bench.base.units import MIB
from serverless_bench.features.aws.lambda_network import BASE_MBPS, RAISED_FROM_MIB
from serverless_bench.features.cost.forecast import LIMIT_PER_S, WARN_PER_S, Forecast, PlannedLoad
from serverless_bench.job.operations import OperationKind

MAX_FUNCTION_S: Final = 900
"""AWS Lambda quotas: timeout of a function."""

MAX_EVENT_BYTES: Final = 1_000_000
"""AWS Lambda quotas: payload of an asynchronous invocation, 1 MB."""


def event_warnings(event_bytes: int) -> Iterator[str]:
    """Yield that the event of a function is too large, if it is."""
    if event_bytes > MAX_EVENT_BYTES:
        yield (
            f"event: that of a function has {event_bytes / 1e6:.1f} MB, and AWS Lambda takes 1 MB;"
            " take more functions, with fewer keys each"
        )


def warnings(load: PlannedLoad, expected: Forecast) -> Iterator[str]:
    """Yield possible problems of a phase and their solutions."""
    if expected.batches > 1:
        yield (
            f"quota: {load.functions} functions exceed a concurrency of {load.quota}; this will be"
            f" {expected.batches} batches. Ask AWS for {load.functions} (Service Quotas, Lambda,"
            " concurrent executions) or lower --number"
        )
    yield from _partition(load, expected)
    if expected.memory_needed_mib > load.memory_mib:
        yield (
            f"memory: a function needs about {expected.memory_needed_mib} MB and has"
            f" {load.memory_mib}; raise --memory, or lower --connections or --block-size"
        )
    if expected.function_s > MAX_FUNCTION_S:
        yield (
            f"time: a function would need {expected.function_s:.0f} s, but AWS stops it after"
            f" {MAX_FUNCTION_S}; transfer less per function, or use more memory"
        )
    if load.network_mbps > BASE_MBPS and load.memory_mib <= RAISED_FROM_MIB:
        yield (
            f"network: a higher quota has no effect up to {RAISED_FROM_MIB} MB of memory, and a"
            f" function has {load.memory_mib}; raise --memory"
        )
    if load.in_vpc:
        yield (
            "VPC: 256 functions in one got 18 MiB/s each instead of 77.6 (Skyrise, EDBT 2025),"
            " and a higher network quota does not apply there; these figures are too optimistic."
            " Without a gateway endpoint NAT is billed for every byte"
        )


def _partition(load: PlannedLoad, expected: Forecast) -> Iterator[str]:
    if load.express:
        # Its directories support hundreds of thousands of requests per second.
        return
    warn = WARN_PER_S[load.kind]
    if expected.requests_per_s <= warn:
        return
    at_all = expected.requests_per_s * load.functions / expected.concurrency
    rate_of_all = f" ({at_all:,.0f} if all ran concurrently)" if expected.batches > 1 else ""
    part = load.part_bytes / MIB
    pieces = "parts" if load.kind is OperationKind.PUT else "ranges"
    unit = f"{part:g} MiB {pieces}" if load.parts > 1 else "whole objects"
    text = (
        f"S3: {unit} make {expected.requests_per_s:,.0f} {load.kind.upper()}/s{rate_of_all}; a"
        f" partition, and a new bucket has only one, supports {LIMIT_PER_S[load.kind]:,} and"
        " returns 503 above"
    )
    if load.object_bytes > expected.part_bytes:
        text += f". --part-size {expected.part_bytes // MIB}MiB stays below {warn:,}"
    yield text
