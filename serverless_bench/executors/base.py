"""The interface between the driver and the executors that run functions."""

from collections import Counter
from collections.abc import (
    Callable,
    Collection,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, TypeVar, runtime_checkable

from serverless_bench.base.clock import WakingClock
from serverless_bench.base.errors import ExecutorError
from serverless_bench.base.process import allow_open_files
from serverless_bench.job.spec import InvocationSpec, JobSpec
from serverless_bench.worker.board import DURATION_OVER, Board, Totals

if TYPE_CHECKING:
    # A job is checked with the declaration of its executor, before anything runs.
    from serverless_bench.rundir.record import InvocationRecord, Lost, Outcome
    from serverless_bench.rundir.schema import Stopped

B = TypeVar("B", bound=Board)
_SPARE_FILES = 32
"""For the driver, about fifteen files, and for a program that imports sbench."""
OnOutcome = Callable[["Outcome"], None]
_CAUSE_CHARACTERS: Final = 500
GRACE_S = 5.0
"""Grace period after the deadline, at which an invocation stops by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorInfo:
    """Declaration of an executor: all properties that the driver's behaviour depends on.

    The defaults suit an executor that runs functions in other processes and returns their records
    itself.
    """

    shares_memory: bool = False
    """Whether functions run on this machine and write to a board of ``RunProgress``: the driver
    sees their progress and can stop them early."""
    in_process: bool = False
    """Whether functions run sequentially in the process of the driver."""
    per_cpu: int | None = None
    """Default number of concurrent functions per CPU of this machine; None for all functions
    of a job."""
    remote: bool = False
    """Whether functions leave their records below a control prefix, where the driver finds them."""
    locate: str = ""
    """``module:attribute`` of a function that completes the location of a job's objects and finds
    that of its functions, as ``driver.location.locate`` returns them; empty if functions run here.
    It is called with the settings and the target."""
    polled: bool = False
    """Whether workers poll for events: a function waits for a worker, the driver launches nothing,
    and two workers may try to claim the same event."""
    writes_files: bool = True
    """Whether functions may write files, in the folder of a load."""
    invokes: bool = False
    """Whether it invokes deployed functions, which the user names."""
    billed: bool = False
    """Whether the functions belong to a service with a separate endpoint that bills memory and
    time, like AWS Lambda."""
    settings: frozenset[str] = frozenset()
    """Settings of executors, ``Meaning.by_executor``, that apply to it."""
    examine: str = ""
    """``module:attribute`` of a function that yields a ``Finding`` for each place where functions
    would run, for ``sbench doctor --executor NAME``. It is called with the settings that the user
    gave, by name."""
    try_out: str = ""
    """``module:attribute`` of a function that invokes a deployed function once and yields findings,
    for ``sbench doctor``. It is called with the name, the region, and the targets for objects and
    records of jobs, or None to skip those checks."""


def ignore(*_: object) -> None:
    """Ignore an event."""


@dataclass(slots=True)
class RunProgress:
    """Progress of a run, updated by the executor, for custom displays.

    Examples
    --------
    >>> live = sbench.RunProgress()
    >>> again = sbench.run_job(writing, live=live)
    >>> live.started == writing.number
    True
    """

    started: int = 0
    """Invocations taken by a worker; for remote functions, launched invocations."""
    boards: list[Board] = field(default_factory=list)
    """Memory shared with the functions, one board for each use of the executor; empty if functions
    share none with the driver."""
    stop_level: int = 0
    """How functions have been told to stop, as in ``Board.stop``."""
    stopped: "Stopped | None" = None
    """Signal that ended the run for all functions: no further function is started."""
    grace_s: float = 0.0
    """Time that remote functions need after Ctrl-C to stop and deliver their records."""
    notes: list[str] = field(default_factory=list)
    """Messages for the user about the launch."""
    on_note: Callable[[str], object] = ignore
    """Called with each new message, by a display."""
    ring: Callable[[], object] = ignore
    """Rings the bell of a terminal; called once, when a person has to act."""
    printed: int = 0
    """Messages that the log has printed."""
    in_flight: int = 0
    """Invocations in flight, for remote functions."""
    concurrency: int | None = None
    """Maximum number of concurrent functions, as determined by the executor; None for the job's."""
    limit: int | None = None
    """Maximum number of invocations in flight, if lower than the concurrency; set to limit
    costs."""
    prices: Any = None
    """Table of prices for the cost so far; None for the built-in ones."""
    requests: Counter[str] = field(default_factory=Counter)
    """Billed requests of the driver below the control prefix, by kind."""
    clock: WakingClock = field(default_factory=WakingClock)
    """Clock of the driver, which detects that this machine was suspended."""

    def totals(self) -> Totals | None:
        """Return the live totals of all functions; None if they do not report while they run."""
        totals = [total for board in self.boards if (total := board.totals()) is not None]
        return reduce(add, totals) if totals else None

    def note(self, note: str, *, act: bool = False) -> None:
        """Add a message for the user, without repetition; ``act`` if a person has to act."""
        if note in self.notes:
            return
        self.notes.append(note)
        self.on_note(note)
        if act:
            ring, self.ring = self.ring, ignore
            ring()

    def unprinted(self) -> list[str]:
        """Return the messages that the log has not printed."""
        return self.notes[self.printed :]

    def begin(self, board: B) -> B:
        """Let functions use a board from now on, and return it."""
        self.boards.append(board)
        board.stop(self.stop_level)
        return board

    def stop(self, level: int = DURATION_OVER) -> bool:
        """Stop functions that have a duration, each after the current operation.

        Parameters
        ----------
        level
            As in ``Board.stop``; by default, other functions continue.

        Returns
        -------
        bool
            Whether any function can be stopped.
        """
        self.stop_level = level
        for board in self.boards:
            board.stop(level)
        return bool(self.boards)


class Executor(Protocol):
    """A map that may lose items, and reports the loss."""

    def map(
        self, invocations: Iterable[InvocationSpec], progress: RunProgress
    ) -> "Generator[Outcome, None, None]":
        """Yield an outcome per invocation, in the order of completion.

        It never raises because of a single invocation: one that raises has a record with an error,
        and one that dies or is silent past its deadline is ``Lost``. Closing the iterator early
        stops all running functions.

        Raises
        ------
        ExecutorError
            If no invocation could be started.
        """


@runtime_checkable
class Recovering(Protocol):
    """An executor whose functions continue after the death of the driver."""

    def recover(
        self,
        invocations: Iterable[InvocationSpec],
        progress: RunProgress,
        since_ns: int,
        known: Collection[tuple[int, str]],
    ) -> "Generator[Outcome, None, None]":
        """Yield an outcome for each launch that another driver may have made.

        A launch that has not started is revoked; a running one is awaited.

        Parameters
        ----------
        invocations
            The attempts.
        progress
            See ``map``.
        since_ns
            Time of the earliest possible launch.
        known
            Index and delivery of every saved record.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """Results of an executor's checks before the first function of a run."""

    concurrency: int
    """Maximum number of concurrent functions, at most the number in the job."""
    limits: Mapping[str, Any] = field(default_factory=dict)
    """Limits that determined it, for ``run.json``."""
    probe: Mapping[str, Any] | None = None
    """Results of the probe of the functions, for ``run.json``; None without a probe."""
    left: tuple[str, ...] = ()
    """Keys below the job's prefix that the probe could not delete, for the ledger."""


class NotReadyError(ExecutorError):
    """The probe showed that a function cannot do what the job needs.

    Parameters
    ----------
    cause
        The error, with the function and the reason.
    readiness
        Results of the checks: probed functions are billed in any case.
    """

    def __init__(self, cause: ExecutorError, readiness: Readiness) -> None:
        super().__init__(str(cause), hint=cause.hint)
        self.readiness = readiness


@runtime_checkable
class Preparing(Protocol):
    """An executor that checks before a run whether its functions can run the job."""

    def prepare(self, run_id: str, keys: Sequence[str], progress: RunProgress) -> Readiness:
        """Return the results that the run needs; launches no invocations.

        Raises
        ------
        ExecutorError
            If a function cannot do what the job needs; ``NotReadyError`` if the probe shows it.
        """


class ExecutorFactory(Protocol):
    """An entry in the table of executors."""

    info: ClassVar[ExecutorInfo]

    def __call__(self, job: JobSpec) -> Executor:
        """Return an executor for one job; nothing is started before ``map``."""


@contextmanager
def keys_for_children() -> Iterator[Mapping[str, str]]:
    """Provide the driver's credentials to processes started within the block.

    Yields
    ------
    Mapping[str, str]
        Environment variables for them; empty if they inherit all that they need.
    """
    # A job is checked without these: they load sockets and signatures.
    from serverless_bench.base.parent_keys import serving_keys
    from serverless_bench.clients.environment import lasting_keys

    if lasting_keys():
        yield {}
        return
    with serving_keys(_keys_of_the_moment) as environment:
        yield environment


def _keys_of_the_moment() -> "Mapping[str, str | None] | None":
    # botocore is imported only if a child process asks.
    from serverless_bench.clients.aws_credentials import keys_of_the_moment

    return keys_of_the_moment()


def allow_files_of(job: JobSpec, processes: int) -> None:
    """Raise the limit of open files to the need of a driver, or of a function that inherits it.

    Raises
    ------
    ExecutorError
        If this machine does not allow that number.
    """
    allow_open_files(max(processes, job.load.threads * job.transfer.connections) + _SPARE_FILES)


def read_record(
    data: bytes | Mapping[str, Any], index: int, launch: int
) -> "InvocationRecord | Lost":
    """Return the record sent by a worker, or a loss if it is invalid."""
    # Local workers import this module without these libraries.
    import orjson

    from serverless_bench.rundir.received import check_received, record_of
    from serverless_bench.rundir.record import Lost

    try:
        record = record_of(orjson.loads(data) if isinstance(data, bytes) else data)
        check_received(record, index, launch)
    except ValueError as exc:
        cause = f"unreadable record: {type(exc).__name__}: {exc}"[:_CAUSE_CHARACTERS]
        return Lost(index=index, launch=launch, cause=cause)
    return record
