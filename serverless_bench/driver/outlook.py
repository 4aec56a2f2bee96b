"""What a job would do: functions, operations, bytes, keys and cost, without starting any."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Final

from serverless_bench.analysis.display import Printed
from serverless_bench.aws.cost.expected import Expected, at_most, expected
from serverless_bench.aws.cost.forecast import DEFAULT_QUOTA, VCPU_MIB, CostConditions
from serverless_bench.aws.cost.places import is_foreign, regions
from serverless_bench.aws.cost.prices import (
    BilledUsage,
    Dollars,
    Prices,
    needed_prices,
    origin,
    price,
    transfer_text,
)
from serverless_bench.aws.lambda_network import BASE_MBPS
from serverless_bench.clock import wall_ns
from serverless_bench.driver.plan import check
from serverless_bench.job.invocations import invocation_specs
from serverless_bench.job.keys import new_run_id
from serverless_bench.job.operations import OperationKind, OperationSpec
from serverless_bench.job.planned_objects import mean_declared
from serverless_bench.job.spec import InvocationSpec, JobSpec, idle_words
from serverless_bench.job.workload import Stream, Workload, open_workload, succeeding
from serverless_bench.units import format_seconds, format_size

_ENOUGH: Final = 20_000
"""Operations to look at; what more functions do is taken to be like it."""
_EXAMPLES: Final = 2
_MAKING: Final = (OperationKind.PUT, OperationKind.WRITE_ARRAY, OperationKind.APPEND_ARRAY)
_MOVING: Final = (
    *_MAKING,
    OperationKind.GET,
    OperationKind.GET_RANGE,
    OperationKind.READ_ARRAY,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What a job would do to a store."""

    workload: str
    functions: int
    concurrency: int
    prepared_objects: int
    """Made before the measurement."""
    prepared_bytes: int
    operations: dict[str, int]
    """By kind; empty if time ends the job and its operations are not counted."""
    bytes: int
    """What they move."""
    duration_s: float | None
    """How long the job goes on, if time ends it; ``operations`` is one round then."""
    exact: bool
    """Whether every operation was looked at, and none has a size that is drawn."""
    keys: tuple[str, ...]
    """Examples of what it writes, or else reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPlan(Printed):
    """What ``plan`` says of a job; ``print`` shows it as ``sbench plan COMMAND`` does.

    Parameters
    ----------
    job
        As it would run on AWS Lambda: with claims and records, as many at once as can be.
    outlook
        Operations, bytes and keys; None for a function of your own, which alone knows.
    expected
        What the functions use; None if nobody can know what they move.
    at_most
        What one function uses if it runs until its deadline.
    prices
        What is paid.

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

    @property
    def dollars(self) -> Dollars | None:
        """What the job is expected to cost, by component; None if nobody can know."""
        return None if self.expected is None else price(self.expected.usage, self.prices)

    @property
    def dollars_at_most(self) -> float:
        """What the job costs if every function runs until its deadline."""
        return self.job.number * price(self.at_most, self.prices).total

    def to_json(self) -> dict[str, Any]:
        """Return the JSON document of ``sbench plan COMMAND``."""
        job, each, dollars = self.job, price(self.at_most, self.prices).total, self.dollars
        used = None
        if self.expected is not None and dollars is not None:
            used = asdict(self.expected) | {"dollars": asdict(dollars)}
        return {
            "workload": job.workload,
            "functions": job.number,
            "at_once": job.concurrency,
            "idle_threads": job.idle_threads,
            "expected": used,
            "total": None if dollars is None else dollars.total,
            "at_most": {
                "usage_each": asdict(self.at_most),
                "each": each,
                "at_once": job.concurrency * each,
                "total": job.number * each,
            },
            "currency": self.prices.currency,
            "prices_as_of": self.prices.as_of,
            "prices_region": self.prices.region,
            "regions": regions(job),
        }

    def rows(self) -> Iterator[tuple[str, str]]:
        """Yield what there is to say, name and text."""
        job, expected, dollars = self.job, self.expected, self.dollars
        yield "functions", f"{job.number:,}, at most {job.concurrency:,} at once"
        if job.idle_threads:
            yield "idle threads", idle_words(job.idle_threads, job.load.threads)
        if expected is None or dollars is None:
            yield "expected", "nobody can know what it moves; below is what it could"
        else:
            usage = expected.usage
            yield "operations", f"about {expected.operations:,.0f} in each function"
            yield "bytes", f"about {format_size(expected.bytes)}"
            yield "a function takes", f"{format_seconds(expected.function_s)}, billed"
            yield "requests", f"{usage.puts:,} of the PUT class, {usage.gets:,} of the GET class"
            parts = {name: getattr(dollars, name) for name in asdict(dollars)}
            shown = ", ".join(
                f"{name} {self.prices.money(part)}" for name, part in parts.items() if part
            )
            yield "expected", f"{self.prices.money(dollars.total)}: {shown}"
            if moved := transfer_text(usage.cross_region_bytes, usage.internet_bytes):
                yield "transfer", moved
        each = price(self.at_most, self.prices).total
        limit = f"that runs until its --deadline of {job.deadline:g} s"
        together = f"{self.prices.money(job.concurrency * each)} for all that are out at once"
        yield "at most", f"{self.prices.money(each)} a function {limit}, {together}"
        yield "prices", origin(self.prices.as_of, self.prices.region, regions(job))
        if is_foreign(job) and not self.prices.given:
            yield "not in it", "what the store outside of AWS bills"

    def __str__(self) -> str:
        keys = () if self.outlook is None else self.outlook.keys
        rows = [("job", self.job.workload), *self.rows(), *(("key like", key) for key in keys)]
        return "\n".join(f"{title:<20} {text}" for title, text in rows)


def plan(
    job: JobSpec,
    keys: Sequence[str] = (),
    *,
    memory_mib: int = VCPU_MIB,
    architecture: str = "arm64",
    quota: int = DEFAULT_QUOTA,
    network_mbps: float = BASE_MBPS,
    prices: str | Path | None = None,
) -> JobPlan:
    """Say what a job would do, and what it would cost on AWS Lambda; nothing is started.

    Parameters
    ----------
    job
        What to plan.
    keys
        Objects that it reads, for workloads that read.
    memory_mib
        Of a function.
    architecture
        Processor of the functions: arm64 or x86_64.
    quota
        Functions that may run at once.
    network_mbps
        The account's quota for the network of a function, in 10**6 bits per second.
    prices
        A price file (docs/cost.md); None takes the prices that come with sbench.

    Raises
    ------
    UsageError
        If the job makes no sense with these keys, the price file is none, or nobody knows
        prices for where its objects are.

    Examples
    --------
    >>> target = sbench.Target(bucket="mine")
    >>> job = sbench.JobSpec(workload="write", target=target, number=100, size=1 << 30)
    >>> found = sbench.plan(job)
    >>> found.outlook.operations, found.dollars.total < found.dollars_at_most
    ({'put': 100}, True)
    """
    check(job, keys)
    at_once = min(job.at_once, quota)
    # As it would run there: as many at once as may, with claims and records.
    there = replace(job, concurrency=at_once, control=job.target)
    setting = CostConditions(
        memory_mib=memory_mib,
        architecture=architecture,
        object_bytes=mean_declared(keys),
        quota=quota,
        network_mbps=network_mbps,
    )
    return JobPlan(
        job=there,
        prices=needed_prices(job, prices),
        outlook=None if job.declared.runs_code else outlook(job, keys),
        expected=expected(there, setting),
        at_most=at_most(there, setting),
    )


def outlook(job: JobSpec, keys: Sequence[str]) -> Outlook:
    """Return what a job would do to a store."""
    workload = open_workload(job.workload)
    endless = job.load.is_drawn and job.load.operations is None
    seen = looked = prepared_objects = prepared_bytes = moved = 0
    kinds: Counter[str] = Counter()
    for invocation in example_invocations(job, keys):
        for operation in _succeeding(workload, workload.prepare, invocation):
            if operation.kind.creates:
                prepared_objects += 1
                prepared_bytes += operation.size or 0
                looked += 1
        operations = _succeeding(workload, workload.operations, invocation)
        for operation in () if endless else operations:
            kinds[operation.kind.value] += 1
            if operation.kind in _MOVING:
                length = operation.length
                moved += (operation.size if length is None else length) or 0
            looked += 1
        seen += 1
        if looked >= _ENOUGH:
            break
    scale = job.number / seen
    makes = job.load.is_drawn or any(kind.value in kinds for kind in _MAKING)
    made = islice(example_keys(job, keys), _EXAMPLES) if makes else ()
    return Outlook(
        workload=job.workload,
        functions=job.number,
        concurrency=job.concurrency,
        prepared_objects=round(prepared_objects * scale),
        prepared_bytes=round(prepared_bytes * scale),
        operations={kind: round(count * scale) for kind, count in kinds.items()},
        bytes=round(moved * scale),
        duration_s=job.duration,
        exact=seen == job.number and job.load.sizes is None and not job.load.is_drawn,
        keys=tuple(made) or tuple(keys[:_EXAMPLES]),
    )


def example_invocations(job: JobSpec, keys: Sequence[str]) -> Iterator[InvocationSpec]:
    """Yield what the functions of a run would be given; its keys are new each time."""
    created_ns = wall_ns()
    return invocation_specs(job, run_id=new_run_id(created_ns), created_ns=created_ns, keys=keys)


def example_keys(job: JobSpec, keys: Sequence[str]) -> Iterator[str]:
    """Yield keys like those of the objects, or of the arrays, that a run would write."""
    workload = open_workload(job.workload)
    for invocation in example_invocations(job, keys):
        if job.load.is_drawn:
            yield from workload.keys(invocation)
            continue
        operations = _succeeding(workload, workload.operations, invocation)
        yield from dict.fromkeys(each.key for each in operations if each.kind in _MAKING)


def _succeeding(
    workload: Workload,
    make: Callable[[InvocationSpec, int], Stream],
    invocation: InvocationSpec,
) -> Iterator[OperationSpec]:
    """Yield what a workload makes for an invocation, as if each operation succeeded."""
    for thread in range(invocation.load.threads):
        yield from succeeding(workload, make(invocation, thread))
