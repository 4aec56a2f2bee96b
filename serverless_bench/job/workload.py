"""Workloads: each converts an invocation to operations, and declares its properties.

The rest of the package uses these properties and never depends on a workload's name. The load of a
job is the operations of its functions: their number, kinds, times and objects.
"""

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, fields
from enum import Flag, auto
from functools import cache
from types import GeneratorType
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple, Self

from serverless_bench.base.errors import PluginError
from serverless_bench.base.plugins import Registry
from serverless_bench.base.units import MIB
from serverless_bench.job.defaults import USUAL_NUMBER
from serverless_bench.job.keys import check_ratios, parse_layout
from serverless_bench.job.operations import OperationKind, OperationSpec
from serverless_bench.job.types import Limits, Specification, check_types, wrong

if TYPE_CHECKING:
    from serverless_bench.job.spec import InvocationSpec, JobSpec
    from serverless_bench.worker.operation_context import Performer

MAX_DUE: Final = 10_000_000
"""Most operations that the schedules of a run may plan: more records would not fit anywhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load(metaclass=Specification):
    """The operations of a function, apart from the number of objects.

    A workload with further settings has a class for them, as ``ShuffleLoad``.

    Parameters
    ----------
    threads
        Operations of a function in flight at the same time; threads do not share objects.
    sizes
        Distribution of object sizes, as in "Payload" in the documentation; None for one size.
    layout
        Layout of the keys: random, sharded:N or sequential.
    compressibility
        Factor by which a compressor makes the bytes smaller.
    duplication
        Average number of copies of each 4 KiB block in an object.
    mix
        Weights of the operations of a mixed workload, by kind.
    operations
        Operations that each function performs of a mix, or each thread of a contended workload;
        None to continue for ``duration``.
    rate
        Operations to start per second, whether or not earlier ones have finished (open loop): of
        the whole job, or in an invocation its part of that. None for a closed loop.
    arrivals
        Distribution of the start times: uniform (even distances) or poisson.
    split
        Functions that share each object read; None if each reads full objects.
    range_size
        Bytes that a get_range of a mix reads, at a random offset.

    Examples
    --------
    >>> load = sbench.Load(threads=4, mix=(("get", 3), ("put", 1)), operations=100)
    >>> load.mix
    (('get', 3.0), ('put', 1.0))
    """

    threads: Annotated[int, Limits(1, 10_000)] = 1
    sizes: str | None = None
    layout: str = "random"
    compressibility: float = 1.0
    duplication: float = 1.0
    mix: tuple[tuple[str, float], ...] = ()
    operations: Annotated[int | None, Limits(1)] = None
    rate: Annotated[float | None, Limits(positive=True)] = None
    arrivals: Annotated[str, Literal["uniform", "poisson"]] = "uniform"
    split: Annotated[int | None, Limits(1)] = None
    range_size: Annotated[int, Limits(1)] = MIB

    @classmethod
    def narrow(cls, load: "Load") -> Self:
        """Return the load of a job whose workload has loads of this class."""
        if not isinstance(load, cls):
            raise TypeError(f"{type(load).__name__} is no {cls.__name__}")
        return load

    @classmethod
    def made(cls, settings: Mapping[str, Any]) -> "Load":
        """Return the load for values of settings by name, of which a workload has more."""
        own = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in settings.items() if name in own})

    @property
    def is_drawn(self) -> bool:
        """Whether operations are drawn at random, so that their number is not known in advance."""
        return bool(self.mix)

    @property
    def has_instants(self) -> bool:
        """Whether operations have instants, which count from a start that all functions share."""
        return False

    @property
    def library(self) -> str | None:
        """The library that moves the bytes in place of the client; None for the client."""
        return None

    @property
    def folder(self) -> str | None:
        """The directory that takes the place of a bucket; None for a bucket."""
        return None

    @property
    def code(self) -> str | None:
        """Code that workers run."""
        return None

    @property
    def saved(self) -> "Load":
        """The load in a run directory, which holds no code."""
        return self

    def __post_init__(self) -> None:
        check_types(self)
        object.__setattr__(self, "mix", tuple((str(n), float(w)) for n, w in self.mix))
        parse_layout(self.layout)
        check_ratios(self.compressibility, self.duplication)


def fitted(load: Load, kind: type[Load]) -> Load:
    """Return a load as another class of loads has it; the load itself if values would be lost."""
    own = {field.name for field in fields(kind)}
    lost = (field for field in fields(load) if field.name not in own)
    if type(load) is kind or any(getattr(load, f.name) != f.default for f in lost):
        return load
    return kind(**{f.name: getattr(load, f.name) for f in fields(load) if f.name in own})


Stream = Generator[OperationSpec, bool | None, None] | Iterator[OperationSpec]
"""Operations of one thread, one after the other."""


PACED: Final = ("threads", "rate", "arrivals")
"""Settings for the pace of a function's operations."""
NEW_OBJECTS: Final = ("mb", "size", "sizes", "layout", "compressibility", "duplication", "prefix")
"""Settings for the objects that a function creates."""


class Trait(Flag):
    """Properties that a workload has or lacks."""

    CREATES_OBJECTS = auto()
    """Creates objects, which must be in the run's ledger before the start."""
    NEEDS_SIZE = auto()
    """Objects always have a size; then ``size`` is a setting."""
    DEALS_OBJECTS = auto()
    """The threads of a function share the objects: some may get none."""
    RECEIVES_RESULTS = auto()
    """Streams are generators that receive whether each operation succeeded."""
    DERIVES_KEYS = auto()
    """Keys are below a key with a size, as those of chunks of an array."""
    REPORTS_KEYS = auto()
    """Reports need the keys of operations."""
    VERIFIES = auto()
    """A report shows the verified bytes even if there are none."""
    READS_OBJECTS = auto()
    """Operations may read objects, or ranges of them, with a request each."""
    TAKES_EXISTING = auto()
    """Can read objects that sbench did not write, in place of its own."""
    NO_REQUESTS = auto()
    """Makes no request."""


class Appearance(NamedTuple):
    """How reports show a workload."""

    hue: str = "grey"
    """Name of the colour in all pictures."""
    past_tense: str = "moved"
    """Verb for the transfer of bytes."""


class Workload:
    """A workload. It performs nothing and reads no clock; the answers never change.

    ``abilities`` has classes for further answers, which few workloads give.
    """

    settings: tuple[str, ...] = ()
    """Settings, and thus flags, beyond those common to all jobs and those of loads."""
    load_type: type[Load] = Load
    """Class of the loads; fields that it declares apply, and those that are settings."""
    default_number: int | None = USUAL_NUMBER
    """Default number of functions; None for as many as needed to read all keys."""
    default_objects = 1
    """Default number of objects per function."""
    traits = Trait(0)
    """Properties that it has."""
    source = ""
    """The ``sbench`` command that creates the objects it reads."""
    look = Appearance()
    """How reports show it."""
    part = ""
    """Part of reports, a ``metrics.part.Part``, as ``module:attribute``; empty if none."""

    def kinds(self, load: Load) -> Mapping[OperationKind, float]:
        """Return the kinds of operations and their weights, as far as known from a load."""
        return {}

    def reads(self, load: Load) -> bool:
        """Return whether it reads existing objects, or arrays, given to the job by key."""
        return False

    def check(self, job: "JobSpec") -> None:
        """Check the job's consistency; called on its creation.

        Raises
        ------
        UsageError
            If values contradict each other.
        """

    def keys(self, invocation: "InvocationSpec") -> Iterator[str]:
        """Yield all keys that the invocation may create."""
        if Trait.CREATES_OBJECTS not in self.traits:
            return
        for thread in range(invocation.load.threads):
            operations = self.operations(invocation, thread)
            yield from (operation.key for operation in operations if operation.kind.creates)

    def prepare(self, invocation: "InvocationSpec", thread: int) -> Stream:
        """Yield the operations of a thread before the measurement; none by default."""
        yield from ()

    def operations(self, invocation: "InvocationSpec", thread: int = 0) -> Stream:
        """Yield the operations of a thread in order, a round of them; none by default.

        A workload whose next operation depends on the previous result has
        ``Trait.RECEIVES_RESULTS``: the result is the value of its ``yield``.
        """
        yield from ()

    def performer(self, invocation: "InvocationSpec") -> "Performer | None":
        """Return the performer of operations that are not client requests; None by default.

        Its imports happen here, and only in functions that run this workload.
        """
        return None


OWN_FUNCTION: Final = "custom"
"""The workload of user functions."""
WORKLOADS: Final = Registry[Workload](
    "workloads",
    {
        "mixed": "serverless_bench.workloads.mixed:WORKLOAD",
        "read": "serverless_bench.workloads.read:WORKLOAD",
        "write": "serverless_bench.workloads.write:WORKLOAD",
    },
)

open_workload: Final = WORKLOADS.load


def load_fields(workload: Workload) -> frozenset[str]:
    """Return the names of the fields of a load that apply to a workload."""
    common = {field.name for field in fields(Load)}
    own = workload.load_type.__annotations__ if workload.load_type is not Load else ()
    return frozenset((*own, *common.intersection(workload.settings)))


def check_has(job: "JobSpec", name: str) -> None:
    """Check that the load of a job has a value that the workload needs.

    Raises
    ------
    UsageError
        If it is missing.
    """
    if not getattr(job.load, name):
        raise wrong(name, f"is missing: the workload {job.workload} needs it")


@cache
def workload_of(name: str) -> Workload:
    """Return the workload of a saved run; an empty declaration if it is not installed."""
    try:
        return open_workload(name)
    except PluginError:
        return Workload()


def next_operation(stream: Stream, ok: bool | None) -> OperationSpec | None:  # noqa: FBT001 - a result
    """Send a stream the result of its last operation, and return the next operation."""
    try:
        # Check for the concrete type: checking for the abstract class takes ten times as long.
        if ok is None or not isinstance(stream, GeneratorType):
            return next(stream)
        following: OperationSpec = stream.send(ok)
    except StopIteration:
        return None
    return following


def succeeding(workload: Workload, stream: Stream) -> Iterator[OperationSpec]:
    """Yield the operations of one of a workload's streams as if each succeeded."""
    if Trait.RECEIVES_RESULTS not in workload.traits:
        yield from stream
        return
    ok = None
    while (operation := next_operation(stream, ok)) is not None:
        yield operation
        ok = True
