"""Threads that wait for the network, so that one thread can decide."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import TypeVar

from serverless_bench.errors import ExecutorError, SbenchError
from serverless_bench.rundir.record import Outcome

T = TypeVar("T")
E = TypeVar("E", bound=SbenchError)
Heard = SimpleQueue[Callable[[], Iterable[Outcome]]]
"""What threads have come back with, and what is to be done about it."""


class Crew:
    """A few threads; whoever asked them something is told in a thread of its own.

    Parameters
    ----------
    threads
        How many.
    heard
        Where the answers go; several crews may share it.
    """

    def __init__(self, threads: int, heard: Heard) -> None:
        self._tasks: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._heard = heard
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

    def ask(
        self,
        task: Callable[[], T],
        then: Callable[[T], Iterable[Outcome]],
        expected: type[E],
        otherwise: Callable[[E], Iterable[Outcome]],
    ) -> None:
        """Have a thread do ``task``.

        Parameters
        ----------
        task
            Waits for the network.
        then
            Called with its result, by ``hear``.
        expected, otherwise
            An error that it may raise, and what is called with that. Every other one is
            raised by ``hear``.
        """

        def run() -> None:
            try:
                result = task()
            except expected as exc:
                self._heard.put(partial(otherwise, exc))
            except SbenchError as exc:
                self._heard.put(partial(_raise, exc))
            except Exception as exc:  # noqa: BLE001 - a thread must not end in silence
                self._heard.put(partial(_raise, ExecutorError(f"{type(exc).__name__}: {exc}")))
            else:
                self._heard.put(partial(then, result))

        self._tasks.put(run)

    def dismiss(self) -> None:
        """Start nothing more; what is under way is not waited for."""
        self._over.set()
        for _ in range(self._threads):
            self._tasks.put(lambda: None)


def hear(heard: Heard, timeout_s: float) -> Iterator[Outcome]:
    """Do what is to be done about the answers that are there, or come in time."""
    with suppress(Empty):
        told = heard.get(timeout=timeout_s)
        while True:
            yield from told()
            told = heard.get_nowait()


def _raise(error: SbenchError) -> Iterable[Outcome]:
    raise error
