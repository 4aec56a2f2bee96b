"""Warnings about a plan, and alternatives with a higher cost."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from serverless_bench.aws.cost.forecast import (
    LIMIT_PER_S,
    WARN_PER_S,
    Forecast,
    PlannedLoad,
    Route,
    forecast,
)
from serverless_bench.aws.cost.prices import HOURS_PER_MONTH, BilledUsage, Prices, price
from serverless_bench.aws.lambda_network import BASE_MBPS, RAISED_FROM_MIB
from serverless_bench.job.operations import OperationKind
from serverless_bench.units import GIB, MIB

MAX_FUNCTION_S: Final = 900
"""AWS Lambda quotas: timeout of a function."""
_ASYNC_ATTEMPTS: Final = 3
_SMALL_PART: Final = 8 * MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Trap:
    """A cause of additional cost."""

    name: str
    amount: float
    """Additional cost beyond the plan."""
    text: str
    """Text that starts with ``if`` or names a period."""


def warnings(load: PlannedLoad, expected: Forecast) -> Iterator[str]:
    """Yield possible problems of a phase and their solutions."""
    if expected.waves > 1:
        yield (
            f"quota: {load.functions} functions do not fit into {load.quota} at once; this will be"
            f" {expected.waves} waves. Ask AWS for {load.functions} (Service Quotas, Lambda,"
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
    if load.route is not Route.NONE:
        yield (
            "VPC: 256 functions in one got 18 MiB/s each instead of 77.6 (Skyrise, EDBT 2025),"
            " and a higher network quota does not apply there; these figures are too optimistic."
            " A gateway endpoint is free"
        )


def _partition(load: PlannedLoad, expected: Forecast) -> Iterator[str]:
    if load.express:
        # Its directories support hundreds of thousands of requests per second.
        return
    warn = WARN_PER_S[load.kind]
    if expected.requests_per_s <= warn:
        return
    at_all = expected.requests_per_s * load.functions / expected.at_once
    rate_of_all = f" ({at_all:,.0f} if all were at once)" if expected.waves > 1 else ""
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


def traps(loads: Sequence[PlannedLoad], prices: Prices) -> list[Trap]:
    """Return possible additional costs of the phases in ``loads`` together."""
    total = sum(load.total_bytes for load in loads)
    written = sum(load.total_bytes for load in loads if load.kind is OperationKind.PUT)
    read, gib = total - written, total / GIB
    kept = sum(
        load.functions * load.objects * load.object_bytes
        for load in loads
        if load.kind is OperationKind.PUT
    )
    month = BilledUsage(express=loads[0].express, storage_byte_h=kept * HOURS_PER_MONTH)
    compute = sum(price(forecast(load).usage, prices).compute for load in loads)
    runaway = sum(load.functions * load.memory_mib / 1024 * MAX_FUNCTION_S for load in loads)
    candidates = [
        *_small_parts(loads, prices),
        *_routes(loads, prices),
        Trap(
            name="cross_region",
            amount=0.0 if loads[0].cross_region else gib * prices.network_cross_region_gb,
            text="if the bucket is in another region",
        ),
        Trap(
            name="internet",
            amount=max(read, written) / GIB * prices.network_internet_gb,
            text="if what is read leaves AWS, or what is written goes to a store outside",
        ),
        Trap(
            name="express",
            amount=0.0
            if loads[0].express
            else written / GIB * prices.express_upload_gb
            + read / GIB * prices.express_retrieval_gb,
            text="transfer fees if the bucket is S3 Express One Zone",
        ),
        Trap(
            name="forgotten",
            amount=price(month, prices).storage,
            text="a month until the objects are deleted",
        ),
        Trap(
            name="async_retries",
            amount=compute * (_ASYNC_ATTEMPTS - 1),
            text="if every function fails and AWS runs its event again, twice",
        ),
        Trap(
            name="runaway",
            amount=runaway * prices.gb_s(loads[0].architecture) - compute,
            text=f"if every function runs into its timeout of {MAX_FUNCTION_S} s",
        ),
    ]
    return [trap for trap in candidates if trap.amount > 0]


def _small_parts(loads: Sequence[PlannedLoad], prices: Prices) -> Iterator[Trap]:
    """Yield the additional cost of boto3's default part size, if it is smaller."""
    amount, words = 0.0, []
    for load in loads:
        small = replace(load, transfer=replace(load.transfer, part_size=_SMALL_PART))
        if small.requests <= load.requests:
            continue
        now, then = (price(forecast(planned).usage, prices) for planned in (load, small))
        amount += then.puts + then.gets - now.puts - now.gets
        # Rate of the functions if the quota allowed all of them to run at the same time.
        per_s = forecast(replace(small, quota=load.functions)).requests_per_s
        words.append(f"{per_s:,.0f} of {LIMIT_PER_S[load.kind]:,} {load.kind.upper()}/s")
    if words:
        yield Trap(
            name="small_parts",
            amount=amount,
            text="if parts and ranges were 8 MiB, boto3's default"
            f" ({', '.join(words)} with all functions at once)",
        )


def _routes(loads: Sequence[PlannedLoad], prices: Prices) -> Iterator[Trap]:
    """Yield the additional cost of other routes to S3."""
    free = _network(loads, Route.NONE, prices)
    for route, text in (
        (Route.NAT, "if the functions sit in a VPC behind NAT"),
        (
            Route.ENDPOINT,
            "if they reach S3 through an interface endpoint (a gateway endpoint is free)",
        ),
    ):
        yield Trap(name=route.value, amount=_network(loads, route, prices) - free, text=text)


def _network(loads: Sequence[PlannedLoad], route: Route, prices: Prices) -> float:
    usages = (forecast(replace(load, route=route)).usage for load in loads)
    return sum(price(usage, prices).network for usage in usages)
