"""What hands invocations over, how fast it may, and what is known of each afterwards."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from serverless_bench.errors import SbenchError
from serverless_bench.job.spec import InvocationSpec

_NEVER_NS: Final = 1 << 62


class NotLaunchedError(SbenchError):
    """A batch was refused for too long; it may still have been accepted once.

    Parameters
    ----------
    message
        Why.
    refusals
        How often.
    """

    def __init__(self, message: str, refusals: int = 1) -> None:
        super().__init__(message)
        self.refusals = refusals


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """What a function says that did not run its event."""

    index: int
    launch: int
    cause: str
    permanent: bool = False
    """Whether the next launch would be refused, too."""


@dataclass(slots=True, kw_only=True)
class Pending:
    """One attempt in flight."""

    spec: InvocationSpec
    submitted_ns: int
    late_ns: int = 0
    """When the latest event that was sent for it may begin no more; 0 if none was sent."""
    check_ns: int = _NEVER_NS
    """When to check whether it has begun, or why it is silent."""
    refusals: int = 0
    began: bool = False
    busy: bool = False
    """A thread is checking on it."""
    problem: str = ""
    """Why it was not launched."""
    failures: int = 0
    """Times that its claim could not be looked at, or made."""


class Launcher:
    """Hands invocations over to whatever runs functions, and is believed about nothing.

    Parameters
    ----------
    most
        Invocations that may be in flight at once.
    """

    batch: int = 1
    """How many invocations one ``launch`` takes at most."""
    threads: int = 1
    """How many calls of ``launch`` may be under way at once."""

    def __init__(self, most: int) -> None:
        self.most = most

    def admit(self, wanted: int, in_flight: int) -> int:
        """Return how many of ``wanted`` more are launched now, with ``in_flight`` under way."""
        return min(wanted, self.most - in_flight)

    def launch(self, events: Callable[[], Iterable[InvocationSpec]]) -> int:
        """Hand over a batch and return how often it was refused before.

        Parameters
        ----------
        events
            Makes its invocations, anew for each attempt: how late each may begin counts from then.

        Raises
        ------
        NotLaunchedError
            If it was refused for too long.
        ExecutorError
            If nothing can ever be launched like this.
        """
        raise NotImplementedError

    def refusals(self) -> Iterable[Refusal]:
        """Return what functions have said since the last call about events that did not run."""
        return ()

    def close(self) -> None:
        """End; what was handed over goes on."""
