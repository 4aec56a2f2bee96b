"""Threads that wait for the network, so that one thread can decide."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import TypeVar

from serverless_bench.errors import ExecutorError, SbenchError
from serverless_bench.rundir.record import Outcome

T = TypeVar("T")
E = TypeVar("E", bound=SbenchError)
Completions = SimpleQueue[Callable[[], Outcome | None]]
"""What threads have finished, as what is to be done about it."""


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
        self._tasks: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._completions = completions
        self._over = Event()
        self._threads = threads
        for _ in range(threads):
            # A daemon: Ctrl-C must not wait for a store that does not answer.
            Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        while True:
            task = self._tasks.get()
            if self._over.is_set():
                return
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
            self._tasks.put(lambda: None)


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
