"""Interface for launching invocations, with a rate limit and the state of each attempt."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from serverless_bench.base.errors import SbenchError
from serverless_bench.job.spec import InvocationSpec

_NEVER_NS: Final = 1 << 62


class NotLaunchedError(SbenchError):
    """A batch was rejected for too long; it may still have been accepted once.

    Parameters
    ----------
    message
        Reason of the last rejection.
    refusals
        Number of rejections.
    """

    def __init__(self, message: str, refusals: int = 1) -> None:
        super().__init__(message)
        self.refusals = refusals


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Report of a function that did not run its event."""

    index: int
    launch: int
    cause: str
    permanent: bool = False
    """Whether the next launch would be rejected, too."""


@dataclass(slots=True, kw_only=True)
class Pending:
    """An attempt in flight."""

    spec: InvocationSpec
    submitted_ns: int
    late_ns: int = 0
    """Latest start time of the last event sent for it; 0 if none was sent."""
    check_ns: int = _NEVER_NS
    """Time of the next check whether it has started, or why it is silent."""
    refusals: int = 0
    began: bool = False
    busy: bool = False
    """Whether a thread is checking it."""
    problem: str = ""
    """Reason why it was not launched."""
    failures: int = 0
    """Number of failures to read or create its claim."""


class Launcher:
    """Passes invocations to a service that runs functions, without trusting its reports.

    Parameters
    ----------
    most
        Maximum number of invocations in flight.
    """

    batch: int = 1
    """Maximum number of invocations per ``launch``."""
    threads: int = 1
    """Maximum number of concurrent calls of ``launch``."""

    def __init__(self, most: int) -> None:
        self.most = most

    def admit(self, wanted: int, in_flight: int) -> int:
        """Return how many of ``wanted`` are launched now, with ``in_flight`` in progress."""
        return min(wanted, self.most - in_flight)

    def launch(self, events: Callable[[], Iterable[InvocationSpec]]) -> int:
        """Launch a batch and return the number of rejections before.

        Parameters
        ----------
        events
            Creates its invocations, again for each attempt: the latest start time depends on it.

        Raises
        ------
        NotLaunchedError
            If it was rejected for too long.
        ExecutorError
            If no such launch can succeed.
        """
        raise NotImplementedError

    def refusals(self) -> Iterable[Refusal]:
        """Return the reports since the last call about events that were not run."""
        return ()

    def close(self) -> None:
        """Close the launcher; launched invocations continue."""
