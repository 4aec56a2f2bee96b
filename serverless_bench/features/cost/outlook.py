"""Preview of a job: functions, operations, bytes, keys and cost, without starting a function."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, Final

from serverless_bench.base.units import GIB, format_seconds, format_size
from serverless_bench.driver.plan import check
from serverless_bench.features.aws.lambda_network import BASE_MBPS
from serverless_bench.features.aws.options import FunctionOptions
from serverless_bench.features.cost.advice import event_warnings, warnings
from serverless_bench.features.cost.expected import Expected, at_most, expected, mean_bytes
from serverless_bench.features.cost.forecast import (
    DEFAULT_QUOTA,
    VCPU_MIB,
    CostConditions,
    Forecast,
    ForecastRange,
    Operations,
    Sampler,
    load_of,
)
from serverless_bench.features.cost.model import AWS_LAMBDA, Model, load_model
from serverless_bench.features.cost.places import is_foreign, regions
from serverless_bench.features.cost.prices import (
    HOURS_PER_MONTH,
    BilledUsage,
    Dollars,
    Prices,
    needed_prices,
    origin,
    price,
    transfer_text,
)
from serverless_bench.features.stages.examples import (
    MAKING,
    all_succeeding,
    example_invocations,
    example_keys,
)
from serverless_bench.job.abilities import Phased, RunsCode, tally_of
from serverless_bench.job.keys import listed, listed_sizes
from serverless_bench.job.operations import OperationKind
from serverless_bench.job.planned_objects import mean_declared
from serverless_bench.job.spec import JobSpec, batches_words, idle_words
from serverless_bench.job.workload import open_workload
from serverless_bench.metrics.display import Printed

_ENOUGH: Final = 20_000
"""Number of operations to inspect; the remaining functions are extrapolated."""
_EXAMPLES: Final = 2
_MOVING: Final = (
    *MAKING,
    OperationKind.GET,
    OperationKind.GET_RANGE,
    OperationKind.READ_ARRAY,
    OperationKind.SCAN,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """Expected operations of a job on a store."""

    workload: str
    functions: int
    concurrency: int
    prepared_objects: int
    """Objects that are created before the measurement."""
    prepared_bytes: int
    operations: dict[str, int]
    """Number by kind; empty if the duration ends the job and the operations are not counted."""
    bytes: int
    """Bytes that the operations transfer."""
    duration_s: float | None
    """Duration of the job, if it has one; ``operations`` then counts one round."""
    exact: bool
    """Whether all operations were inspected, and none has a random size."""
    keys: tuple[str, ...]
    """Examples of keys that the job writes, or else reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPlan(Printed):
    """Result of ``plan``; ``print`` shows it in the format of ``sbench plan COMMAND``.

    Parameters
    ----------
    job
        The job on AWS Lambda: with claims and records, and the highest possible concurrency.
    outlook
        Operations, bytes and keys; None for a function of your own, whose requests are unknown.
    expected
        Expected usage of the functions; None if the transferred bytes cannot be predicted.
    at_most
        Usage of a function that runs until its deadline.
    prices
        Prices of requests, functions and transfer.
    load
        Of a write or a read: the transfers of a function; None for other workloads.
    forecast
        Times, rates and what bounds the job; None if the transferred bytes cannot be predicted.
    warnings
        What the job would meet on AWS, such as a limit, and what to do about it.
    alternatives
        Of a shuffle: the expected usage with each layout and each start of the reducers.
    model, conditions
        Parameters of the forecast, and the functions.

    Examples
    --------
    >>> target = sbench.Target(bucket="b")
    >>> job = sbench.JobSpec(workload="write", target=target, number=2, size=1 << 20)
    >>> sbench.plan(job).to_json()["functions"]
    2
    """

    job: JobSpec
    outlook: Outlook | None
    expected: Expected | None
    at_most: BilledUsage
    prices: Prices
    load: Operations | None
    forecast: Forecast | None
    warnings: Sequence[str]
    model: Model
    conditions: CostConditions
    alternatives: Mapping[str, Expected] = field(default_factory=dict)

    @property
    def dollars(self) -> Dollars | None:
        """Expected cost of the job by component; None if it cannot be predicted."""
        return None if self.expected is None else price(self.expected.usage, self.prices)

    @property
    def cost(self) -> ForecastRange | None:
        """ForecastRange that holds the cost of 90 % of the runs; None if it cannot be predicted."""
        if self.expected is None:
            return None
        return ForecastRange(
            **{
                name: price(usage, self.prices).total
                for name, usage in zip(("p5", "p50", "p95"), self.expected.usages, strict=True)
            }
        )

    @property
    def dollars_at_most(self) -> float:
        """Cost of the job if all functions run until their deadline."""
        return self.job.number * price(self.at_most, self.prices).total

    @property
    def extra_costs(self) -> dict[str, float]:
        """Possible costs beyond the expected cost, by the condition under which they occur."""
        if self.expected is None:
            return {}
        usage, prices, gib = self.expected.usage, self.prices, self.expected.bytes / GIB
        month = replace(usage, storage_byte_h=usage.uploaded_bytes * HOURS_PER_MONTH)
        region = 0.0 if usage.cross_region_bytes else gib * prices.network_cross_region_gb
        costs = {
            "a month until the objects are deleted": price(month, prices).storage,
            "if the bucket is in another region": region,
            "behind a NAT gateway": gib * prices.network_nat_gb,
        }
        return {condition: amount for condition, amount in costs.items() if amount}

    def to_json(self) -> dict[str, Any]:
        """Return the JSON document of ``sbench plan COMMAND``."""
        job, cost_each, dollars = self.job, price(self.at_most, self.prices).total, self.dollars
        used = None
        if self.expected is not None and dollars is not None:
            used = _json(self.expected) | {"dollars": asdict(dollars)}
        return {
            "workload": job.workload,
            "functions": job.number,
            "concurrency": job.concurrency,
            "idle_threads": job.idle_threads,
            "expected": used,
            "forecast": None if self.forecast is None else asdict(self.forecast),
            "total": None if dollars is None else dollars.total,
            "cost": None if (cost := self.cost) is None else asdict(cost),
            "model": self.model.name,
            "extra_costs": self.extra_costs,
            "at_most": {
                "usage_each": asdict(self.at_most),
                "each": cost_each,
                "concurrent": job.concurrency * cost_each,
                "total": job.number * cost_each,
            },
            "currency": self.prices.currency,
            "prices_as_of": self.prices.as_of,
            "prices_region": self.prices.region,
            "regions": regions(job),
            "warnings": list(self.warnings),
            "alternatives": {
                name: _json(other) | {"total": price(other.usage, self.prices).total}
                for name, other in self.alternatives.items()
            },
        }

    def rows(self) -> Iterator[tuple[str, str]]:
        """Yield the rows of the plan as name and text."""
        job, expected, dollars, money = self.job, self.expected, self.dollars, self.prices.money
        yield "functions", f"{job.number:,}, concurrency {job.concurrency:,}"
        if job.idle_threads:
            yield "idle threads", idle_words(job.idle_threads, job.load.threads)
        if job.batches_s is not None:
            yield "batches", batches_words(job.number, job.max_concurrency, job.batches_s)
        if expected is None or dollars is None:
            yield "expected", "bytes cannot be predicted; below is the highest possible cost"
        else:
            usage = expected.usage
            yield "operations", f"about {expected.operations:,.0f} per function"
            yield "bytes", f"about {format_size(expected.bytes)}"
            yield "requests", f"{usage.puts:,} of the PUT class, {usage.gets:,} of the GET class"
            parts = {name: getattr(dollars, name) for name in asdict(dollars)}
            costs_by_part = ", ".join(
                f"{name} {money(part)}" for name, part in parts.items() if part
            )
            cost = self.cost
            ends = "" if cost is None else f" ({money(cost.p5)} to {money(cost.p95)})"
            yield "expected", f"{money(dollars.total)}{ends}: {costs_by_part}"
            if moved := transfer_text(usage.cross_region_bytes, usage.internet_bytes):
                yield "transfer", moved
        if (found := self.forecast) is not None:
            batches = f", in {found.batches} batches" if found.batches > 1 else ""
            launch = f"the last function starts after {format_seconds(found.launch_s.p50)}"
            yield "a function takes", f"{_interval(found.function_s)}, billed"
            yield "the job takes", f"{_interval(found.run_s)}{batches}; {launch}"
            yield "bounded by", found.bound_by
            yield "request rate", f"{found.requests_per_s:,.0f}/s (PUT and GET)"
            yield "forecast", f"medians, and where 90 % lie, by the model {self.model.name}"
        yield from self._compared()
        cost_each = price(self.at_most, self.prices).total
        together = self.prices.money(job.concurrency * cost_each)
        running = f"{job.concurrency:,} concurrent functions run to the {job.deadline:g} s deadline"
        yield "worst case", f"{together}: {running}, {self.prices.money(cost_each)} each"
        if self.extra_costs:
            extra = (
                f"{self.prices.money(amount)} {why}" for why, amount in self.extra_costs.items()
            )
            yield "on top", f"up to {', '.join(extra)}"
        yield "prices", origin(self.prices.as_of, self.prices.region, regions(job))
        if is_foreign(job) and not self.prices.given:
            yield "not in it", "what the store outside of AWS bills"

    def _compared(self) -> Iterator[tuple[str, str]]:
        """Yield a row for each alternative, and say which is cheapest and which fastest."""
        ends = {name: other.phases[-1].end_s for name, other in self.alternatives.items()}
        costs = {
            name: price(other.usage, self.prices).total for name, other in self.alternatives.items()
        }
        for name, other in self.alternatives.items():
            best = [("fastest", ends), ("cheapest", costs)]
            marks = [word for word, of in best if of[name] == min(of.values())]
            text = f"{format_seconds(ends[name])}, {self.prices.money(costs[name])}"
            yield name, ", ".join((text, f"{other.usage.puts:,} of the PUT class", *marks))

    def __str__(self) -> str:
        keys = () if self.outlook is None else self.outlook.keys
        warned = (("warning", text) for text in self.warnings)
        rows = [("job", self.job.workload), *self.rows(), *(("example key", key) for key in keys)]
        rows += warned
        return "\n".join(f"{title:<20} {text}" for title, text in rows)


def plan(  # noqa: PLR0913 - the flags of the command
    job: JobSpec,
    keys: Sequence[str] = (),
    *,
    memory: int | None = None,
    arch: str | None = None,
    quota: int | None = None,
    network_quota: float = BASE_MBPS,
    round_trip_s: float = 0.0,
    in_vpc: bool = False,
    prices: Prices | str | Path | None = None,
    model: Model | str = AWS_LAMBDA.name,
) -> JobPlan:
    """Predict operations and cost of a job on AWS Lambda without starting it.

    Parameters
    ----------
    job
        Job to plan.
    keys
        Objects to read, for workloads that read.
    memory
        Memory of a function in MiB; None for that of the job's options, or 1769 MiB, a vCPU.
    arch
        Architecture of the functions, arm64 or x86_64; None for that of the job's options, or
        arm64.
    quota
        Functions that may run at once; None for AWS's default, or all of a model without Lambda.
    network_quota
        The account's quota for the network of a function, in 10**6 bits per second.
    round_trip_s
        Time from the driver to Lambda and back, which limits the launch.
    in_vpc
        Whether the functions are in a VPC.
    prices
        A price file, as in "Cost" in the documentation; None takes the prices that come
        with sbench.
    model
        Parameters of the forecast: their name, or a file, as for a simulation.

    Raises
    ------
    UsageError
        If the job does not fit these keys, the model or the price file is invalid, or there are no
        prices for the location of its objects.

    Examples
    --------
    >>> target = sbench.Target(bucket="mine")
    >>> job = sbench.JobSpec(workload="write", target=target, number=100, size=1 << 30)
    >>> found = sbench.plan(job)
    >>> found.outlook.operations, found.dollars.total < found.dollars_at_most
    ({'put': 100}, True)
    """
    check(job, keys)
    model = load_model(model) if isinstance(model, str) else model
    quota = quota or (DEFAULT_QUOTA if model.function.on_lambda else job.max_concurrency)
    concurrency, given = min(job.max_concurrency, quota), FunctionOptions.from_work(job)
    # On Lambda the job has claims and records, and its concurrency is limited by the quota.
    lambda_job = replace(job, concurrency=concurrency, control=job.target)
    conditions = CostConditions(
        memory_mib=memory or given.memory or VCPU_MIB,
        architecture=arch or given.arch or "arm64",
        object_bytes=mean_declared(keys),
        quota=quota,
        network_mbps=network_quota,
        round_trip_s=round_trip_s,
        in_vpc=in_vpc,
    )
    size = mean_bytes(lambda_job, conditions)
    sampler = Sampler(job=lambda_job, conditions=conditions, model=model)
    load = None if size is None else load_of(sampler, size)
    foreseen = expected(lambda_job, conditions, model)
    found = None if foreseen is None else foreseen.times.forecast(foreseen.requests)
    return JobPlan(
        job=lambda_job,
        prices=needed_prices(job, prices),
        outlook=None if isinstance(job.declared, RunsCode) else outlook(job, keys),
        expected=foreseen,
        at_most=at_most(lambda_job, conditions, model),
        load=load,
        forecast=found,
        model=model,
        conditions=conditions,
        warnings=(
            *event_warnings(len(json.dumps(asdict(next(example_invocations(job, keys)))))),
            *(() if load is None or found is None else warnings(load, found, sampler)),
        ),
        alternatives={
            name: other
            for name, alternative in _alternatives(lambda_job)
            if (other := expected(alternative, conditions, model)) is not None
        },
    )


def _json(of: Expected) -> dict[str, Any]:
    names = ("function_s", "operations", "bytes")
    return {
        **{name: getattr(of, name) for name in names},
        "usage": asdict(of.usage),
        "phases": [asdict(phase) for phase in of.phases],
    }


def _interval(of: ForecastRange) -> str:
    ends = f"{format_seconds(of.p5)} to {format_seconds(of.p95)}"
    return f"{format_seconds(of.p50)} ({ends})"


def _alternatives(job: JobSpec) -> Iterator[tuple[str, JobSpec]]:
    """Yield jobs that have the same result, with their names."""
    if isinstance(job.declared, Phased):
        for name, load in job.declared.alternatives(job.load).items():
            yield name, replace(job, load=load)


def outlook(job: JobSpec, keys: Sequence[str]) -> Outlook:
    """Return the expected operations of a job on a store."""
    workload = open_workload(job.workload)
    if (tally := tally_of(workload, job.load)) is not None:
        return Outlook(
            workload=job.workload,
            functions=job.number,
            concurrency=job.concurrency,
            prepared_objects=tally.prepared[0],
            prepared_bytes=tally.prepared[1],
            operations={kind.value: count for kind, count, _ in tally.rows},
            bytes=sum(moved for _, _, moved in tally.rows),
            duration_s=tally.seconds or None,
            exact=True,
            keys=tuple(islice(example_keys(job, keys), _EXAMPLES)),
        )
    endless = job.load.is_drawn and job.load.operations is None
    invocations_seen = looked = prepared_objects = prepared_bytes = moved = 0
    kinds: Counter[str] = Counter()
    for invocation in example_invocations(job, keys):
        for operation in all_succeeding(workload, workload.prepare, invocation):
            if operation.kind.creates:
                prepared_objects += 1
                prepared_bytes += operation.size or 0
                looked += 1
        sizes = listed_sizes(invocation.keys)
        operations = all_succeeding(workload, workload.operations, invocation)
        for operation in () if endless else operations:
            kinds[operation.kind.value] += 1
            if operation.kind in _MOVING:
                size = operation.size or sizes.get(operation.key)
                moved += (size if operation.length is None else operation.length) or 0
            looked += 1
        invocations_seen += 1
        if looked >= _ENOUGH:
            break
    scale = job.number / invocations_seen
    makes = (job.load.is_drawn and not job.reads_given) or any(
        kind.value in kinds for kind in MAKING
    )
    new_keys = islice(example_keys(job, keys), _EXAMPLES) if makes else ()
    return Outlook(
        workload=job.workload,
        functions=job.number,
        concurrency=job.concurrency,
        prepared_objects=round(prepared_objects * scale),
        prepared_bytes=round(prepared_bytes * scale),
        operations={kind: round(count * scale) for kind, count in kinds.items()},
        bytes=round(moved * scale),
        duration_s=job.duration,
        exact=invocations_seen == job.number and job.load.sizes is None and not job.load.is_drawn,
        keys=tuple(new_keys) or tuple(listed(line)[0] for line in keys[:_EXAMPLES]),
    )
