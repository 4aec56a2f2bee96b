"""Specification of a job: plain values, checked once on creation.

All classes convert to JSON (``dataclasses.asdict``) and back (``from_json``), because
specifications are sent to other machines and stored in run directories.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Annotated, Any, Self

from serverless_bench.base.errors import PluginError, UsageError
from serverless_bench.base.units import format_seconds, format_size
from serverless_bench.job.abilities import RunsCode
from serverless_bench.job.defaults import DEFAULT_EXECUTOR
from serverless_bench.job.endpoint import refuse_password
from serverless_bench.job.meaning import check_known, checked_options, read_options
from serverless_bench.job.operations import HARMLESS
from serverless_bench.job.target import (
    MAX_PART_BYTES,
    MAX_PARTS,
    MIN_PART_BYTES,
    Target,
    Transfer,
)
from serverless_bench.job.types import Limits, Specification, check_types, described, wrong
from serverless_bench.job.workload import (
    MAX_DUE,
    WORKLOADS,
    Load,
    Trait,
    Workload,
    fitted,
    load_fields,
    open_workload,
    workload_of,
)


def _load(job: Mapping[str, Any], value: object, where: str) -> Load:
    """Return the load in a table, as its workload declares it."""
    return described(_load_type(job), value, where)


def _load_type(job: Mapping[str, Any]) -> type[Load]:
    return workload_of(str(job.get("workload"))).load_type


def _current(job: object) -> object:
    """Return the saved table of a job with a table of options.

    Fields of a load that its workload lacks do not count: earlier versions saved all. They saved
    options of a transfer with the transfer.
    """
    if not isinstance(job, Mapping):
        return job
    table, options = _divided(job, JobSpec)
    if isinstance(load := table.get("load"), Mapping):
        table["load"], _ = _divided(load, _load_type(job))
    if isinstance(transfer := table.get("transfer"), Mapping):
        table["transfer"], of_transfer = _divided(transfer, Transfer)
        options |= of_transfer
    if isinstance(given := table.get("options", {}), Mapping):
        table["options"] = {**given, **options}
    return table


def _divided(table: Mapping[str, Any], kind: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the fields of a class in a table, and what else the table has."""
    own = {field.name for field in fields(kind)}
    others = {name: value for name, value in table.items() if name not in own}
    return {name: value for name, value in table.items() if name in own}, others


@dataclass(frozen=True, slots=True, kw_only=True)
class Work(metaclass=Specification):
    """Fields that a job and its invocations have in common; ``JobSpec`` describes them."""

    workload: str
    target: Target
    control: Target | None = None
    transfer: Transfer = field(default_factory=Transfer)
    # Per invocation: the specification lists them.
    objects: Annotated[int, Limits(1, 1_000_000)] = 1
    size: Annotated[int | None, Limits(1)] = None
    # A plan iterates over the reads of each invocation.
    read_times: Annotated[int, Limits(1, 1_000_000)] = 1
    load: Load = field(default_factory=Load, metadata={"read": _load})
    duration: Annotated[float | None, Limits(positive=True)] = None
    warm_up: Annotated[int, Limits(0)] = 0
    deadline: Annotated[float, Limits(positive=True)] = 900.0
    seed: int = 0
    options: Mapping[str, Any] = field(
        default_factory=dict, hash=False, metadata={"read": read_options}
    )

    @property
    def declared(self) -> Workload:
        """The workload; an empty declaration if it is not installed."""
        return workload_of(self.workload)

    @property
    def reads_given(self) -> bool:
        """Whether all objects are given by key: it creates none, not even to prepare."""
        workload, no_size = self.declared, self.size is None and self.load.sizes is None
        return workload.reads(self.load) or (Trait.TAKES_EXISTING in workload.traits and no_size)

    def with_options(self, **changes: Any) -> Self:
        """Return a copy with other values of options; None stands for the default."""
        return replace(self, options={**self.options, **changes})


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec(Work):  # noqa: PLW1641 - the dataclass generates the hash
    """One benchmark: a workload, run by many invocations against one target.

    Parameters
    ----------
    workload
        Workload of the functions: write, read, mixed, array, function or noop;
        see "Workloads" in the documentation.
    target
        Location of the objects, and the library to access them.
    control
        Location where functions claim their work and leave their records for the driver; None for
        executors that return records directly.
    transfer
        Parts, retries and verification of each object's transfer.
    objects
        Objects that an invocation transfers, one after the other.
    size
        Size of a new object; None for workloads that create none, or if ``load`` has sizes.
    read_times
        Number of times an invocation reads each of its objects.
    load
        The operations of a function, apart from the number of objects.
    duration
        Time for which invocations repeat their objects; None to process them once.
    warm_up
        Rounds through the objects of an invocation that reports leave out.
    deadline
        Time after which an invocation stops by itself, with a partial record.
    seed
        Seed of random draws, of sizes for instance; keys and bytes do not depend on it.
    options
        Values of the settings that executors and policies declare, by name; see
        "Settings of a job" in the documentation.
    number
        Total number of functions to call.
    concurrency
        Most invocations alive at the same time.
    executor
        Executor of the functions; see "Executors" in the documentation.
    endpoints
        Further endpoints of the same bucket; the functions take turns.
    network_rate
        Capacity of the network between functions and store, as declared by the user.
    name
        Name of the run in reports.

    Raises
    ------
    UsageError
        If a value has the wrong type or is invalid; ``field`` is its name.
    PluginError
        If no package provides the workload.

    Examples
    --------
    >>> target = sbench.Target(bucket="mine")
    >>> job = sbench.JobSpec(workload="write", target=target, number=4, size=1 << 20)
    >>> job.executor, job.concurrency
    ('local', 8)
    >>> sbench.JobSpec(workload="write", target=target, number="4", size=1)
    Traceback (most recent call last):
        ...
    serverless_bench.base.errors.UsageError: `number` must be a whole number, got '4'
    """

    # Per run: a report has a row for each function, with or without a record.
    number: Annotated[int, Limits(1, 500_000)]
    concurrency: Annotated[int, Limits(1)] = 8
    executor: str = DEFAULT_EXECUTOR
    endpoints: tuple[str, ...] = ()
    network_rate: Annotated[float | None, Limits(positive=True)] = None
    name: str = "job"

    def __post_init__(self) -> None:
        self._check_values()
        self.validate()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, JobSpec):
            return NotImplemented
        return all(getattr(self, f.name) == getattr(other, f.name) for f in fields(JobSpec))

    def validate(self) -> None:
        """Check that the job can run here.

        Raises
        ------
        UsageError
            If ``check_work`` refuses it, or ``duration`` does not fit below the deadline.
        PluginError
            If no package provides the workload.
        """
        check_known(self.options)
        self.check_work()
        if self.duration is not None and self.duration >= self.deadline:
            raise UsageError(
                f"`duration` is {self.duration:g} s, but functions stop after {self.deadline:g} s",
                hint="raise `deadline`, or shorten `duration`",
                field="duration",
            )

    def check_work(self) -> None:
        """Check that the operations of the job are known.

        Raises
        ------
        UsageError
            If new objects have no size, or ``load`` does not fit the workload or their number.
        PluginError
            If no package provides the workload.
        """
        workload = open_workload(self.workload)
        self._check_load()
        part_bytes = self.transfer.part_size
        whole = not workload.reads(self.load)
        if whole and part_bytes is not None and part_bytes < MIN_PART_BYTES:
            raise wrong(
                "part_size",
                f"must be between 5 MiB and 5 GiB, got {format_size(part_bytes)}",
                hint="S3 accepts parts of 5 MiB to 5 GiB; ranges of a read may be smaller",
            )
        sizes = self.size or self.load.sizes
        changes = not self.reads_given or not {*workload.kinds(self.load)}.issubset(HARMLESS)
        if Trait.NEEDS_SIZE in workload.traits and sizes is None and changes:
            raise UsageError(
                f"`size` is missing: a {self.workload} creates objects",
                hint="set size=64 << 20 for 64 MiB, or sizes in `load`",
                field="size",
            )
        workload.check(self)

    def _check_load(self) -> None:
        """Check that a load has the required field, and only fields that the workload uses."""
        name, load = self.workload, self.load
        workload = open_workload(name)
        defines = type(workload).operations is not Workload.operations
        if (
            not defines
            and Trait.NO_REQUESTS not in workload.traits
            and not isinstance(workload, RunsCode)
        ):
            raise PluginError(f"workload {name!r} does not define `operations`")
        for setting in fields(load):
            is_set = getattr(load, setting.name) != setting.default
            if is_set and setting.name not in load_fields(workload):
                others = [w for w in WORKLOADS if setting.name in load_fields(open_workload(w))]
                raise wrong(
                    setting.name,
                    f"does not apply to the workload {name}",
                    hint=f"it applies to {' and '.join(others)}",
                )

    def _check_values(self) -> None:
        check_types(self)
        object.__setattr__(self, "load", fitted(self.load, self.declared.load_type))
        object.__setattr__(self, "options", checked_options(self))
        refuse_password(" ".join(map(str, self.endpoints)))
        self._check_rate()
        if self.size is not None:
            parts = -(-self.size // (self.transfer.part_size or MAX_PART_BYTES))
            if parts > MAX_PARTS:
                raise UsageError(
                    f"{parts} parts are needed for one object, S3 accepts at most {MAX_PARTS}",
                    hint="raise `part_size`",
                )

    def _check_rate(self) -> None:
        rate = self.load.rate
        if rate is None:
            return
        due = rate * (self.duration or 0) * -(-self.number // self.concurrency)
        if due > MAX_DUE:
            raise wrong(
                "rate",
                f"{rate:g} would start {due:,.0f} operations, a run may have {MAX_DUE:,}",
                hint="lower the rate, or shorten `duration`",
            )

    @property
    def max_concurrency(self) -> int:
        """Functions that may be alive at once: no more than there are."""
        return min(self.concurrency, self.number)

    @property
    def idle_threads(self) -> int:
        """Threads of a function that get no object of a write or a read."""
        if Trait.DEALS_OBJECTS not in self.declared.traits:
            return 0
        return max(0, self.load.threads - self.objects * self.read_times)

    @property
    def batches_s(self) -> float | None:
        """Duration of all batches of functions; None without a duration, or with a single batch."""
        batches = -(-self.number // self.max_concurrency)
        return None if self.duration is None or batches == 1 else batches * self.duration

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "JobSpec":
        """Return the job that ``to_json`` converted to ``data``.

        Raises
        ------
        UsageError
            If it has an option that nothing declares: figures may depend on it.
        """
        job: JobSpec = described(DescribedJob, _current(data), "job")
        check_known(job.options)
        return job

    def to_json(self) -> dict[str, Any]:
        """Return the fields as plain values, and the options beside them."""
        table = asdict(self)
        options: dict[str, Any] = table.pop("options")
        return table | options


def idle_words(idle: int, threads: int) -> str:
    """Return a phrase about the threads that get no object."""
    return f"{idle} of {threads} in each function, which has fewer objects than threads"


def batches_words(number: int, concurrency: int, batches_s: float) -> str:
    """Return a phrase about the duration of functions that do not all run at once."""
    batches = -(-number // concurrency)
    each = format_seconds(batches_s / batches)
    return f"--duration {each} x {batches} batches = {format_seconds(batches_s)}"


class DescribedJob(JobSpec):
    """A job that need not be able to run here: from a saved run, or from another tool.

    It may name plugins that are not installed.
    """

    def __post_init__(self) -> None:
        self._check_values()


@dataclass(frozen=True, slots=True, kw_only=True)
class InvocationSpec(Work):
    """All values that a function call needs, below 4 KB as JSON.

    The target has one of the job's endpoints, the seed is unrelated to those of other invocations,
    and the rate of the load is this function's part. There are no credentials: a worker gets them
    from its environment or role.
    """

    run_id: str
    index: int
    launch: int = 0
    """0 for the first launch, incremented each time the driver invokes this index again."""
    keys: tuple[str, ...] = ()
    """Existing objects to read; empty for workloads that create their keys."""
    not_after_ns: int
    """Latest instant to start, on the driver's clock; after it, the run has ended."""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return the invocation that ``asdict`` converted to ``data``."""
        return described(cls, data, "invocation")
