"""Forecast of a job: the model of the simulation, for a bounded sample of its operations.

Each of ``DRAWS`` draws is one run, with its own latency and start-up times. It has up to
``FUNCTIONS`` functions, with a few operations each. Rules extend it to the whole job:

* the sum of many times by the central limit theorem, from mean and deviation of the sample;
* the slowest of several threads, connections or functions by its quantile of the sample;
* the network by the token bucket: half of the burst is not restored while it is used up;
* limits that functions share by the number that runs concurrently;
* the launch of all functions by that of the sample, at a fraction of the rates.

A simulation follows every request instead; a test compares the two.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from serverless_bench.features.aws.event_rate import events_under_way
from serverless_bench.features.aws.lambda_network import function_network
from serverless_bench.features.aws.options import FunctionOptions
from serverless_bench.features.aws.stack.template import DEFAULT_QUOTA as DEFAULT_QUOTA
from serverless_bench.features.aws.stack.template import VCPU_MIB as VCPU_MIB
from serverless_bench.features.cost.limits import CostConditions as CostConditions
from serverless_bench.features.cost.limits import (
    FunctionLauncher,
    FunctionLimits,
    limits_of,
    shared_bytes_per_s,
)
from serverless_bench.features.cost.model import AWS_LAMBDA, Model, Store
from serverless_bench.features.cost.prices import BilledUsage
from serverless_bench.job.operations import OperationKind
from serverless_bench.job.spec import JobSpec, Work
from serverless_bench.job.workload import Trait, workload_of
from serverless_bench.rundir.tables import Floats
from serverless_bench.worker.retry import longest_wait_s

CONTROL_PUTS: Final = 2
"""Per invocation: its claim and its record."""
CONTROL_GETS: Final = 1.0
CONTROL_LISTS: Final = 0.2
"""Per invocation: the driver fetches each record, and lists a thousand records per request."""
LOG_BYTES: Final = 700
"""Per invocation, assumed: the lines START, END and REPORT."""

DRAWS: Final = 400
FUNCTIONS: Final = 500
_MANY: Final = 100
_FEW: Final = 16
"""Response times of a function that are drawn one by one."""
_RARE: Final = 1000
"""The longest of so many times are drawn one by one, too."""
_MOST_REJECTIONS: Final = 40
_POOL: Final = 200_000
"""Sampled response times of an operation, from which those of functions are drawn."""
_LANE_WAITS: Final = 2_000_000
_SEED: Final = 1
_ENDS: Final = (5.0, 50.0, 95.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operations:
    """Equal operations of one function."""

    kind: OperationKind
    """PUT or GET: the price class, and the direction of the bytes."""
    count: float
    size: float = 0.0
    """Bytes of each."""
    parts: int = 1
    """Requests that transfer the bytes of each."""
    lanes: int = 1
    """Requests of an operation in flight at once."""
    threads: int = 1
    """Operations at once."""
    billed: bool = True
    lasts_s: float | None = None
    """Time of all of them; None for what they take."""
    counted: bool = True
    """Whether they are operations of the job, not requests beside them."""

    @property
    def requests(self) -> float:
        """Billed requests; an upload in parts is also created and completed."""
        more = 2 * (self.kind is OperationKind.PUT and self.parts > 1)
        return self.billed * self.count * (self.parts + more)

    @property
    def streams(self) -> int:
        """Connections in use."""
        return self.lanes * max(1, min(self.threads, math.ceil(self.count)))

    @property
    def in_sequence(self) -> float:
        """Operations of the busiest thread."""
        each = self.count * self.lanes / self.streams
        return math.ceil(each) if self.count == int(self.count) else each


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastRange:
    """Median, and the ends between which 90 % of the draws lie."""

    p5: float
    p50: float
    p95: float

    @classmethod
    def of(cls, values: Floats) -> "ForecastRange":
        """Return the interval of values."""
        p5, p50, p95 = np.percentile(values, _ENDS).tolist()
        return cls(p5=p5, p50=p50, p95=p95)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """Prediction for a job."""

    function_s: ForecastRange
    """Billed time of a function."""
    transfer_s: ForecastRange
    """Part of it for operations, including the wait for the store."""
    run_s: ForecastRange
    """Time between the start of the first function and the end of the last."""
    launch_s: ForecastRange
    """Time between the start of the first and of the last function."""
    concurrency: int
    """Maximum number of concurrent functions."""
    batches: int
    """Number of times that the quota is used up, including the first time."""
    requests_per_s: float
    """Rate of requests at the highest concurrency."""
    asked_per_s: float
    """The same if no store limited it."""
    bound_by: str
    """What most of the time is spent on."""


def bytes_of(rows: Iterable[Operations], kind: OperationKind) -> float:
    """Return the bytes that operations move in a direction."""
    return sum(row.count * row.size for row in rows if row.kind is kind)


def requests_of(rows: Iterable[Operations], kind: OperationKind) -> float:
    """Return the billed requests of operations in a price class."""
    return sum(row.requests for row in rows if row.kind is kind)


def load_of(sampler: "Sampler", object_bytes: int) -> Operations | None:
    """Return the transfers of a function of a job; None for a workload without transfers.

    Parameters
    ----------
    sampler
        Planned or completed job, and conditions, which decide how much is done in a given time.
    object_bytes
        Size of an object, or the mean size; functions that share an object read a part of it.
    """
    job = sampler.job
    kind = moving_kind(job)
    if kind is None:
        return None
    load = objects_of(job, kind, -(-object_bytes // (job.load.split or 1)))
    rounds = (job.read_times if kind is OperationKind.GET else 1) * (1 + job.warm_up)
    if job.duration is not None:
        done = sampler.done_in([replace(load, count=1.0)], job.duration, job.load.rate)
        rounds = max(1, round(done / job.objects)) + job.warm_up
    # A closed loop fills the duration, and an open loop lasts it, however little it does.
    return replace(load, count=job.objects * rounds, lasts_s=job.duration)


def objects_of(job: JobSpec, kind: OperationKind, object_bytes: int) -> Operations:
    """Return the operations of a function that transfers each object once."""
    size = max(1, object_bytes)
    parts = -(-size // (job.transfer.part_length(kind, size) or size))
    return Operations(
        kind=kind,
        count=job.objects,
        size=size,
        parts=parts,
        lanes=min(job.transfer.connections, parts),
        threads=job.load.threads,
    )


def sustained_bytes_per_s(of: CostConditions) -> float:
    """Return the network rate of a function after the burst."""
    return function_network(of.memory_mib, quota_mbps=of.network_mbps, in_vpc=of.in_vpc)


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


@dataclass(frozen=True, kw_only=True, eq=False)
class FunctionTimes:
    """Sampled functions of a job: a row for each draw."""

    sampler: "Sampler"
    functions: int
    transfer_s: Floats
    """Time of the operations."""
    alone_s: float
    """Median of that without limits that functions share."""
    spent_on: Mapping[str, float]
    """What a function's time is spent on; the largest bounds it."""

    @cached_property
    def billed_s(self) -> Floats:
        """Billed time of each function."""
        launch = self.sampler.model.launch
        return self.transfer_s + launch.setup_s + launch.finish_s + launch.billed_s

    @cached_property
    def run(self) -> tuple[Floats, Floats]:
        """Duration of the job, and of its launch, of each draw."""
        sampler, drawn = self.sampler, self.transfer_s.shape[1]
        share = drawn / self.functions
        slots = max(1, round(sampler.slots(self.functions) * share))
        # With few slots, a sampled function takes as long as all that it stands for.
        stretch = slots / (sampler.slots(self.functions) * share)
        model, rng = sampler.model.launch, np.random.default_rng(_SEED)
        if model.submit_per_s is not None:
            model = replace(model, submit_per_s=model.submit_per_s * share)
        took = self.transfer_s + model.setup_s + model.finish_s
        sent, began = np.empty_like(took), np.empty_like(took)
        is_cold = np.empty(took.shape, dtype=np.bool_)
        for draw, seconds in enumerate((stretch * took).tolist()):
            launcher = FunctionLauncher(
                model,
                drawn,
                concurrency=slots,
                names=sampler.names * share,
                rng=rng,
                pace_s=sampler.pace_s / share,
            )
            while launcher.launched < drawn:
                index = launcher.launch()
                launcher.ended(index, float(launcher.start_s[index]) + seconds[index])
            sent[draw], began[draw] = launcher.submitted_s, launcher.start_s
            is_cold[draw] = launcher.is_cold
        first = began.min(axis=1)
        median = np.where(is_cold, model.cold_s, model.warm_s)
        sigma = np.where(is_cold, model.cold_sigma, model.warm_sigma)
        late = began
        if share < 1:
            normal = np.sort(rng.standard_normal(_POOL))
            late = sent + median * np.exp(sigma * _largest(normal, 1 / share, took.shape, rng))
        # A function is the last because it started late, or because it is slow.
        end = np.maximum(late + took, began + _slowest(took, 1 / share, rng)).max(axis=1)
        return end - first, late.max(axis=1) - first

    def forecast(self, requests: float) -> Forecast:
        """Return the forecast of a job whose functions have so many requests each."""
        runs, launches = self.run
        concurrency = self.sampler.slots(self.functions)
        batches = -(-self.functions // concurrency)
        start = "quota of concurrent functions" if batches > 1 else "launch of the functions"
        spent_on = {**self.spent_on, f"the {start}": float(np.median(launches))}
        per_s, asked_per_s = (
            concurrency * requests / seconds if seconds else 0.0
            for seconds in (float(np.median(self.transfer_s)), self.alone_s)
        )
        return Forecast(
            function_s=ForecastRange.of(self.billed_s),
            transfer_s=ForecastRange.of(self.transfer_s),
            run_s=ForecastRange.of(runs),
            launch_s=ForecastRange.of(launches),
            concurrency=concurrency,
            batches=batches,
            requests_per_s=per_s,
            asked_per_s=asked_per_s,
            bound_by=max(spent_on, key=spent_on.__getitem__),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampler:
    """Draws the times of the functions of a job."""

    job: JobSpec
    conditions: CostConditions
    model: Model = AWS_LAMBDA

    @property
    def names(self) -> int:
        """Number of Lambda functions that share the invocations."""
        return max(self.conditions.names, len(FunctionOptions.from_work(self.job).function))

    @property
    def pace_s(self) -> float:
        """Time between two invocations of a distant driver."""
        round_trip_s = self.conditions.round_trip_s
        return round_trip_s / events_under_way(round_trip_s)

    def slots(self, functions: int) -> int:
        """Return how many of a number of functions run concurrently."""
        return min(functions, self.conditions.quota or self.job.max_concurrency)

    def times(self, rows: Sequence[Operations], functions: int | None = None) -> FunctionTimes:
        """Return the times of functions that perform the operations one row after the other.

        Parameters
        ----------
        rows
            Operations of a function.
        functions
            Number of functions; None for those of the job.
        """
        functions = functions or self.job.number
        rng = np.random.default_rng(_SEED)
        shape = DRAWS, min(functions, FUNCTIONS)
        store, client = self.model.store_of(self.job.target.bucket), self.job.target.client
        kinds = OperationKind.PUT, OperationKind.GET
        factors = {kind: store.factors(kind, shape, rng) for kind in kinds}
        limits = {
            kind: limits_of(self.model, kind, shape, self.conditions, client=client, rng=rng)
            for kind in kinds
        }
        timed = [row for row in rows if row.lasts_s is None and row.count]
        lasts_s = sum(row.lasts_s or 0.0 for row in rows)
        seconds = np.full(shape, lasts_s + store.connect_s * bool(timed))
        spent = dict.fromkeys(("the latency of requests", "the rate of a connection"), 0.0)
        for row in timed:
            limit, moved = limits[row.kind], row.count * row.size
            waits = self._waits(row, shape, rng) * factors[row.kind]
            moving = row.in_sequence * row.size / row.lanes / limit.connection
            took = waits + moving
            if moved and math.isfinite(limit.line):
                # The line is idle while all streams wait, at first for the first response.
                line_s = moved / limit.line
                waiting = waits / (waits + line_s)
                first_s = getattr(store, f"{row.kind}_s") * (row.streams > 1)
                took = np.maximum(took, first_s + line_s / (1 - waiting**row.streams))
                name = "CPU" if limit.line == limit.processor else "line rate"
                spent[f"a function's {name}"] = max(spent.get(f"a function's {name}", 0.0), line_s)
            seconds += took
            spent["the latency of requests"] += float(np.median(waits))
            spent["the rate of a connection"] += float(np.median(moving))
        by_kind = {kind: [row for row in timed if row.kind is kind] for kind in kinds}
        for kind, mine in by_kind.items():
            if bytes_of(mine, kind):
                seconds = _through_bucket(mine, limits[kind], store, seconds, spent)
        alone_s = float(np.median(seconds))
        for kind, mine in by_kind.items():
            if mine:
                seconds = self._shared(mine, limits[kind], functions, seconds, spent, rng)
        return FunctionTimes(
            sampler=self, functions=functions, transfer_s=seconds, alone_s=alone_s, spent_on=spent
        )

    def done_in(
        self, rows: Sequence[Operations], seconds: float, rate_per_s: float | None = None
    ) -> float:
        """Return how often a function performs the rows; in an open loop, at most its share."""
        # Often enough for the mean, and for a connection that is opened once.
        times = float(_MANY * max(row.threads for row in rows))
        many = [replace(row, count=times * row.count, lasts_s=None) for row in rows]
        done = seconds * times / float(self.times(many, functions=1).transfer_s.mean())
        rng, client = np.random.default_rng(_SEED), self.job.target.client
        for kind in {row.kind for row in rows}:
            limit = limits_of(self.model, kind, (1,), self.conditions, client=client, rng=rng)
            if moved := bytes_of(rows, kind):
                done = min(done, (limit.burst_bytes + limit.bytes_per_s * seconds) / moved)
        return done if rate_per_s is None else min(done, rate_per_s * seconds / self.job.number)

    def _waits(self, row: Operations, shape: tuple[int, int], rng: np.random.Generator) -> Floats:
        """Draw the times of functions: those of the slowest thread, operation after operation."""
        store = self.model.store_of(self.job.target.bucket)
        pool = store.latencies(row.kind, (_POOL,), rng)
        if row.parts > 1:
            rounds = -(-row.parts // row.lanes)
            count = min(_POOL // 10, max(50, _LANE_WAITS // (row.lanes * min(rounds, _FEW))))
            each = _sums(pool, rounds, (count, row.lanes), rng).max(axis=1)
            if row.kind is OperationKind.PUT:
                each += _sums(pool, 2, (count,), rng)
            pool = each
        waits = _sums(pool, row.in_sequence, shape, rng)
        threads = row.streams // row.lanes
        return _slowest(waits, threads, rng)

    def _shared(
        self,
        rows: Sequence[Operations],
        limit: FunctionLimits,
        functions: int,
        seconds: Floats,
        spent: dict[str, float],
        rng: np.random.Generator,
    ) -> Floats:
        """Return times within limits that functions share."""
        launch, together, kind = self.model.launch, self.slots(functions), rows[0].kind
        if launch.per_s is not None and launch.burst is not None:
            # If the launch takes longer than a function, fewer run at once.
            names, mean_s = self.names, float(seconds.mean())
            ramp_s = max(0.0, functions - launch.burst * names) / (launch.per_s * names)
            together = min(together, math.ceil(functions * mean_s / (ramp_s + mean_s)))
        bucket = self.job.target.bucket
        ceiling = shared_bytes_per_s(self.model, bucket, self.conditions)
        shared_s = together * bytes_of(rows, kind) / ceiling
        spent["the rate that all functions share"] = shared_s
        seconds = np.maximum(seconds, shared_s / limit.claim)
        store = self.model.store_of(bucket)
        requests = requests_of(rows, kind)
        limited_s = _admitted_s(store, kind, together * requests)
        spent["the request rate of a partition"] = limited_s
        usual_s = float(np.median(seconds))
        if limited_s <= usual_s:
            return seconds
        streams = max(row.streams for row in rows)
        each = requests / streams
        latency_s = float(np.median(store.latencies(kind, (_POOL,), rng)))
        waits, left = _retries((limited_s - usual_s) / each, latency_s, limited_s, rng)
        throttled = seconds + _slowest(_sums(waits, each, seconds.shape, rng), streams, rng)
        # Functions that end early leave their share to the rest.
        throttled *= min(1.0, limited_s / float(np.quantile(throttled, 0.8)))
        # Once most functions have ended, the others are not rejected after the present wait, which
        # is longest for those that have waited longest.
        rank = throttled.argsort(axis=1).argsort(axis=1) + rng.random(throttled.shape)
        at = (rank / throttled.shape[1] * (_POOL - 1)).astype(np.int64)
        return np.asarray(np.minimum(throttled, limited_s + np.sort(left)[at]))


def _admitted_s(store: Store, kind: OperationKind, asked: float) -> float:
    """Return the time in which a store admits so many requests; those of a second at once."""
    per_s, seconds, partitions = getattr(store, f"{kind}_per_s"), 0.0, store.partitions
    if per_s is None:
        return 0.0
    asked -= per_s * partitions
    while store.split_s is not None and partitions < store.most_partitions:
        most = per_s * partitions * store.split_s
        if asked <= most:
            break
        asked, seconds, partitions = asked - most, seconds + store.split_s, partitions + 1
    return float(seconds + max(0.0, asked) / (per_s * partitions))


def _retries(
    mean_s: float, latency_s: float, within_s: float, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Draw the time that requests lose by rejections, and the rest of a wait at some instant.

    Parameters
    ----------
    mean_s
        Mean of the lost time, which decides the fraction of rejected requests.
    latency_s
        Time of a rejection.
    within_s
        Time in which the retries take place.
    rng
        Source of the times.
    """
    longest = np.array([longest_wait_s(number) for number in range(1, _MOST_REJECTIONS)])
    powers = np.arange(1, _MOST_REJECTIONS)
    shares = np.linspace(0.001, 0.999, 999)[:, None]
    lost_s = (shares**powers * (longest / 2 + latency_s)).sum(axis=1)
    refused = float(np.interp(mean_s, lost_s, shares[:, 0]))
    rejections = np.log(rng.random(_POOL)) / math.log(refused)
    waits = np.zeros(_POOL)
    for number, longest_s in zip(powers, longest, strict=True):
        again = rejections >= number
        waits[again] += latency_s + rng.uniform(0, longest_s, int(again.sum()))
    # Longer intervals are met more often, if earlier ones leave the time for them.
    weight = refused**powers * longest * (np.cumsum(longest) - longest <= 2 * within_s)
    met = rng.choice(longest, _POOL, p=weight / weight.sum())
    return waits, met * np.sqrt(rng.random(_POOL)) * rng.random(_POOL)


def _through_bucket(
    rows: Sequence[Operations],
    limit: FunctionLimits,
    store: Store,
    seconds: Floats,
    spent: dict[str, float],
) -> Floats:
    """Return times with a token bucket, of functions that would need ``seconds``."""
    moved = bytes_of(rows, rows[0].kind)
    rate, refill, half = moved / seconds, limit.bytes_per_s, limit.burst_bytes / 2
    net = np.maximum(rate - refill, 1e-9)
    # The first half is not refilled while it is used up.
    empty_s = half / rate + half / net
    is_limited = (rate > refill) & (moved > rate * empty_s)
    if not is_limited.any():
        return seconds
    # The last response follows the last byte.
    last_s = getattr(store, f"{rows[-1].kind}_s") * (1 + (rows[-1].parts > 1))
    limited = empty_s + (moved - rate * empty_s) / refill + last_s
    found = np.where(is_limited, limited, seconds)
    spent["a function's network after the burst"] = float(np.median(found)) * is_limited.mean()
    return found


def _sums(pool: Floats, count: float, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
    """Draw sums of ``count`` values of a pool: a few one by one, the rest together."""
    few = min(int(count), _FEW)
    sums = np.zeros(shape)
    for _ in range(few):
        sums += pool[rng.integers(len(pool), size=shape)]
    rest = count - few
    if not rest:
        return sums
    body = np.sort(pool)
    cut = len(pool) - len(pool) // _RARE
    if rest / _RARE < _FEW:
        # The largest are too rare for a normal law.
        body, rare = body[:cut], body[cut:]
        numbers = rng.poisson(rest / _RARE, sums.size)
        owners = np.repeat(np.arange(sums.size), numbers)
        drawn = rare[rng.integers(len(rare), size=len(owners))]
        sums += np.bincount(owners, weights=drawn, minlength=sums.size).reshape(shape)
    noise = math.sqrt(rest) * body.std() * rng.standard_normal(shape)
    return np.asarray(sums + np.maximum(0.0, rest * body.mean() + noise))


def _slowest(values: Floats, count: float, rng: np.random.Generator) -> Floats:
    """Draw for each value the largest of ``count`` like it."""
    if count <= 1:
        return values
    usual = np.median(values, axis=1, keepdims=True)
    pool = np.sort((values / np.where(usual > 0, usual, 1)).ravel())
    return np.asarray(usual * _largest(pool, count, values.shape, rng))


def _largest(
    pool: Floats, count: float, shape: tuple[int, ...], rng: np.random.Generator
) -> Floats:
    """Draw the largest of ``count`` values of a sorted pool."""
    at = rng.random(shape) ** (1 / count) * (len(pool) - 1)
    return np.interp(at, np.arange(len(pool)), pool)


def moving_kind(work: Work) -> OperationKind | None:
    """Return PUT or GET if a job has only such operations, ranges included; None otherwise."""
    workload = workload_of(work.workload)
    deals = Trait.DEALS_OBJECTS in workload.traits
    kinds = set(workload.kinds(work.load)) if deals else set()
    if kinds == {OperationKind.PUT}:
        return OperationKind.PUT
    return OperationKind.GET if kinds & {OperationKind.GET, OperationKind.GET_RANGE} else None
