"""Loads of user functions."""

from dataclasses import dataclass, replace
from typing import Annotated

from serverless_bench.job.meaning import Meaning
from serverless_bench.job.workload import Load


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionLoad(Load):
    """The objects and the code of a user function.

    Parameters
    ----------
    code
        The function, as packed by ``run_job``.
    """

    code: Annotated[
        str | None,
        Meaning(
            "The function of `sbench custom`, packed by `features.custom.pickling.pack`.",
            is_argument=True,
        ),
    ] = None

    @property
    def saved(self) -> Load:
        """The load without the function."""
        return replace(self, code=None)
