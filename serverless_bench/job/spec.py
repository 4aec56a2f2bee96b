"""What the user asks for: plain values, checked once, when they are made.

Everything here is JSON both ways (``dataclasses.asdict`` out, ``from_json`` in), because
specifications cross machines and are kept in run directories.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final, Self

from serverless_bench.errors import PluginError, UsageError
from serverless_bench.job.defaults import DEFAULT_EXECUTOR
from serverless_bench.job.endpoint import refuse_password
from serverless_bench.job.load import MAX_DUE, Load
from serverless_bench.job.target import Target
from serverless_bench.job.transfer import (
    MAX_PART_BYTES,
    MAX_PARTS,
    MIN_PART_BYTES,
    Transfer,
)
from serverless_bench.job.types import at_least, check_limits, check_types, described, wrong
from serverless_bench.job.workload import WORKLOADS, Workload, open_workload, workload_of
from serverless_bench.units import MIB

POLLS_PER_S: Final = 2000
"""At a gate, of all functions together: well below the 5,500 GET/s of one partition (Amazon
S3 user guide, "Best practices design patterns")."""
LEAST_POLL_S: Final = 0.05
_LIMITS: Final = {
    # Of one run: a report has a row of each, whether or not it left a record.
    "number": (1, 500_000),
    "concurrency": (1, math.inf),
    # Of one invocation, which is told of each.
    "objects": (1, 1_000_000),
    # A plan goes through what one invocation reads.
    "read_times": (1, 1_000_000),
    "warm_up": (0, math.inf),
    "size": (1, math.inf),
}
_POSITIVES: Final = ("deadline", "gate_timeout", "start_timeout", "duration", "link")


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a job and each of its invocations have in common, as ``JobSpec`` says."""

    workload: str
    target: Target
    control: Target | None = None
    transfer: Transfer = field(default_factory=Transfer)
    objects: int = 1
    size: int | None = None
    read_times: int = 1
    load: Load = field(default_factory=Load)
    duration: float | None = None
    warm_up: int = 0
    deadline: float = 900.0
    seed: int = 0
    gate_timeout: float = 60.0

    @property
    def declared(self) -> Workload:
        """What the workload says of itself; nothing if it is not installed."""
        return workload_of(self.workload)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec(Work):  # noqa: PLW1641 - the dataclass makes its hash
    """One benchmark: a workload, run by many invocations against one target.

    Parameters
    ----------
    workload
        What a function does: write, read, mixed, array, function or noop; docs/workloads.md.
    target
        Where the objects are, and which library reaches them.
    control
        Where functions claim their work and leave their records, and the driver finds them; None
        for executors that bring records back by themselves.
    transfer
        How one object is moved and checked.
    objects
        Objects that one invocation moves, one after the other.
    size
        Size of a new object; None for workloads that make none, or if ``load`` has sizes.
    read_times
        How often an invocation reads each of its objects.
    load
        What the operations of a function are like, beyond how many objects there are.
    duration
        Invocations go through their objects again and again for this long; None for once.
    warm_up
        Rounds through the objects of an invocation that reports leave out.
    deadline
        An invocation stops by itself after this long, with a partial record.
    seed
        Decides what is drawn at random, sizes for instance, but neither keys nor bytes.
    gate_timeout
        The gate opens after this long, whoever is there.
    gate
        Share of the invocations that have to be there before any begins; None for no gate.
    number
        Functions to call in all.
    concurrency
        Invocations alive at once, at most.
    executor
        Where functions run; docs/executors.md.
    function
        Names of the deployed functions to invoke, for executors that invoke such.
    function_region
        Where these are; None for the region of the bucket.
    memory
        What each of them must have, as the probe finds; None for whatever it has.
    arch
        The same of its processor: arm64 or x86_64.
    probe
        Whether each of them, or of the workers of a Dask cluster, is asked, before anything is
        launched, what it is and whether it may do what the job needs.
    scheduler
        Address of a Dask cluster; None to start one on this machine.
    lithops_keys
        Whether Lithops may send the keys in its configuration with every call.
    slots
        Functions at once of a Dask cluster that is started; None for four per processor.
    start_timeout
        What has not begun this long after its launch is launched again, and can not begin any
        more; only with ``control``.
    endpoints
        Further endpoints of the same bucket; the functions take turns.
    until_stable
        The run ends before ``duration``, once an interval of its rate is this narrow: half the
        width over the rate; only where functions share memory with their driver.
    link
        What the network between functions and store carries at most, as the user declares.
    name
        What reports call the run.

    Raises
    ------
    UsageError
        If a value is of another type or cannot be; ``field`` is its name.
    PluginError
        If nobody has the workload.

    Examples
    --------
    >>> target = sbench.Target(bucket="mine")
    >>> job = sbench.JobSpec(workload="write", target=target, number=4, size=1 << 20)
    >>> job.executor, job.concurrency
    ('local', 8)
    >>> sbench.JobSpec(workload="write", target=target, number="4", size=1)
    Traceback (most recent call last):
        ...
    serverless_bench.errors.UsageError: `number` must be a whole number, got '4'
    """

    gate: float | None = None
    number: int
    concurrency: int = 8
    executor: str = DEFAULT_EXECUTOR
    function: tuple[str, ...] = ()
    function_region: str | None = None
    memory: int | None = None
    arch: str | None = None
    probe: bool = True
    scheduler: str | None = None
    lithops_keys: bool = False
    slots: int | None = None
    start_timeout: float = 60.0
    endpoints: tuple[str, ...] = ()
    until_stable: float | None = None
    link: float | None = None
    name: str = "job"

    def __post_init__(self) -> None:
        self._check_values()
        self.check_asked()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, JobSpec):
            return NotImplemented
        return all(getattr(self, one.name) == getattr(other, one.name) for one in fields(JobSpec))

    def check_asked(self) -> None:
        """Refuse what cannot be run here, whatever its values.

        Raises
        ------
        UsageError
            If new objects have no size, or ``load`` does not fit the workload or their number.
        PluginError
            If nobody has the workload.
        """
        workload = open_workload(self.workload)
        self._check_load()
        part_bytes = self.transfer.part_size
        whole = not workload.reads(self.load)
        if whole and part_bytes is not None and part_bytes < MIN_PART_BYTES:
            raise wrong(
                "part_size",
                f"must be between 5 and 5120 MiB, got {part_bytes / MIB:g}",
                hint="S3 takes parts of 5 MiB to 5 GiB; ranges of a read may be smaller",
            )
        sizes = self.size or self.load.sizes
        if workload.needs_size and sizes is None:
            raise UsageError(
                f"`size` is missing: a {self.workload} makes objects",
                hint="size=64 << 20 for 64 MiB, or sizes in `load`",
                field="size",
            )
        workload.check(self)

    def _check_load(self) -> None:
        """Refuse a load that lacks what the workload is about, or has what means nothing to it."""
        name, load = self.workload, self.load
        workload = open_workload(name)
        defines = type(workload).operations is not Workload.operations
        if not defines and workload.uses_store and not workload.runs_code:
            raise PluginError(f"workload {name!r} does not define `operations`")
        if workload.about and not getattr(load, workload.about):
            raise wrong(workload.about, f"is missing: the workload {name} needs it")
        for setting in fields(load):
            given = getattr(load, setting.name) != setting.default
            if given and setting.name not in workload.load:
                others = [one for one in WORKLOADS if setting.name in open_workload(one).load]
                raise wrong(
                    setting.name,
                    f"means nothing to the workload {name}",
                    hint=f"it is for {' and '.join(others)}",
                )

    def _check_values(self) -> None:
        check_types(self)
        slots = 1 if self.slots is None else self.slots
        at_least("slots", slots, 1, hint="leave it out for as many as the host has processors")
        check_limits(self, _LIMITS, positives=_POSITIVES)
        refuse_password(" ".join(map(str, self.endpoints)))
        if self.gate is not None and not 0 < self.gate <= 1:
            raise wrong(
                "gate",
                f"must be above 0 and at most 1, got {self.gate:g}",
                hint="it is the share of the functions to wait for: `gate` 0.95",
            )
        self._check_rate()
        if self.size is not None:
            parts = -(-self.size // (self.transfer.part_size or MAX_PART_BYTES))
            if parts > MAX_PARTS:
                raise UsageError(
                    f"{parts} parts make one object, S3 takes at most {MAX_PARTS}",
                    hint="raise `part_size`",
                )

    def _check_rate(self) -> None:
        if self.until_stable is not None and not 0 < self.until_stable < 0.5:
            raise wrong(
                "until_stable",
                f"must be above 0 and below 0.5, got {self.until_stable:g}",
                hint="half the width of an interval, over the rate: `until_stable` 0.02",
            )
        rate = self.load.rate
        if rate is None:
            return
        due = rate * (self.duration or 0) * -(-self.number // self.concurrency)
        if due > MAX_DUE:
            raise wrong(
                "rate",
                f"{rate:g} asks for {due:,.0f} operations, a run may have {MAX_DUE:,}",
                hint="ask for fewer a second, or for a shorter `duration`",
            )

    @property
    def at_once(self) -> int:
        """Functions that may be alive at once: no more than there are."""
        return min(self.concurrency, self.number)

    @property
    def gate_poll_s(self) -> float:
        """How often one function asks for the common start."""
        return max(LEAST_POLL_S, self.concurrency / POLLS_PER_S)

    @property
    def idle_threads(self) -> int:
        """Threads of one function that get no object of a write or a read."""
        if not self.declared.deals_objects:
            return 0
        return max(0, self.load.threads - self.objects * self.read_times)

    @property
    def functions_region(self) -> str:
        """Where the deployed functions are."""
        return self.function_region or self.target.region

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "JobSpec":
        """Return the job that ``asdict`` made ``data`` from."""
        return described(DescribedJob, data, "job")


def idle_words(idle: int, threads: int) -> str:
    """Return in words how many of the threads have nothing to do."""
    return f"{idle} of {threads} in each function, which has fewer objects than threads"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DescribedJob(JobSpec):
    """A job that need not be one that could be run here: of a saved run, or of another tool.

    It may have names of plugins that are not installed.
    """

    def __post_init__(self) -> None:
        self._check_values()


@dataclass(frozen=True, slots=True, kw_only=True)
class InvocationSpec(Work):
    """Everything one function call needs, and no more; below 4 KB as JSON.

    Its target is at one of the job's endpoints, its seed unrelated to those of the other
    invocations, and the rate of its load this function's share. It carries no credentials: a
    worker has its own, from its environment or its role.
    """

    run_id: str
    index: int
    launch: int = 0
    """0, and one more each time the driver invokes this index again."""
    keys: tuple[str, ...] = ()
    """Existing objects to read; empty for workloads that make their own keys."""
    gate_poll_s: float | None = None
    """How often to ask for the common start; None to begin at once."""
    gate_from: int = 0
    """The first index of its batch: those that are alive at once begin together."""
    not_after_ns: int
    """Refuse to start after this instant (driver clock): the run is long over."""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return the invocation that ``asdict`` made ``data`` from."""
        return described(cls, data, "invocation")
