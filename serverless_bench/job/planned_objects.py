"""Which objects an invocation makes: a pure function of its specification.

So the driver can list them before anything is launched, and nobody has to send keys.
"""

import random
from typing import TYPE_CHECKING, NamedTuple

from serverless_bench.job.keys import object_key
from serverless_bench.job.sizes import parse_sizes

if TYPE_CHECKING:
    from serverless_bench.job.spec import InvocationSpec, Work


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
