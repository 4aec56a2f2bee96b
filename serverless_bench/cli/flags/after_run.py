"""Flags of features that ask for a further result of a run."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from serverless_bench.base.plugins import Registry

if TYPE_CHECKING:
    from serverless_bench.job.spec import JobSpec
    from serverless_bench.metrics.summary import Summary
    from serverless_bench.rundir.run import Run


class AfterRun(Protocol):
    """A flag, named like the plugin, with hyphens."""

    kind: type
    """Type of its values."""
    flag: Callable[..., Any]
    """Decorator that declares it."""

    def check(self, value: Any, job: "JobSpec") -> None:
        """Check before the run that the result can be made."""

    def make(
        self, value: Any, run: "Run", keys: Sequence[str], summary: "Summary", *, is_whole: bool
    ) -> str:
        """Make the result, and return a line for the user, or an empty text.

        Parameters
        ----------
        value
            Value of the flag.
        run
            The run.
        keys
            Keys of the objects that it reads.
        summary
            Results of the run.
        is_whole
            Whether the run ended by itself.
        """


AFTER_RUN: Final = Registry[AfterRun]("after_run", {}, kind="result of a run")
