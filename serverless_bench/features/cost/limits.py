"""Limits of each function by itself, from a model, a job and a deployed function."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from serverless_bench.base.units import GIB
from serverless_bench.features.aws.lambda_network import BASE_MBPS, BURST_BYTES, function_network
from serverless_bench.features.aws.stack.template import VCPU_MIB as VCPU_MIB
from serverless_bench.features.cost.model import Model
from serverless_bench.job.operations import OperationKind
from serverless_bench.job.target import DEFAULT_CLIENTS, StoreProtocol
from serverless_bench.rundir.tables import Floats

_THIN: Final = DEFAULT_CLIENTS[StoreProtocol.S3]


@dataclass(frozen=True, slots=True, kw_only=True)
class CostConditions:
    """Deployed functions, their account, and what else a job does not say."""

    memory_mib: int = VCPU_MIB
    architecture: str = "arm64"
    object_bytes: int | None = None
    """Mean size of the objects if the job does not define it, as for a read."""
    quota: int | None = None
    """Limit of concurrent functions; None takes the job's concurrency."""
    timeout_s: float | None = None
    """Time limit of a function on the platform; None if unknown."""
    network_mbps: float = BASE_MBPS
    """The account's quota for the network of a function."""
    names: int = 1
    """Number of Lambda functions that share the invocations."""
    round_trip_s: float = 0.0
    """Round trip from the driver to Lambda's API."""
    in_vpc: bool = False
    """Whether the functions are in a VPC, where a higher network quota does not apply."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FunctionLimits:
    """Limits of functions in one direction of transfer."""

    burst_bytes: float
    bytes_per_s: float
    """Rate of the network after the burst; infinite for no limit, like the rates below."""
    line: float
    """Rate of the network, and of the CPU, at any time."""
    processor: float
    """Rate of the CPU, which ``line`` includes."""
    connection: Floats
    """Rate of a connection of each function."""
    claim: Floats
    """Weight of each among the functions that share the store."""
    core_s_per_gib: float
    function_s: float = 0.0
    """Approximate duration of a function, of which the steps of a simulation are a fraction."""


def limits_of(
    model: Model,
    kind: OperationKind,
    shape: tuple[int, ...],
    conditions: CostConditions,
    *,
    client: str,
    rng: np.random.Generator,
) -> FunctionLimits:
    """Return the limits of functions.

    Parameters
    ----------
    model, conditions
        Sources of the limits.
    kind
        PUT or GET, which is the direction.
    shape
        Shape of the arrays of functions.
    client
        Client library, which determines the CPU time.
    rng
        Source of the differences between connections.
    """
    function = model.function
    line, connection, sigma, slow_share = (
        getattr(function, name)
        for name in (
            f"line_{kind}_bytes_per_s",
            f"connection_{kind}_bytes_per_s",
            f"connection_{kind}_sigma",
            f"slow_{kind}_share",
        )
    )
    rates = np.exp(sigma * rng.standard_normal(shape)) * (connection or np.inf)
    if slow_share:
        slow = rng.random(shape) < slow_share
        factors = rng.random(int(slow.sum())) ** (1 / function.slow_slope)
        rates[slow] *= np.maximum(factors, 1 / function.slow_most)
    core_s = function.core_s_per_gib
    if core_s is None:
        core_s = getattr(
            function, f"{'wire' if client == _THIN else 'other'}_{kind}_core_s_per_gib"
        )
    vcpus = min(1.0, conditions.memory_mib / VCPU_MIB) if function.on_lambda else 1.0
    processor = vcpus * GIB / core_s if core_s else np.inf
    burst, rate = _network(model, conditions)
    return FunctionLimits(
        burst_bytes=burst,
        bytes_per_s=rate,
        line=min(line or np.inf, processor),
        processor=processor,
        connection=rates,
        claim=np.exp(model.store.share_sigma * rng.standard_normal(shape)),
        core_s_per_gib=core_s,
    )


def shared_bytes_per_s(model: Model, bucket: str, conditions: CostConditions) -> float:
    """Return the rate of all functions together; infinite for no limit."""
    in_vpc = model.function.vpc_bytes_per_s if conditions.in_vpc else None
    return min(model.store_of(bucket).bytes_per_s or np.inf, in_vpc or np.inf)


def _network(model: Model, conditions: CostConditions) -> tuple[float, float]:
    """Return burst and rate of a function's network."""
    function = model.function
    if function.bytes_per_s is not None:
        return function.burst_bytes or 0.0, function.bytes_per_s
    if not function.on_lambda:
        return 0.0, np.inf
    return BURST_BYTES, function_network(
        conditions.memory_mib, quota_mbps=conditions.network_mbps, in_vpc=conditions.in_vpc
    )
