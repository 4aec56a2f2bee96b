"""Loads of a replay."""

from dataclasses import dataclass
from typing import Annotated

from serverless_bench.base.units import parse_duration
from serverless_bench.job.meaning import Meaning
from serverless_bench.job.types import Limits
from serverless_bench.job.workload import Load


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

    log: Annotated[
        str | None,
        Meaning("Log to replay; from Python, the schedule that is made of it.", is_argument=True),
    ] = None
    speed: Annotated[
        float,
        Limits(positive=True),
        Meaning("Factor by which a replay is faster than the log."),
    ] = 1.0

    @property
    def has_instants(self) -> bool:
        """Whether the schedule has come."""
        return self.log is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySettings(ReplayLoad):
    """Settings of a replay: those of the load, and of the way from a log to the schedule."""

    max_gap: Annotated[
        float | str | None,
        Meaning("Cap idle gaps in the log at this length.", parse=parse_duration),
    ] = None
    secret_file: Annotated[
        str | None,
        Meaning("Secret for the pseudonyms of keys; a random one by default.", path="file"),
    ] = None
