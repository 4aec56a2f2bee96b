"""Threads that wait for the network on behalf of a deciding thread, and tolerate its outages."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from enum import IntEnum
from functools import partial
from itertools import count
from queue import Empty, PriorityQueue, Queue
from threading import Event, Thread
from typing import Final, TypeVar

from serverless_bench.base.clock import monotonic_ns
from serverless_bench.base.errors import AccessDenied, ExecutorError, OperationError, SbenchError
from serverless_bench.base.units import NS_PER_S
from serverless_bench.executors.base import RunProgress
from serverless_bench.rundir.record import Outcome

T = TypeVar("T")
E = TypeVar("E", bound=SbenchError)
Completions = Queue[Callable[[], Outcome | None]]
"""Completed tasks, as callbacks for their results.

Not a ``SimpleQueue``: if a signal handler takes longer than the rest of a timeout, that waits
without a limit (CPython 3.11 computes a negative one).
"""
_TIMEOUT_S: Final = 300.0
"""Maximum time without access to the control prefix before the driver gives up."""
_RENEW_NS: Final = NS_PER_S
"""Minimum interval between two attempts to reload credentials."""


class Urgency(IntEnum):
    """Order in which the tasks of a pool begin."""

    LISTING = 0
    RECORD = 1
    CLAIM = 2
    """A look why a function is silent: thousands may be due at once, and can wait."""


class ThreadPool:
    """A few threads, whose results are handled in the thread that submitted the tasks.

    Parameters
    ----------
    threads
        Number of threads.
    completions
        Queue for results; several pools may share it.
    """

    def __init__(self, threads: int, completions: Completions) -> None:
        self._tasks: PriorityQueue[tuple[int, int, Callable[[], None] | None]] = PriorityQueue()
        self._turn = count()
        self._completions = completions
        self._over = Event()
        self._threads = threads
        for _ in range(threads):
            # A daemon thread, because Ctrl-C must not wait for a store that does not answer.
            Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        while (task := self._tasks.get()[-1]) is not None and not self._over.is_set():
            task()

    def submit(
        self,
        task: Callable[[], T],
        on_result: Callable[[T], Outcome | None],
        expected: type[E],
        on_error: Callable[[E], Outcome | None],
        urgency: Urgency = Urgency.RECORD,
    ) -> None:
        """Run ``task`` in a thread.

        Parameters
        ----------
        task
            Waits for the network.
        on_result
            Called with its result, by ``handle_completions``.
        expected, on_error
            An expected error, and the callback for it. Any other error is raised by
            ``handle_completions``.
        urgency
            More urgent tasks that wait for a thread begin before it.
        """

        def run() -> None:
            try:
                completion = partial(on_result, task())
            except expected as exc:
                completion = partial(on_error, exc)
            except Exception as exc:  # noqa: BLE001 - a thread must not end in silence
                completion = partial(_raise, exc)
            self._completions.put(completion)

        self._tasks.put((urgency, next(self._turn), run))

    def shut_down(self) -> None:
        """Start no further tasks; running ones are not awaited."""
        self._over.set()
        for _ in range(self._threads):
            self._tasks.put((Urgency.LISTING, next(self._turn), None))


class PatientPool(ThreadPool):
    """Threads of a driver that access its control prefix.

    Time in which this machine was suspended does not count as silence, because no request was sent.

    Parameters
    ----------
    threads, completions
        See ``ThreadPool``.
    progress
        Receives a note when the store did not answer.
    renew
        Reloads credentials; called at most once a second.
    """

    def __init__(
        self,
        threads: int,
        completions: Completions,
        progress: RunProgress,
        renew: Callable[[], None],
    ) -> None:
        super().__init__(threads, completions)
        self._progress = progress
        self._renew = renew
        self._answered_ns = monotonic_ns()
        self._renewed_ns = 0

    def ask(
        self,
        task: Callable[[], T],
        on_result: Callable[[T], Outcome | None],
        on_error: Callable[[OperationError, bool], Outcome | None],
        urgency: Urgency = Urgency.RECORD,
    ) -> None:
        """Send a request to the store in a thread; it may fail temporarily.

        Parameters
        ----------
        task, on_result, urgency
            See ``submit``.
        on_error
            Called with an error of the store, and whether another request has succeeded since.
        """
        start_ns = monotonic_ns()

        def answered(result: T) -> Outcome | None:
            self._answered_ns = monotonic_ns()
            return on_result(result)

        def failed(error: OperationError) -> Outcome | None:
            return on_error(error, self._answered_ns > start_ns)

        self.submit(task, answered, OperationError, failed, urgency)

    def tolerate(self, error: OperationError) -> None:
        """Tolerate a failed request; credentials may be reloaded.

        Raises
        ------
        ExecutorError
            If the store has been unreachable for too long.
        """
        now_ns = monotonic_ns()
        if (now_ns - self._answered_ns) / NS_PER_S > _TIMEOUT_S:
            hint = "functions continue; sbench resume DIR collects their records"
            if isinstance(error, AccessDenied):
                hint = f"log in again; {hint}"
            raise ExecutorError(f"the control prefix cannot be read: {error}", hint=hint)
        self._progress.note(f"the control prefix could not be read for a while: {error}")
        if now_ns - self._renewed_ns > _RENEW_NS:
            self._renewed_ns = now_ns
            self._renew()


def handle_completions(completions: Completions, timeout_s: float) -> Iterator[Outcome]:
    """Handle the available results, and those that arrive in time."""
    with suppress(Empty):
        handle = completions.get(timeout=timeout_s)
        while True:
            if (outcome := handle()) is not None:
                yield outcome
            handle = completions.get_nowait()


def _raise(error: Exception) -> Outcome | None:
    if isinstance(error, SbenchError):
        raise error
    raise ExecutorError(f"{type(error).__name__}: {error}") from error
