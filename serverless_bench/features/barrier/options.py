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
    gate
        Fraction of the invocations that must have arrived before any starts; None for no gate.
    gate_timeout
        Time after which the gate opens even if functions are missing.
    """

    gate: Annotated[
        float | None,
        Meaning(
            "Start together once this share of functions is ready.",
            parse=parse_share,
            after="deadline",
        ),
    ] = None
    gate_timeout: Annotated[
        float,
        Limits(positive=True),
        Meaning("Time after which the gate opens in any case.", parse=parse_duration, after="gate"),
    ] = 60.0

    def __post_init__(self) -> None:
        check_types(self)
        if self.gate is not None and not 0 < self.gate <= 1:
            raise wrong(
                "gate",
                f"must be above 0 and at most 1, got {self.gate:g}",
                hint="it is the fraction of functions to wait for, such as 0.95",
            )
