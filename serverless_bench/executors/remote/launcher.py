"""What hands invocations over, and how fast it may."""

from collections.abc import Iterable
from typing import Protocol

from serverless_bench.errors import SbenchError
from serverless_bench.job.spec import InvocationSpec


class NotLaunchedError(SbenchError):
    """A batch was refused for too long; it may still have been accepted once.

    Parameters
    ----------
    message
        Why.
    refusals
        How often.
    """

    def __init__(self, message: str, refusals: int) -> None:
        super().__init__(message)
        self.refusals = refusals


class Launcher(Protocol):
    """Hands invocations over to whatever runs functions, and is believed about nothing."""

    batch: int
    """How many invocations one ``launch`` takes at most."""
    threads: int
    """How many calls of ``launch`` may be under way at once."""

    def room(self, in_flight: int) -> int:
        """Return how many more may be launched now, with ``in_flight`` under way."""

    def take(self, count: int) -> None:
        """Note that ``count`` of them are going to be launched."""

    def launch(self, invocations: Iterable[InvocationSpec]) -> int:
        """Hand over a batch and return how often it was refused before.

        Parameters
        ----------
        invocations
            Iterated over once per attempt: how late each may begin counts from then.

        Raises
        ------
        NotLaunchedError
            If it was refused for too long.
        ExecutorError
            If nothing can ever be launched like this.
        """

    def close(self) -> None:
        """End; what was handed over goes on."""
