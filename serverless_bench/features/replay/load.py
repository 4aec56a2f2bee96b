"""Loads of a replay."""

from dataclasses import dataclass
from typing import Annotated

from serverless_bench.job.load import Load
from serverless_bench.job.types import Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayLoad(Load):
    """The operations of a function of a replay.

    Parameters
    ----------
    log
        The schedule, or in an invocation a part of that.
    speed
        Factor by which the replay is faster than the log.
    """

    log: str | None = None
    speed: Annotated[float, Limits(positive=True)] = 1.0

    @property
    def has_instants(self) -> bool:
        """Whether the schedule has come."""
        return self.log is not None
