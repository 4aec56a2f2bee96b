"""What one invocation does: each workload turns it into operations, and says what it is.

The rest of the package asks a workload and never for its name.
"""

from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping
from functools import cache
from types import GeneratorType
from typing import TYPE_CHECKING, Final

from serverless_bench.errors import PluginError
from serverless_bench.job.defaults import USUAL_NUMBER
from serverless_bench.job.operations import OperationKind, OperationSpec
from serverless_bench.plugins import Registry

if TYPE_CHECKING:
    from serverless_bench.job.load import Load
    from serverless_bench.job.spec import InvocationSpec, JobSpec, Work
    from serverless_bench.rundir.record import OperationRow
    from serverless_bench.rundir.run import Run
    from serverless_bench.worker.operation_context import Performer

Stream = Generator[OperationSpec, bool | None, None] | Iterator[OperationSpec]
"""Operations of one thread, one after the other."""


PACED: Final = ("threads", "rate", "arrivals")
"""Settings of how a function goes through its operations."""
NEW_OBJECTS: Final = ("mb", "size", "sizes", "layout", "compressibility", "duplication", "prefix")
"""Settings of objects that a function makes."""
PACE: Final = ("threads", "rate", "arrivals")
CONTENT: Final = ("sizes", "layout", "compressibility", "duplication")
"""Fields of a load that these settings become."""


class Workload:
    """Performs nothing, reads no clock, and gives the same answers again."""

    settings: tuple[str, ...] = ()
    """Settings, and thereby flags, that it has besides those of every job."""
    load: tuple[str, ...] = ()
    """Fields of ``Load`` that mean something to it."""
    about: str = ""
    """The one of ``load`` without which there is nothing to do."""
    default_number: int | None = USUAL_NUMBER
    """Functions; None for as many as read all keys."""
    default_objects = 1
    """Objects of each function."""
    needs_size = False
    """Whether its objects have a size in any case: ``size`` is one of its settings then."""
    creates_objects = False
    """Whether it makes objects: they have to stand in the run's ledger before it may run."""
    receives_results = False
    """Whether its streams are generators that receive whether each operation succeeded."""
    deals_objects = False
    """Whether the threads of a function share its objects: some may get none."""
    runs_code = False
    """Whether a function that comes with the invocation decides its operations."""
    is_conditional = False
    """Whether it writes on conditions, which not every client does."""
    most_bytes: int | None = None
    """Bytes that one of its requests moves at most, if the job's objects do not say it."""
    uses_store = True
    """Whether it makes any request."""
    command = ""
    """Its command, behind ``sbench``, if that has another name than the workload."""
    source = ""
    """The command, behind ``sbench``, that makes what it reads."""
    not_again = ""
    """Why a resumed run launches nothing of it; empty if it does."""
    not_deployed = ""
    """Why the functions of a stack do not run it; empty if they do."""
    verifies = False
    """Whether a report says how much was verified even where that is nothing."""
    hue = "grey"
    """Its colour in every picture, of ``palette.LIGHT.hues``."""
    past_tense = "moved"
    """What its functions did with the bytes, in a report."""

    def kinds(self, load: "Load") -> Mapping[OperationKind, float]:  # noqa: ARG002
        """Return the kinds of its operations and their weights, as far as a load tells."""
        return {}

    def reads(self, load: "Load") -> bool:  # noqa: ARG002
        """Tell whether it reads the objects, or arrays, whose keys the job is given."""
        return False

    def pieces(self, load: "Load") -> tuple[int, int] | None:  # noqa: ARG002
        """Return the objects that its library makes of one array, and the bytes of all of them."""
        return None

    def without_end(self, load: "Load") -> str:  # noqa: ARG002
        """Return, in words, what goes on until ``operations`` or a duration ends it."""
        return ""

    def check(self, job: "JobSpec") -> None:
        """Refuse a job that makes no sense; called when it is made.

        Raises
        ------
        UsageError
            If a value does not go with another one.
        """

    def check_library(self, load: "Load") -> None:
        """Refuse what the library cannot do; called before anything starts.

        Raises
        ------
        UsageError
            If it cannot.
        PluginError
            If it is not installed.
        """

    def check_key(self, load: "Load", key: str) -> None:
        """Refuse the key of an object that it cannot read.

        Raises
        ------
        UsageError
            If it cannot.
        """

    def hidden_requests(
        self,
        load: "Load",  # noqa: ARG002
        done: Iterable[tuple[OperationKind, int | None]],  # noqa: ARG002
    ) -> Counter[str]:
        """Return the least requests that its library made, by kind, without showing them.

        Parameters
        ----------
        load
            Of the job.
        done
            Kinds and sizes of what succeeded.
        """
        return Counter()

    def remove_files(self, run: "Run") -> int:  # noqa: ARG002
        """Remove what a run left in ``folder``; return how many objects, or arrays, there were.

        Raises
        ------
        ArchiveError
            If it cannot be removed.
        """
        return 0

    def keys(self, invocation: "InvocationSpec") -> Iterator[str]:
        """Yield every key that the invocation may create."""
        if not self.creates_objects:
            return
        for thread in range(invocation.load.threads):
            for operation in self.operations(invocation, thread):
                if operation.kind.creates:
                    yield operation.key

    def prepare(self, invocation: "InvocationSpec", thread: int) -> Stream:  # noqa: ARG002
        """Yield what one thread is to do before the measurement begins: nothing, as a rule."""
        yield from ()

    def operations(self, invocation: "InvocationSpec", thread: int = 0) -> Stream:  # noqa: ARG002
        """Yield what one thread of the invocation is to do, in order: nothing, unless it says so.

        A workload whose next operation depends on the result of the last one sets
        ``receives_results``: the result is the value of its ``yield``.
        """
        yield from ()

    def performer(self, invocation: "InvocationSpec") -> "Performer | None":  # noqa: ARG002
        """Return who performs kinds of operations that are no request of a client; None for no one.

        What it takes is loaded here, and only in functions that run this workload.
        """
        return None

    def rounds(self, invocation: "InvocationSpec", thread: int) -> Iterator[Stream]:
        """Yield the rounds of one thread without an end, each begun when the last is over.

        Warm-up and duration take as many as they need. They are all the same, unless what
        one round did is there in the next.
        """
        while True:
            yield self.operations(invocation, thread)

    def closing(
        self,
        invocation: "InvocationSpec",  # noqa: ARG002
        done: "Iterable[OperationRow]",  # noqa: ARG002
    ) -> Stream:
        """Yield what is to be done when all threads are through, and not counted.

        Parameters
        ----------
        invocation
            Which.
        done
            What all threads have done.
        """
        yield from ()


OWN_FUNCTION: Final = "function"
"""The workload whose operations a function of the user's own decides."""
WORKLOADS: Final = Registry[Workload](
    "workloads",
    {
        "array": "serverless_bench.workloads.array.workload:WORKLOAD",
        "contend": "serverless_bench.workloads.contend.workload:WORKLOAD",
        OWN_FUNCTION: "serverless_bench.workloads.function:WORKLOAD",
        "mixed": "serverless_bench.workloads.mixed:WORKLOAD",
        "noop": "serverless_bench.workloads.noop:WORKLOAD",
        "read": "serverless_bench.workloads.read:WORKLOAD",
        "write": "serverless_bench.workloads.write:WORKLOAD",
    },
)

open_workload: Final = WORKLOADS.load


@cache
def workload_of(name: str) -> Workload:
    """Return the workload of a saved run; one that says nothing if it is not installed."""
    try:
        return open_workload(name)
    except PluginError:
        return Workload()


def next_operation(stream: Stream, ok: bool | None) -> OperationSpec | None:  # noqa: FBT001 - its result
    """Send a stream the result of its last operation, and return its next one."""
    try:
        # The type itself: to ask for the abstract class takes ten times as long.
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
    """Return PUT or GET if all operations of a job are such, of ranges too; None of others."""
    workload = workload_of(work.workload)
    kinds = set(workload.kinds(work.load)) if workload.deals_objects else set()
    if kinds == {OperationKind.PUT}:
        return OperationKind.PUT
    return OperationKind.GET if kinds & {OperationKind.GET, OperationKind.GET_RANGE} else None
