"""Objects that an invocation creates: a pure function of its specification.

The driver can therefore list them before it launches anything, and no keys have to be sent.
"""

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from serverless_bench.job.keys import listed, object_key
from serverless_bench.job.operations import OperationKind

if TYPE_CHECKING:
    from serverless_bench.job.spec import InvocationSpec, JobSpec, Work


class Planned(NamedTuple):
    """An object that may be created."""

    key: str
    size: int
    """Size in bytes, as declared by the key."""


def planned_object(
    invocation: "InvocationSpec", number: int, *, size: int | None = None
) -> Planned:
    """Return the ``number``-th object of an invocation.

    Parameters
    ----------
    invocation
        Determines key and size, by its run, index and launch.
    number
        Number of the object, from 0.
    size
        Size in bytes, if the workload decides it; None to use the specification.

    Raises
    ------
    ValueError
        If the specification has neither a size nor a distribution of sizes.
    """
    load = invocation.load
    if size is None:
        size = invocation.size
    if size is None and load.sizes is not None:
        from serverless_bench.job.sizes import parse_sizes

        # The generator depends on the object, so that sizes do not depend on other objects, but not
        # on the run, so that compared runs of a job transfer the same bytes.
        size = parse_sizes(load.sizes).draw(random.Random(f"size/{invocation.seed}/{number}"))
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
    """Return the mean size of the objects that are created; None if unknown."""
    if work.size is not None or work.load.sizes is None:
        return work.size
    from serverless_bench.job.sizes import parse_sizes

    return parse_sizes(work.load.sizes).mean()


def mean_declared(keys: Sequence[str]) -> int | None:
    """Return the mean of the sizes that keys or their list declare; None without any."""
    sizes = [size for _, size in map(listed, keys) if size is not None]
    return sum(sizes) // len(sizes) if sizes else None


def mean_bytes(job: "JobSpec", keys: Sequence[str]) -> float:
    """Return the mean number of bytes that an operation transfers, as far as known."""
    load = job.load
    if keys:
        return sum(listed(key)[1] or 0 for key in keys) / len(keys) / (load.split or 1)
    size = float(mean_size(job) or 0)
    if not load.is_drawn:
        return size
    kinds = job.declared.kinds(load)
    whole = kinds.get(OperationKind.PUT, 0.0) + kinds.get(OperationKind.GET, 0.0)
    ranges = kinds.get(OperationKind.GET_RANGE, 0.0)
    moved = whole * size + ranges * min(load.range_size, size)
    return moved / sum(kinds.values())
