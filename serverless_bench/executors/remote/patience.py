"""Threads that ask a store, and patience where it does not answer for a while."""

from collections.abc import Callable
from typing import Final, TypeVar

from serverless_bench.clock import monotonic_ns
from serverless_bench.errors import AccessDenied, ExecutorError, OperationError
from serverless_bench.executors.base import RunProgress
from serverless_bench.executors.remote.thread_pool import Completions, ThreadPool
from serverless_bench.rundir.record import Outcome
from serverless_bench.units import NS_PER_S

T = TypeVar("T")
_TIMEOUT_S: Final = 300.0
"""How long the control prefix may be out of reach before the driver gives up."""
_RENEW_NS: Final = NS_PER_S
"""Least time between two looks for other credentials."""


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
        note = f"the control prefix could not be read for a while: {error}"
        if note not in self._progress.notes:
            self._progress.notes.append(note)
        if now_ns - self._renewed_ns > _RENEW_NS:
            self._renewed_ns = now_ns
            self._renew()
