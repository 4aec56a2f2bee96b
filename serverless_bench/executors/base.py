"""What the driver needs of something that runs functions."""

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
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, runtime_checkable

from serverless_bench.aws.child_keys import inherit_keys, keys_of_the_moment
from serverless_bench.clock import WakingClock
from serverless_bench.errors import ExecutorError
from serverless_bench.job.spec import InvocationSpec, JobSpec
from serverless_bench.process import allow_open_files
from serverless_bench.process.parent_keys import serving_keys
from serverless_bench.rundir.record import InvocationRecord, Lost, Outcome
from serverless_bench.worker.live_board import BoardTotals, LiveBoard

if TYPE_CHECKING:
    from serverless_bench.aws.cost.prices import Prices

_SPARE_FILES = 32
"""Of a driver itself, some fifteen, and of whoever imports us."""
OnOutcome = Callable[[Outcome], None]
_CAUSE_CHARACTERS: Final = 500
GRACE_S = 5.0
"""An invocation stops by itself at its deadline; this much later it is given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorInfo:
    """Declaration of an executor: everything that the driver decides by its executor.

    The defaults suit an executor whose functions are other processes, and which brings their
    records back by itself.
    """

    shares_memory: bool = False
    """Whether functions run on this machine and write on a board of ``RunProgress``: the driver
    sees their figures while they run, and can end them early."""
    in_process: bool = False
    """Whether functions run in the process of the driver, one after the other."""
    per_processor: int | None = None
    """Functions at once per processor of this machine, if the user does not say; None for all
    functions of a job."""
    remote: bool = False
    """Whether functions leave their records below a control prefix, where the driver finds
    them."""
    polled: bool = False
    """Whether workers look for events by themselves: a function waits for a worker, nothing is
    launched, and two workers may try to claim the same event."""
    writes_files: bool = True
    """Whether functions may write files, in the folder that a load names."""
    invokes: bool = False
    """Whether it invokes deployed functions, which the user names."""
    billed: bool = False
    """Whether the functions belong to a service that has an endpoint of its own, and bills each
    by memory and time, as AWS Lambda does."""
    settings: frozenset[str] = frozenset()
    """Settings that mean something to it, of ``driver.remote.NOT_FOR_ALL``."""
    examine: str = ""
    """``module:attribute`` of a function that yields a ``Finding`` for each place where functions
    would run, for ``sbench doctor --executor NAME``: called with those of its settings that the
    user gave, by name."""
    try_out: str = ""
    """``module:attribute`` of a function that invokes a deployed function once and yields
    findings, for ``sbench doctor``: called with its name, its region, and where jobs would have
    their objects and their records, or None to try nothing there."""


@dataclass(slots=True)
class RunProgress:
    """What is going on right now, for a display of yours; written by the executor.

    Examples
    --------
    >>> live = sbench.RunProgress()
    >>> again = sbench.run_job(writing, live=live)
    >>> live.started == writing.number
    True
    """

    started: int = 0
    """Invocations that a worker has taken; remote ones that were launched."""
    boards: list[LiveBoard] = field(default_factory=list)
    """What functions tell while they run, one board for each time that the executor was used;
    none where they share no memory with the driver."""
    stopped: bool = False
    """Whether functions with a duration have been told to end."""
    notes: list[str] = field(default_factory=list)
    """What the user should know about the launch itself."""
    in_flight: int = 0
    """Invocations in flight, where functions are remote."""
    concurrency: int | None = None
    """Functions that may be alive at once, as the executor found out; None for the job's."""
    limit: int | None = None
    """Invocations that may be in flight at once, if that is less than the concurrency; set by
    whoever pays for them."""
    prices: "Prices | None" = None
    """For what it has cost so far; None for those that come with sbench."""
    requests: Counter[str] = field(default_factory=Counter)
    """Billed requests of the driver below the control prefix, by kind."""
    clock: WakingClock = field(default_factory=WakingClock)
    """The driver's clock, which notices that this machine was suspended."""

    def totals(self) -> BoardTotals | None:
        """Return what functions have done so far; None where they do not tell while they run."""
        found = [board.totals() for board in self.boards]
        return reduce(add, found) if found else None

    def note(self, note: str) -> None:
        """Tell the user something, once."""
        if note not in self.notes:
            self.notes.append(note)

    def begin(self, board: LiveBoard) -> LiveBoard:
        """Have functions write on a board from now on, and return it."""
        self.boards.append(board)
        if self.stopped:
            board.stop()
        return board

    def stop(self) -> bool:
        """End functions that have a duration as if it had passed, each after its operation.

        Returns
        -------
        bool
            Whether any is told so: not those that are remote.
        """
        self.stopped = True
        for board in self.boards:
            board.stop()
        return bool(self.boards)


class Executor(Protocol):
    """A map that may lose items, and says so."""

    def map(
        self, invocations: Iterable[InvocationSpec], progress: RunProgress
    ) -> Generator[Outcome, None, None]:
        """Yield one outcome per invocation, in the order in which they finish.

        It never raises for one invocation: one that raises has a record with an error,
        one that dies or is silent past its deadline is ``Lost``. Closing the iterator
        early ends whatever still runs.

        Raises
        ------
        ExecutorError
            If no invocation could be started at all.
        """


@runtime_checkable
class Recovering(Protocol):
    """An executor whose functions go on when the driver has died."""

    def recover(
        self,
        invocations: Iterable[InvocationSpec],
        progress: RunProgress,
        since_ns: int,
        known: Collection[tuple[int, str]],
    ) -> Generator[Outcome, None, None]:
        """Yield an outcome for each launch that another driver may have made.

        A launch that has not begun is taken back, one that runs is waited for.

        Parameters
        ----------
        invocations
            The attempts.
        progress
            As in ``map``.
        since_ns
            When the earliest may have been launched.
        known
            Index and delivery of every record that is saved already.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """What an executor found out before the first function of a run."""

    concurrency: int
    """Functions that may be alive at once: no more than the job asks for."""
    limits: Mapping[str, Any] = field(default_factory=dict)
    """What decided that, for ``run.json``."""
    probe: Mapping[str, Any] | None = None
    """What the functions said of themselves, for ``run.json``; None if they were not asked."""
    left: tuple[str, ...] = ()
    """Keys of objects that asking them has left below the job's prefix, for the ledger."""


class NotReadyError(ExecutorError):
    """The functions were asked, and one of them cannot do what the job needs.

    Parameters
    ----------
    cause
        Says which, and why.
    readiness
        What was found out: those that were asked are billed, whatever they said.
    """

    def __init__(self, cause: ExecutorError, readiness: Readiness) -> None:
        super().__init__(str(cause), hint=cause.hint)
        self.readiness = readiness


@runtime_checkable
class Preparing(Protocol):
    """An executor that finds out before a run whether, and how, its functions can do it."""

    def prepare(self, run_id: str, keys: Sequence[str], progress: RunProgress) -> Readiness:
        """Return what the run has to know; nothing is launched.

        Raises
        ------
        ExecutorError
            If a function cannot do what the job needs; ``NotReadyError`` if it says so itself.
        """


class ExecutorFactory(Protocol):
    """What stands in the table of executors."""

    info: ClassVar[ExecutorInfo]

    def __call__(self, job: JobSpec) -> Executor:
        """Return an executor for one job; nothing starts before ``map``."""


@contextmanager
def keys_for_children() -> Iterator[Mapping[str, str]]:
    """Give the driver's keys to processes that it starts within the block.

    Yields
    ------
    Mapping[str, str]
        Environment variables for them; empty where they inherit all that they need.
    """
    if inherit_keys():
        yield {}
        return
    with serving_keys(keys_of_the_moment) as environment:
        yield environment


def allow_files_of(job: JobSpec, processes: int) -> None:
    """Have as many open files allowed as a driver needs, or a function, which inherits the limit.

    Raises
    ------
    ExecutorError
        If this machine does not allow so many.
    """
    each = job.load.threads * job.transfer.connections
    allow_open_files(max(processes, each) + _SPARE_FILES)


def read_record(
    data: bytes | Mapping[str, Any], index: int, launch: int
) -> InvocationRecord | Lost:
    """Return the record that a worker has sent, or a loss if it is none."""
    # The workers of this machine load this module, too.
    import orjson  # noqa: PLC0415

    from serverless_bench.rundir.received import check_received, record_of  # noqa: PLC0415

    try:
        found = record_of(orjson.loads(data) if isinstance(data, bytes) else data)
        check_received(found, index, launch)
    except ValueError as exc:
        cause = f"unreadable record: {type(exc).__name__}: {exc}"[:_CAUSE_CHARACTERS]
        return Lost(index=index, launch=launch, cause=cause)
    return found
