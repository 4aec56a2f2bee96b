"""Settings of the start barrier."""

from dataclasses import dataclass
from typing import Annotated

from serverless_bench.base.units import parse_duration, parse_share
from serverless_bench.job.meaning import Meaning, Options
from serverless_bench.job.types import Limits, check_types, wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class BarrierOptions(Options):
    """The functions that wait for each other.

    Parameters
    ----------
    barrier
        Fraction of the invocations that must have arrived before any starts; None for no barrier.
    barrier_timeout
        Time after which the barrier opens even if functions are missing.
    """

    barrier: Annotated[
        float | None,
        Meaning(
            "Start together once this share of functions is ready.",
            parse=parse_share,
            after="deadline",
        ),
    ] = None
    barrier_timeout: Annotated[
        float,
        Limits(positive=True),
        Meaning(
            "Time after which the barrier opens in any case.", parse=parse_duration, after="barrier"
        ),
    ] = 60.0

    def __post_init__(self) -> None:
        check_types(self)
        if self.barrier is not None and not 0 < self.barrier <= 1:
            raise wrong(
                "barrier",
                f"must be above 0 and at most 1, got {self.barrier:g}",
                hint="it is the fraction of functions to wait for, such as 0.95",
            )
