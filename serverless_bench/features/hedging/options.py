"""The setting of hedged reads."""

import re
from dataclasses import dataclass
from typing import Annotated

from serverless_bench.base.units import parse_duration
from serverless_bench.job.meaning import Meaning, Options
from serverless_bench.job.types import check_types, wrong
from serverless_bench.job.workload import Trait


def read_hedge(text: str) -> float | str:
    """Return the value that a text stands for."""
    return parse_duration(text) if text.strip()[:1].isdigit() else text


def percentile_of(hedge: str) -> float:
    """Return the percentile of a value that is a text.

    Raises
    ------
    UsageError
        If it is not a percentile.
    """
    match = re.fullmatch(r"p([1-9][0-9]?(?:\.[0-9])?)", hedge)
    if match is None:
        raise wrong(
            "hedge",
            f"{hedge!r} is neither a time nor a percentile",
            hint="write it as in 50ms, p95 or p99.9",
        )
    return float(match[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class HedgingOptions(Options):
    """The time of second requests.

    Parameters
    ----------
    hedge
        Time after which an unanswered read is requested a second time, in seconds, or a
        percentile of the function's earlier times such as p95; None to request it once.
    """

    hedge: Annotated[
        str | float | None,
        Meaning(
            "Request a read again if it is unanswered after a time, or after a percentile of the"
            " function's earlier times, as in 50ms or p95; see"
            ' "Hedging" in the documentation.',
            own=True,
            parse=read_hedge,
            section="Transfer",
            after="min-split-size",
            trait=Trait.READS_OBJECTS,
        ),
    ] = None

    def __post_init__(self) -> None:
        check_types(self)
        if isinstance(self.hedge, str):
            percentile_of(self.hedge)
