"""Loads of user functions."""

from dataclasses import dataclass, replace

from serverless_bench.job.load import Load


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionLoad(Load):
    """The objects and the code of a user function.

    Parameters
    ----------
    code
        The function, as packed by ``run_job``.
    """

    code: str | None = None

    @property
    def saved(self) -> Load:
        """The load without the function."""
        return replace(self, code=None)
