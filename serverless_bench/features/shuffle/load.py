"""Loads of a shuffle."""

from dataclasses import dataclass
from typing import Annotated, Literal

from serverless_bench.base.units import parse_duration
from serverless_bench.job.meaning import Meaning
from serverless_bench.job.types import Limits
from serverless_bench.job.workload import Load

Partitions = Literal["objects", "ranges"]
Reduce = Literal["barrier", "eager"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShuffleLoad(Load):
    """The operations of a function of a shuffle.

    Parameters
    ----------
    mappers
        Functions that write a partition for each reducer.
    reducers
        Functions that read a partition of each mapper.
    total
        Bytes of all partitions.
    partitions
        objects, or ranges of one object per mapper.
    reduce
        barrier: reducers read when all partitions exist; eager: each as soon as it exists.
    patience
        Seconds without a new partition after which a reducer stops waiting.
    poll
        Seconds between two listings of a waiting reducer.

    Examples
    --------
    >>> load = sbench.ShuffleLoad(mappers=2, reducers=3, total=6 * MIB)
    >>> load.partitions, load.threads
    ('objects', 1)
    """

    mappers: Annotated[int, Limits(1, 500_000), Meaning("Functions that write.")] = 4
    reducers: Annotated[int, Limits(1, 500_000), Meaning("Functions that read.")] = 4
    total: Annotated[int | None, Limits(1)] = None
    partitions: Annotated[
        str, Partitions, Meaning("Partitions are objects, or ranges of one object per mapper.")
    ] = "objects"
    reduce: Annotated[
        str,
        Reduce,
        Meaning("Reducers read when all partitions exist, or each as soon as it exists."),
    ] = "barrier"
    patience: Annotated[
        float,
        Limits(positive=True),
        Meaning(
            "Time without a new partition after which a reducer stops waiting.",
            parse=parse_duration,
        ),
    ] = 300.0
    poll: Annotated[
        float,
        Limits(positive=True),
        Meaning("Time between two listings of a waiting reducer.", parse=parse_duration),
    ] = 0.5
