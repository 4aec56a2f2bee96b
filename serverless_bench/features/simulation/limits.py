"""Limits of each function by itself, from a model, a job and a deployed function."""

from dataclasses import dataclass

import numpy as np

from serverless_bench.base.units import GIB
from serverless_bench.features.aws.lambda_network import BASE_MBPS, BURST_BYTES, function_network
from serverless_bench.features.cost.forecast import VCPU_MIB, core_s_per_gib
from serverless_bench.features.simulation.demand import Demand
from serverless_bench.features.simulation.model import Model
from serverless_bench.job.operations import OperationKind
from serverless_bench.rundir.tables import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployed:
    """Limits of an account for functions on Lambda."""

    memory_mib: int = VCPU_MIB
    architecture: str = "arm64"
    quota: int | None = None
    """Quota of concurrent functions; None for as many as the job requests."""
    network_mbps: float = BASE_MBPS
    names: int = 1
    """Number of Lambda functions that share the invocations."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FunctionLimits:
    """Limits of the functions, in the direction of the job's transfer."""

    burst_bytes: float
    bytes_per_s: float
    """Rate of the network after the burst; infinite for no limit, like the rates below."""
    line: float
    """Rate of the network, and of the CPU, at any time."""
    connection: Floats
    """Rate of a connection of each function; shape ``(functions,)``."""
    claim: Floats
    """Weight among the functions that share the store; shape ``(functions,)``."""
    core_s_per_gib: float
    function_s: float
    """Approximate duration of a function."""


def limits_of(
    model: Model,
    demand: Demand,
    deployed: Deployed,
    *,
    concurrency: int,
    client: str,
    rng: np.random.Generator,
) -> FunctionLimits:
    """Return the limits of the functions.

    Parameters
    ----------
    model, demand, deployed
        Sources of the limits.
    concurrency
        Maximum number of functions alive at the same time.
    client
        Client library, which determines the CPU time.
    rng
        Source of the differences between connections.
    """
    function, put = model.function, demand.kind is OperationKind.PUT
    line, rate_of_connection, sigma = (
        (
            function.line_put_bytes_per_s,
            function.connection_put_bytes_per_s,
            function.connection_put_sigma,
        )
        if put
        else (
            function.line_get_bytes_per_s,
            function.connection_get_bytes_per_s,
            function.connection_get_sigma,
        )
    )
    spread = np.exp(sigma * rng.standard_normal(demand.functions))
    connection = (
        np.full(demand.functions, np.inf)
        if rate_of_connection is None
        else rate_of_connection * spread
    )
    core_s = function.core_s_per_gib
    if core_s is None:
        core_s = core_s_per_gib(client, demand.kind)
    vcpus = min(1.0, deployed.memory_mib / VCPU_MIB) if function.on_lambda else 1.0
    processor = vcpus * GIB / core_s if core_s else np.inf
    top = min(np.inf if line is None else line, processor)
    burst, rate = _network(model, deployed)
    usual = min(top, float(np.median(connection)) * demand.lanes * demand.threads)
    moved = float(demand.size.sum()) / demand.functions
    alone_s = moved / usual if np.isfinite(usual) else 0.0
    if np.isfinite(rate):
        alone_s = max(alone_s, (moved - burst) / rate)
    return FunctionLimits(
        burst_bytes=burst,
        bytes_per_s=rate,
        line=top,
        connection=connection,
        claim=np.exp(model.store.share_sigma * rng.standard_normal(demand.functions)),
        core_s_per_gib=core_s,
        function_s=alone_s + _shared_s(model, demand, concurrency),
    )


def _shared_s(model: Model, demand: Demand, concurrency: int) -> float:
    """Return how long the store delays a function, approximately: steps are a fraction of it."""
    store, put = model.store, demand.kind is OperationKind.PUT
    latency_s, per_s = (store.put_s, store.put_per_s) if put else (store.get_s, store.get_per_s)
    requests = float(demand.parts.sum()) / demand.functions
    delay_s = requests * latency_s / demand.lanes / demand.threads
    together = min(concurrency, demand.functions)
    if store.bytes_per_s is not None:
        moved = float(demand.size.sum()) / demand.functions
        delay_s = max(delay_s, together * moved / store.bytes_per_s)
    if per_s is not None:
        delay_s = max(delay_s, together * requests / (per_s * store.partitions))
    return delay_s


def _network(model: Model, deployed: Deployed) -> tuple[float, float]:
    """Return burst and rate of a function's network."""
    function = model.function
    if function.bytes_per_s is not None:
        return function.burst_bytes or 0.0, function.bytes_per_s
    if not function.on_lambda:
        return 0.0, np.inf
    return BURST_BYTES, function_network(deployed.memory_mib, quota_mbps=deployed.network_mbps)
