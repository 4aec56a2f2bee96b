"""Abilities that few workloads have: a workload inherits them, and callers test that it does."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple

from serverless_bench.job.operations import OperationKind
from serverless_bench.job.types import wrong
from serverless_bench.job.workload import Load, Stream, Workload

if TYPE_CHECKING:
    from serverless_bench.job.spec import InvocationSpec, JobSpec, Work
    from serverless_bench.rundir.record import OperationRow
    from serverless_bench.rundir.run import Run
    from serverless_bench.worker.object_io import Head
    from serverless_bench.worker.runner import InvocationRunner

UNTIMED: Final = ("objects", "duration", "warm_up")
"""Settings of the number of objects and the duration."""


class Phase(NamedTuple):
    """Operations of some functions of a job, before or after those of the others."""

    name: str
    functions: int
    """Number of functions, which follow those of the previous phase."""
    rows: Sequence[tuple[OperationKind, int, int]]
    """Kind, number and bytes of the operations."""
    overlaps: bool = False
    """Whether it can proceed during the previous phase."""


class Tally(NamedTuple):
    """Operations of a job, known without listing them."""

    prepared: tuple[int, int]
    """Number and bytes of the objects that are created before the measurement."""
    rows: Sequence[tuple[OperationKind, int, int]]
    """Kind, number and bytes of the operations."""
    seconds: float
    """Time from the first operation to the last; 0 if the operations have no instants."""
    phases: Sequence[Phase] = ()
    """The same operations by phase; none if all functions do the same."""
    poll_s: float = 0.0
    """Time between two listings of a waiting function; 0 if none waits."""


class Scan(NamedTuple):
    """The requests of an operation that reads parts of an object, and their bytes."""

    footer_requests: int
    """Requests before it is known which other parts to read."""
    requests: int
    bytes: int
    needed_bytes: int
    """Bytes that a reader needs: without gaps between them, and no byte twice."""


class Pages(NamedTuple):
    """The work of a function of a job that lists keys."""

    written: int
    """Objects that it writes before."""
    pages: float


class Untimed:
    """Fixed operations: no setting of ``UNTIMED`` applies."""

    def check_untimed(self, job: "JobSpec", reason: str) -> None:
        """Check that no duration, warm-up or number of objects is given.

        Raises
        ------
        UsageError
            If one is, with the reason.
        """
        for name, value in (
            *(("duration", job.duration), ("warm_up", job.warm_up)),
            ("objects", job.objects - job.declared.default_objects),
        ):
            if value:
                raise wrong(name, f"does not apply to a {reason}")


class Tallied(ABC):
    """Loads that list the operations."""

    @abstractmethod
    def tally(self, load: Load) -> Tally:
        """Return the operations of a job."""


def tally_of(workload: Workload, load: Load) -> Tally | None:
    """Return the operations of a job if the load lists them."""
    return workload.tally(load) if isinstance(workload, Tallied) else None


class Phased(Tallied):
    """Functions with different roles."""

    @abstractmethod
    def functions(self, load: Load) -> int:
        """Return the number of functions, which the load determines."""

    @abstractmethod
    def alternatives(self, load: Load) -> Mapping[str, Load]:
        """Return loads that have the same result, by name; a plan compares them."""


class Dealt(ABC):
    """Functions with different loads."""

    @abstractmethod
    def dealt(self, load: Load, index: int, number: int) -> Load:
        """Return the load of one of ``number`` functions."""


class ReadsFiles(ABC):
    """A command that reads files of the user."""

    @abstractmethod
    def with_files(
        self,
        flags: Mapping[str, Any],
        opened: Callable[[object], AbstractContextManager[IO[str]]],
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


class Completing(ABC):
    """Fields of a job that follow from other fields, or from a file that a setting names."""

    @abstractmethod
    def completed(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a job with those that follow.

        Raises
        ------
        UsageError
            If the file cannot be used.
        """


class Endless(ABC):
    """Work that only ``operations`` or a duration ends."""

    @abstractmethod
    def without_end(self, load: Load) -> str:
        """Return a phrase for the work of a load without another end, or an empty text."""


class Continuing(ABC):
    """Rounds that continue with the results of the round before."""

    @abstractmethod
    def rounds(self, invocation: "InvocationSpec", thread: int) -> Iterator[Stream]:
        """Yield the rounds of a thread without end, each after the previous round is over."""


def rounds_of(workload: Workload, invocation: "InvocationSpec", thread: int) -> Iterator[Stream]:
    """Yield the rounds of a thread without end; warm-up and duration take as many as they need."""
    if isinstance(workload, Continuing):
        yield from workload.rounds(invocation, thread)
    while True:
        yield workload.operations(invocation, thread)


class Closing(ABC):
    """Operations after all threads have finished."""

    @abstractmethod
    def closing(self, invocation: "InvocationSpec", done: "Iterable[OperationRow]") -> Stream:
        """Yield these operations, which reports leave out.

        Parameters
        ----------
        invocation
            The invocation.
        done
            Operations of all threads.
        """


class Recognizing(ABC):
    """Objects at keys that end in no size."""

    @abstractmethod
    def recognizes(self, key: str, head: "Head") -> bool | None:
        """Return whether it wrote an object, from its first bytes; None if they do not show it.

        By default, an object below a key with a size, as a chunk of an array, has to hold bytes of
        that key.
        """


class Scanning(ABC):
    """Operations that read parts of an object."""

    @abstractmethod
    def scan(self, job: "Work") -> Scan | None:
        """Return the requests of each operation, if the size of the objects is known."""


class Paging(ABC):
    """Listings of several pages."""

    @abstractmethod
    def pages(self, job: "JobSpec") -> Pages:
        """Return the work of each function of a job that writes the keys, or an earlier one."""


class Conditional:
    """Conditional writes, which not all clients support."""

    most_bytes: int
    """Most bytes of a request."""


class RunsOnce:
    """A resumed run does not launch missing functions again."""

    not_again: str
    """The reason."""


class RunsCode(ABC):
    """A function in the invocation determines the operations."""

    environment: Mapping[str, str] = {}
    """Environment variables for workers that an executor starts on this machine."""

    @abstractmethod
    def run_code(self, runner: "InvocationRunner") -> str | None:
        """Run the code in an invocation; return why it ended early, if so."""


def environment_of(workload: Workload) -> Mapping[str, str]:
    """Return the environment variables that workers on this machine need for a workload."""
    return workload.environment if isinstance(workload, RunsCode) else {}


class ThroughLibrary(ABC):
    """A library moves the bytes in place of the client."""

    not_deployed: str
    """Reason for not running it in functions of a stack."""

    @abstractmethod
    def pieces(self, load: Load) -> tuple[int, int] | None:
        """Return the number of objects that it creates per array, and the total size."""

    @abstractmethod
    def check_library(self, load: Load) -> None:
        """Check that the library supports the load; called before anything starts.

        Raises
        ------
        UsageError
            If it does not.
        PluginError
            If it is not installed.
        """

    @abstractmethod
    def check_key(self, load: Load, key: str) -> None:
        """Check that it can read the object with this key.

        Raises
        ------
        UsageError
            If it cannot.
        """

    @abstractmethod
    def hidden_requests(
        self,
        load: Load,
        done: Iterable[tuple[OperationKind, int | None]],
    ) -> Counter[str]:
        """Return the smallest number of requests, by kind, that the library makes internally.

        Parameters
        ----------
        load
            Load of the job.
        done
            Kinds and sizes of the operations that are ok.
        """

    @abstractmethod
    def remove_files(self, run: "Run") -> int:
        """Remove a run's files in ``folder``; return the number of objects, or arrays.

        Raises
        ------
        ArchiveError
            If they cannot be removed.
        """


def pieces_of(workload: Workload, load: Load) -> tuple[int, int] | None:
    """Return the number of objects that a library creates per array, and their total size."""
    return workload.pieces(load) if isinstance(workload, ThroughLibrary) else None
