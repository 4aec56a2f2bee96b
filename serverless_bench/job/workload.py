"""Workloads: each converts an invocation to operations, and declares its properties.

The rest of the package uses these properties and never depends on a workload's name.
"""

from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cache
from types import GeneratorType
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple

from serverless_bench.base.errors import PluginError
from serverless_bench.base.plugins import Registry
from serverless_bench.job.defaults import USUAL_NUMBER
from serverless_bench.job.load import Load
from serverless_bench.job.operations import OperationKind, OperationSpec
from serverless_bench.job.types import wrong

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from serverless_bench.job.spec import InvocationSpec, JobSpec, Work
    from serverless_bench.rundir.record import OperationRow
    from serverless_bench.rundir.run import Run
    from serverless_bench.worker.object_io import Head
    from serverless_bench.worker.operation_context import Performer
    from serverless_bench.worker.runner import InvocationRunner

Stream = Generator[OperationSpec, bool | None, None] | Iterator[OperationSpec]
"""Operations of one thread, one after the other."""


PACED: Final = ("threads", "rate", "arrivals")
"""Settings for the pace of a function's operations."""
NEW_OBJECTS: Final = ("mb", "size", "sizes", "layout", "compressibility", "duplication", "prefix")
"""Settings for the objects that a function creates."""
PACE: Final = ("threads", "rate", "arrivals")
CONTENT: Final = ("sizes", "layout", "compressibility", "duplication")
"""Fields of a load that these settings correspond to."""


class Scan(NamedTuple):
    """The requests of an operation that reads parts of an object, and their bytes."""

    footer_requests: int
    """Requests before it is known which other parts to read."""
    requests: int
    bytes: int
    needed_bytes: int
    """Bytes that a reader needs: without gaps between them, and no byte twice."""


class Phase(NamedTuple):
    """Operations that some of a job's functions perform, before or after those of others."""

    name: str
    functions: int
    """Number of its functions, which follow those of the previous phase."""
    rows: "Sequence[tuple[OperationKind, int, int]]"
    """Kind, number and bytes of the operations."""
    overlaps: bool = False
    """Whether it can proceed during the previous phase."""


class Tally(NamedTuple):
    """Operations of a job, known without listing them."""

    prepared: tuple[int, int]
    """Number and bytes of the objects that are created before the measurement."""
    rows: "Sequence[tuple[OperationKind, int, int]]"
    """Kind, number and bytes of the operations."""
    seconds: float
    """Time from the first operation to the last; 0 if the operations have no instants."""
    phases: Sequence[Phase] = ()
    """The same operations by phase; none if all functions do the same."""
    poll_s: float = 0.0
    """Time between two listings of a function that waits for others; 0 if none waits."""


UNTIMED: Final = ("objects", "duration", "warm_up", "until_stable")
"""Settings of the number of objects and the duration."""


class Workload:
    """A workload. It performs nothing and reads no clock; its answers never change."""

    settings: tuple[str, ...] = ()
    """Settings, and thus flags, beyond those common to all jobs."""
    load: tuple[str, ...] = ()
    """Fields of ``Load`` that apply to it."""
    load_type: type[Load] = Load
    """Class of its loads; all fields that it adds to those of ``Load`` apply."""
    about: str = ""
    """The field of ``load`` that it requires."""
    default_number: int | None = USUAL_NUMBER
    """Default number of functions; None for as many as needed to read all keys."""
    default_objects = 1
    """Default number of objects per function."""
    is_untimed = False
    """Whether its operations are fixed, so that no setting of ``UNTIMED`` applies."""
    needs_size = False
    """Whether its objects always have a size; then ``size`` is one of its settings."""
    creates_objects = False
    """Whether it creates objects, which must be in the run's ledger before it runs."""
    receives_results = False
    """Whether its streams are generators that receive whether each operation succeeded."""
    deals_objects = False
    """Whether the threads of a function share its objects: some may get none."""
    derives_keys = False
    """Whether the keys of its objects are below a key with a size, as chunks of an array are."""
    reports_keys = False
    """Whether reports need the keys of its operations."""
    runs_code = False
    """Whether a function in the invocation determines its operations."""
    environment: Mapping[str, str] = {}
    """Environment variables for workers that an executor starts on this machine."""
    is_conditional = False
    """Whether it makes conditional writes, which not all clients support."""
    most_bytes: int | None = None
    """Most bytes of a request, if not determined by the job's objects."""
    uses_store = True
    """Whether it makes any request."""
    command = ""
    """Name of its ``sbench`` command, if it differs from the workload's name."""
    source = ""
    """The ``sbench`` command that creates the objects it reads."""
    not_again = ""
    """Reason for not launching it in a resumed run; empty if it is launched."""
    not_deployed = ""
    """Reason for not running it in functions of a stack; empty if they run it."""
    verifies = False
    """Whether a report shows the verified bytes even if there are none."""
    hue = "grey"
    """Colour in all pictures, from ``palette.LIGHT.hues``."""
    past_tense = "moved"
    """Verb in reports for the transfer of bytes."""
    part = ""
    """Part of reports, a ``metrics.part.Part``, as ``module:attribute``; empty if none."""

    def kinds(self, load: Load) -> Mapping[OperationKind, float]:
        """Return the kinds of its operations and their weights, as far as known from a load."""
        return {}

    def reads(self, load: Load) -> bool:
        """Return whether it reads existing objects, or arrays, given to the job by key."""
        return False

    def with_files(
        self,
        flags: Mapping[str, Any],
        opened: "Callable[[object], AbstractContextManager[IO[str]]]",
    ) -> tuple[Mapping[str, Any], Sequence[str]]:
        """Return the flags of the command with the contents of files, and notes about these.

        Parameters
        ----------
        flags
            Values by parameter name.
        opened
            Opens a user's file, or standard input if the path is ``-``.

        Raises
        ------
        UsageError
            If a file cannot be read.
        """
        return flags, ()

    def tally(self, load: Load) -> Tally | None:
        """Return the operations of a job if the load lists them; None by default."""
        return None

    def dealt(self, load: Load, index: int, number: int) -> Load:
        """Return the load of one of ``number`` functions; by default all have the same."""
        return load

    def pieces(self, load: Load) -> tuple[int, int] | None:
        """Return the number of objects that its library creates per array, and their total size."""
        return None

    def functions(self, load: Load) -> int | None:
        """Return the number of functions if the load determines it; None by default."""
        return None

    def alternatives(self, load: Load) -> Mapping[str, Load]:
        """Return loads that have the same result, by name; a plan compares them."""
        return {}

    def writer(self, key: str) -> int:
        """Return the index of the function that writes an object for others; -1 for other keys."""
        return -1

    def without_end(self, load: Load) -> str:
        """Return a phrase for the work that only ``operations`` or a duration ends."""
        return ""

    def completed(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a job with those that follow from a file which a setting names.

        Raises
        ------
        UsageError
            If the file cannot be used.
        """
        return values

    def scan(self, job: "Work") -> Scan | None:
        """Return the requests of each operation if it reads parts of an object; else None."""
        return None

    def check(self, job: "JobSpec") -> None:
        """Check the job's consistency; called on its creation.

        Raises
        ------
        UsageError
            If values contradict each other.
        """

    def check_untimed(self, job: "JobSpec", reason: str) -> None:
        """Check that no duration, warm-up or number of objects is given for fixed operations.

        Raises
        ------
        UsageError
            If one is, with the reason.
        """
        for name, value in (
            *(("duration", job.duration), ("warm_up", job.warm_up)),
            ("objects", job.objects - self.default_objects),
        ):
            if value:
                raise wrong(name, f"does not apply to a {reason}")

    def check_library(self, load: Load) -> None:
        """Check that the library supports the load; called before anything starts.

        Raises
        ------
        UsageError
            If it does not.
        PluginError
            If it is not installed.
        """

    def check_key(self, load: Load, key: str) -> None:
        """Check that it can read the object with this key.

        Raises
        ------
        UsageError
            If it cannot.
        """

    def hidden_requests(
        self,
        load: Load,
        done: Iterable[tuple[OperationKind, int | None]],
    ) -> Counter[str]:
        """Return the smallest number of requests, by kind, that its library makes internally.

        Parameters
        ----------
        load
            Load of the job.
        done
            Kinds and sizes of the operations that are ok.
        """
        return Counter()

    def remove_files(self, run: "Run") -> int:
        """Remove a run's files in ``folder``; return the number of objects, or arrays.

        Raises
        ------
        ArchiveError
            If they cannot be removed.
        """
        return 0

    def recognizes(self, key: str, head: "Head") -> bool | None:
        """Return whether it wrote an object, from its first bytes; None if they do not show it.

        It is asked for keys that end in no size. By default, an object below a key with a size, as
        with ``derives_keys``, has to hold bytes of that key.
        """
        return None

    def keys(self, invocation: "InvocationSpec") -> Iterator[str]:
        """Yield all keys that the invocation may create."""
        if not self.creates_objects:
            return
        for thread in range(invocation.load.threads):
            for operation in self.operations(invocation, thread):
                if operation.kind.creates:
                    yield operation.key

    def prepare(self, invocation: "InvocationSpec", thread: int) -> Stream:
        """Yield the operations of a thread before the measurement; none by default."""
        yield from ()

    def operations(self, invocation: "InvocationSpec", thread: int = 0) -> Stream:
        """Yield the operations of a thread in order; none by default.

        A workload whose next operation depends on the previous result sets ``receives_results``:
        the result is the value of its ``yield``.
        """
        yield from ()

    def performer(self, invocation: "InvocationSpec") -> "Performer | None":
        """Return the performer of operations that are not client requests; None by default.

        Its imports happen here, and only in functions that run this workload.
        """
        return None

    def run_code(self, runner: "InvocationRunner") -> str | None:
        """Run the code in an invocation, with ``runs_code``; return why it ended early, if so."""
        raise NotImplementedError

    def rounds(self, invocation: "InvocationSpec", thread: int) -> Iterator[Stream]:
        """Yield the rounds of a thread without end, each after the previous round is over.

        Warm-up and duration take as many as they need. All rounds are alike, unless the results of
        a round affect the next.
        """
        while True:
            yield self.operations(invocation, thread)

    def closing(
        self,
        invocation: "InvocationSpec",
        done: "Iterable[OperationRow]",
    ) -> Stream:
        """Yield the operations after all threads have finished; reports leave them out.

        Parameters
        ----------
        invocation
            The invocation.
        done
            Operations of all threads.
        """
        yield from ()


OWN_FUNCTION: Final = "function"
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
    return frozenset({field.name for field in fields(workload.load_type)} - common).union(
        workload.load
    )


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
    if not workload.receives_results:
        yield from stream
        return
    ok = None
    while (operation := next_operation(stream, ok)) is not None:
        yield operation
        ok = True


def moving_kind(work: "Work") -> OperationKind | None:
    """Return PUT or GET if a job has only such operations, ranges included; None otherwise."""
    workload = workload_of(work.workload)
    kinds = set(workload.kinds(work.load)) if workload.deals_objects else set()
    if kinds == {OperationKind.PUT}:
        return OperationKind.PUT
    return OperationKind.GET if kinds & {OperationKind.GET, OperationKind.GET_RANGE} else None
