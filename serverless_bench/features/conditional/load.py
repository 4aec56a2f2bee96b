"""Loads of writes to shared keys."""

from dataclasses import dataclass
from typing import Annotated, Literal

from serverless_bench.base.units import parse_duration
from serverless_bench.job.meaning import Meaning
from serverless_bench.job.types import Limits
from serverless_bench.job.workload import Load


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionalLoad(Load):
    """The operations of a function on shared keys.

    Parameters
    ----------
    pattern
        The kind of contention: increment, claim or append.
    backoff
        Longest wait after the first conflict of a commit; doubled after each further conflict.

    Examples
    --------
    >>> load = sbench.ConditionalLoad(pattern="claim")
    >>> load.backoff
    0.01
    """

    pattern: Annotated[
        str,
        Literal["increment", "claim", "append"],
        Meaning("Kind of contention between functions."),
    ] = "increment"
    backoff: Annotated[
        float,
        Limits(0, hint="it is in seconds; 0 retries at once after a conflict"),
        Meaning("Longest wait after a conflict.", parse=parse_duration),
    ] = 0.01
