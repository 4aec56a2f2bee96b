"""Threads that wait for the network, so that one thread can decide, and that bear its silence."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Final, TypeVar

from serverless_bench.clock import monotonic_ns
from serverless_bench.errors import AccessDenied, ExecutorError, OperationError, SbenchError
from serverless_bench.executors.base import RunProgress
from serverless_bench.rundir.record import Outcome
from serverless_bench.units import NS_PER_S

T = TypeVar("T")
E = TypeVar("E", bound=SbenchError)
Completions = SimpleQueue[Callable[[], Outcome | None]]
"""What threads have finished, as what is to be done about it."""
_TIMEOUT_S: Final = 300.0
"""How long the control prefix may be out of reach before the driver gives up."""
_RENEW_NS: Final = NS_PER_S
"""Least time between two looks for other credentials."""


class ThreadPool:
    """A few threads, whose results are handled in the thread that submitted the tasks.

    Parameters
    ----------
    threads
        How many.
    completions
        Where results go; several pools may share it.
    """

    def __init__(self, threads: int, completions: Completions) -> None:
        self._tasks: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._completions = completions
        self._over = Event()
        self._threads = threads
        for _ in range(threads):
            # A daemon: Ctrl-C must not wait for a store that does not answer.
            Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None and not self._over.is_set():
            task()

    def submit(
        self,
        task: Callable[[], T],
        on_result: Callable[[T], Outcome | None],
        expected: type[E],
        on_error: Callable[[E], Outcome | None],
    ) -> None:
        """Have a thread do ``task``.

        Parameters
        ----------
        task
            Waits for the network.
        on_result
            Called with its result, by ``handle_completions``.
        expected, on_error
            An error that it may raise, and what is called with that. Every other one is
            raised by ``handle_completions``.
        """

        def run() -> None:
            try:
                completion = partial(on_result, task())
            except expected as exc:
                completion = partial(on_error, exc)
            except Exception as exc:  # noqa: BLE001 - a thread must not end in silence
                completion = partial(_raise, exc)
            self._completions.put(completion)

        self._tasks.put(run)

    def shut_down(self) -> None:
        """Start nothing more; what is under way is not waited for."""
        self._over.set()
        for _ in range(self._threads):
            self._tasks.put(None)


class PatientPool(ThreadPool):
    """Threads of one driver that ask for its control prefix.

    Time in which this machine was suspended does not count as silence: nothing was asked then.

    Parameters
    ----------
    threads, completions
        As in ``ThreadPool``.
    progress
        Is told when the store did not answer.
    renew
        Looks for credentials again; called once a second at most.
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
    ) -> None:
        """Have a thread ask the store, which may refuse for a while.

        Parameters
        ----------
        task, on_result
            As in ``submit``.
        on_error
            Called with an error of the store, and whether it has answered another request since.
        """
        asked_ns = monotonic_ns()

        def answered(result: T) -> Outcome | None:
            self._answered_ns = monotonic_ns()
            return on_result(result)

        def failed(error: OperationError) -> Outcome | None:
            return on_error(error, self._answered_ns > asked_ns)

        self.submit(task, answered, OperationError, failed)

    def tolerate(self, error: OperationError) -> None:
        """Tolerate a request that failed; credentials may be renewed.

        Raises
        ------
        ExecutorError
            If the store has been out of reach for too long.
        """
        now_ns = monotonic_ns()
        if (now_ns - self._answered_ns) / NS_PER_S > _TIMEOUT_S:
            hint = "functions go on by themselves; sbench resume DIR finds their records"
            if isinstance(error, AccessDenied):
                hint = f"log in again; {hint}"
            raise ExecutorError(f"the control prefix cannot be read: {error}", hint=hint)
        self._progress.note(f"the control prefix could not be read for a while: {error}")
        if now_ns - self._renewed_ns > _RENEW_NS:
            self._renewed_ns = now_ns
            self._renew()


def handle_completions(completions: Completions, timeout_s: float) -> Iterator[Outcome]:
    """Handle the results that are there, or come in time."""
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
