"""Read existing objects and compare every byte with what was written."""

from collections.abc import Iterator
from dataclasses import replace

from serverless_bench.job.keys import declared_size
from serverless_bench.job.operations import OperationKind, OperationSpec
from serverless_bench.job.read_assignment import share
from serverless_bench.job.spec import InvocationSpec
from serverless_bench.job.transfer import Stat
from serverless_bench.workloads import Stream, Workload


class Read(Workload):
    """One get for each key of the invocation, the whole list ``repeats`` times.

    With ``load.split`` each key is shared by that many functions: each reads its range,
    which ``read_assignment`` decides.
    """

    def prepare(self, invocation: InvocationSpec, thread: int) -> Stream:
        """Yield a head for each key, where sizes are to be known before."""
        if invocation.transfer.stat is Stat.BEFORE:
            keys = tuple(dict.fromkeys(invocation.keys))
            for key in keys[thread :: invocation.load.threads]:
                size = declared_size(key)
                yield OperationSpec(kind=OperationKind.HEAD, key=key, size=size)

    def operations(self, invocation: InvocationSpec, thread: int = 0) -> Stream:
        """Yield the gets; an object that sbench did not write has no known size."""
        keys = invocation.keys * invocation.repeats
        for index in range(thread, len(keys), invocation.load.threads):
            whole = OperationSpec(
                kind=OperationKind.GET,
                key=keys[index],
                size=declared_size(keys[index]),
            )
            yield from _share(whole, invocation)


def _share(whole: OperationSpec, invocation: InvocationSpec) -> Iterator[OperationSpec]:
    """Yield the operation, or the range of it that is this function's."""
    split = invocation.load.split
    if split is None:
        yield whole
        return
    if whole.size is None:
        raise ValueError(f"{whole.key!r} cannot be shared: its size is unknown")
    offset, length = share(whole.size, invocation.index, split)
    if length:
        yield replace(whole, kind=OperationKind.GET_RANGE, offset=offset, length=length)


WORKLOAD = Read()
