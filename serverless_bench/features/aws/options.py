"""Settings of jobs that run deployed functions."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Literal

from serverless_bench.job.defaults import REMOTE
from serverless_bench.job.meaning import Meaning, Options, read_names

if TYPE_CHECKING:
    from serverless_bench.job.spec import JobSpec

_SHOWN: Final = 3
"""Number of functions in a message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionOptions(Options):
    """Deployed functions, and their checks.

    Parameters
    ----------
    stack
        Stack with the functions and the buckets.
    memory
        Memory that each function must have, according to the probe; None for any.
    arch
        CPU architecture that each must have, likewise: arm64 or x86_64.
    function
        Names of the deployed functions, for executors that invoke such functions.
    function_region
        Region of these functions; None for the region of the bucket.
    probe
        Whether to check each of them, or of the workers of a Dask cluster, before the launch: its
        environment, and its permissions for the job.
    """

    stack: Annotated[
        str | None,
        Meaning(
            "Stack of `sam deploy`, with its functions and buckets.",
            section=REMOTE,
            decides=True,
            by_executor=True,
        ),
    ] = None
    memory: Annotated[
        int | None,
        Meaning(
            "Memory of a function in MB: selects the stack's functions, and is checked for"
            " others; determines the cost.",
            section=REMOTE,
            by_executor=True,
        ),
    ] = None
    arch: Annotated[
        str | None,
        Literal["arm64", "x86_64"],
        Meaning(
            "Architecture of the functions; used like the memory.", section=REMOTE, by_executor=True
        ),
    ] = None
    function: Annotated[
        tuple[str, ...],
        Meaning(
            "Deployed function to invoke; several divide the load.",
            read=read_names,
            section=REMOTE,
            by_executor=True,
        ),
    ] = ()
    function_region: Annotated[
        str | None,
        Meaning(
            "Region of the functions; the bucket's by default.", section=REMOTE, by_executor=True
        ),
    ] = None
    probe: Annotated[
        bool,
        Meaning(
            "Check each function, or Dask worker, before the run.",
            section=REMOTE,
            by_executor=True,
        ),
    ] = True

    def places(self) -> Iterator[str]:
        """Yield the functions."""
        if self.function:
            others = len(self.function) - _SHOWN
            names = ", ".join(map(repr, self.function[:_SHOWN]))
            yield f"the functions {names}{f' and {others} more' if others > 0 else ''}"


def region_of_functions(job: "JobSpec") -> str:
    """Return the region of the deployed functions."""
    return FunctionOptions.from_work(job).function_region or job.target.region
