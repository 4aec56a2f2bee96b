"""Patience with a store that does not answer for a while."""

from collections.abc import Callable
from typing import Final

from serverless_bench.clock import monotonic_ns
from serverless_bench.errors import AccessDenied, ExecutorError, OperationError
from serverless_bench.executors.base import RunProgress
from serverless_bench.units import NS_PER_S

_RENEW_NS: Final = NS_PER_S
"""Least time between two looks for other credentials."""


class Patience:
    """Patience of one driver with its control prefix.

    Time in which this machine was suspended does not count: nothing was asked then.

    Parameters
    ----------
    progress
        Is told when the store did not answer.
    timeout_s
        How long the control prefix may be out of reach before the driver gives up.
    """

    def __init__(self, progress: RunProgress, timeout_s: float) -> None:
        self._progress = progress
        self._timeout_s = timeout_s
        self._answered_ns = monotonic_ns()
        self._renewed_ns = 0

    def answered(self) -> None:
        """Note that the store has answered a request."""
        self._answered_ns = monotonic_ns()

    def answered_since(self, asked_ns: int) -> bool:
        """Tell whether the store has answered any request since an instant."""
        return self._answered_ns > asked_ns

    def tolerate(self, error: OperationError, renew: Callable[[], None]) -> None:
        """Tolerate a request that failed; credentials may be renewed.

        Parameters
        ----------
        error
            What the request raised.
        renew
            Looks for credentials again; called once a second at most.

        Raises
        ------
        ExecutorError
            If the store has been out of reach for too long.
        """
        now_ns = monotonic_ns()
        if (now_ns - self._answered_ns) / NS_PER_S > self._timeout_s:
            hint = "functions go on by themselves; sbench resume DIR finds their records"
            if isinstance(error, AccessDenied):
                hint = f"log in again; {hint}"
            raise ExecutorError(f"the control prefix cannot be read: {error}", hint=hint)
        note = f"the control prefix could not be read for a while: {error}"
        if note not in self._progress.notes:
            self._progress.notes.append(note)
        if now_ns - self._renewed_ns > _RENEW_NS:
            self._renewed_ns = now_ns
            renew()
