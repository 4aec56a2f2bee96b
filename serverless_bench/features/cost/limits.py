"""Start and limits of functions, from a model and deployed functions."""

import math
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final

import numpy as np

from serverless_bench.base.units import GIB
from serverless_bench.features.aws.lambda_network import BASE_MBPS, BURST_BYTES, function_network
from serverless_bench.features.aws.stack.template import VCPU_MIB as VCPU_MIB
from serverless_bench.features.cost.model import Launch, Model
from serverless_bench.job.operations import OperationKind
from serverless_bench.job.target import DEFAULT_CLIENTS, StoreProtocol
from serverless_bench.rundir.tables import Floats, Ints, Mask

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
            function, f"{'thin' if client == _THIN else 'other'}_{kind}_core_s_per_gib"
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


class FunctionLauncher:
    """Launches invocations in the order of the index.

    Parameters
    ----------
    model
        Parameters of the start.
    count
        Number of invocations.
    concurrency
        Maximum number of functions alive at the same time.
    names
        Lambda functions that share the invocations; each has a separate launch rate. A forecast of
        a sample of the functions has a fraction of these, and of the driver's rate.
    pace_s
        Time between two invocations of a driver that is slower than the model's.
    rng
        Source of start-up times.
    """

    def __init__(
        self,
        model: Launch,
        count: int,
        *,
        concurrency: int,
        names: float,
        rng: np.random.Generator,
        pace_s: float = 0.0,
    ) -> None:
        self._model = model
        # One number at a time from an array: a call for each is slow.
        self._deviations = rng.standard_normal(count).tolist()
        self._room = concurrency
        self._freed: list[float] = []
        self._idle: list[tuple[float, int]] = []
        self._depth = np.inf if model.burst is None else float(model.burst * names)
        self._per_s = np.inf if model.per_s is None else model.per_s * names
        self._pace_s = max(pace_s, 1 / model.submit_per_s if model.submit_per_s else 0.0)
        self._tokens, self._filled_s = self._depth, 0.0
        self._next_s = 0.0
        self.launched = 0
        self.environments = 0
        self.count = count
        self.submitted_s: Floats = np.full(count, np.nan)
        self.start_s: Floats = np.full(count, np.nan)
        self.is_cold: Mask = np.zeros(count, dtype=np.bool_)
        self.environment: Ints = np.zeros(count, dtype=np.int64)

    def earliest_s(self) -> float:
        """Return the earliest instant of the next launch; infinite if there is none."""
        return self._earliest()[0]

    def _earliest(self) -> tuple[float, bool]:
        """Return the instant of the next launch, and whether it reuses an environment."""
        if self.launched >= self.count or not (self._room or self._freed):
            return np.inf, False
        at_s = self._next_s if self._room else max(self._next_s, self._freed[0])
        missing = 1 - self._tokens
        new_s = max(at_s, self._filled_s + missing / self._per_s) if missing > 1e-9 else at_s
        idle_s = max(at_s, self._idle[0][0]) if self._idle else np.inf
        return (idle_s, True) if idle_s <= new_s else (new_s, False)

    def launch(self) -> int:
        """Launch the next function at its earliest instant, and return its index."""
        (at_s, warm), model, index = self._earliest(), self._model, self.launched
        while self._freed and self._freed[0] <= at_s:
            heappop(self._freed)
            self._room += 1
        if np.isfinite(self._depth):
            earned = max(0.0, at_s - self._filled_s) * self._per_s
            self._tokens = min(self._depth, self._tokens + earned) - (not warm)
            self._filled_s = max(at_s, self._filled_s)
        if warm:
            self.environment[index] = heappop(self._idle)[1]
        else:
            self.environment[index] = self.environments
            self.environments += 1
        self.is_cold[index], self.submitted_s[index] = not warm, at_s
        median, sigma = (
            (model.warm_s, model.warm_sigma) if warm else (model.cold_s, model.cold_sigma)
        )
        self.start_s[index] = at_s + median * math.exp(sigma * self._deviations[index])
        self._next_s = at_s + self._pace_s
        self._room -= 1
        self.launched += 1
        return index

    def ended(self, index: int, end_s: float) -> None:
        """Record the end of a function, which frees the environment at once and the slot later."""
        heappush(self._idle, (end_s, int(self.environment[index])))
        heappush(self._freed, end_s + self._model.collect_s)
