"""Which objects an invocation makes: a pure function of its specification.

So the driver can list them before anything is launched, and nobody has to send keys.
"""

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from serverless_bench.job.keys import declared_size, object_key
from serverless_bench.job.operations import OperationKind
from serverless_bench.job.sizes import parse_sizes

if TYPE_CHECKING:
    from serverless_bench.job.spec import InvocationSpec, JobSpec, Work


class Planned(NamedTuple):
    """An object that may be made."""

    key: str
    size: int
    """Bytes; the key says so, too."""


def planned_object(
    invocation: "InvocationSpec", number: int, *, size: int | None = None
) -> Planned:
    """Return the ``number``-th object of an invocation.

    Parameters
    ----------
    invocation
        Decides key and size, with its run, index and launch.
    number
        From 0.
    size
        Bytes, where the workload knows; None for what the specification says.

    Raises
    ------
    ValueError
        If the specification has neither a size nor a distribution of sizes.
    """
    load = invocation.load
    if size is None:
        size = invocation.size
    if size is None and load.sizes is not None:
        # Of its own, so that the size of one object does not depend on the others; and not
        # of the run, so that runs of one job that are compared move the same bytes.
        draw = random.Random(f"size/{invocation.seed}/{number}")  # noqa: S311
        size = parse_sizes(load.sizes).draw(draw)
    if size is None:
        raise ValueError(f"the {invocation.workload} workload needs a size")
    key = object_key(
        prefix=invocation.target.prefix,
        run_id=invocation.run_id,
        index=invocation.index,
        launch=invocation.launch,
        number=number,
        size=size,
        layout=load.layout,
        compressibility=load.compressibility,
        duplication=load.duplication,
    )
    return Planned(key, size)


def mean_size(work: "Work") -> float | None:
    """Return the mean size of the objects that are made; None if it is not said."""
    if work.size is not None or work.load.sizes is None:
        return work.size
    return parse_sizes(work.load.sizes).mean()


def mean_declared(keys: Sequence[str]) -> int | None:
    """Return the mean size of objects that say theirs; None if none does."""
    sizes = [size for key in keys if (size := declared_size(key)) is not None]
    return sum(sizes) // len(sizes) if sizes else None


def mean_bytes(job: "JobSpec", keys: Sequence[str]) -> float:
    """Return what an operation moves on average, as far as it is known."""
    load = job.load
    if keys:
        return sum(declared_size(key) or 0 for key in keys) / len(keys) / (load.split or 1)
    size = float(mean_size(job) or 0)
    if not load.is_drawn:
        return size
    kinds = job.declared.kinds(load)
    whole = kinds.get(OperationKind.PUT, 0.0) + kinds.get(OperationKind.GET, 0.0)
    ranges = kinds.get(OperationKind.GET_RANGE, 0.0)
    moved = whole * size + ranges * min(load.range_size, size)
    return moved / sum(kinds.values())
