"""Read existing objects and compare each byte with the bytes written."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from serverless_bench.job.keys import declared_size, listed
from serverless_bench.job.operations import OperationKind, OperationSpec
from serverless_bench.job.read_assignment import share
from serverless_bench.job.target import Stat
from serverless_bench.job.workload import PACED, Appearance, Load, Stream, Trait, Workload

if TYPE_CHECKING:
    from serverless_bench.job.spec import InvocationSpec


class Read(Workload):
    """One get for each key of the invocation, the full list ``read_times`` times.

    With ``load.split``, that many functions share each key: each reads the range given by
    ``read_assignment``.
    """

    settings = (*PACED, "key", "key_file", "read_times", "split")
    traits = Trait.DEALS_OBJECTS | Trait.READS_OBJECTS | Trait.VERIFIES | Trait.TAKES_EXISTING
    look = Appearance(hue="blue", past_tense="read")
    default_number = None
    source = "write"

    def kinds(self, load: Load) -> Mapping[OperationKind, float]:
        """Return gets, or range gets if functions share objects."""
        return {OperationKind.GET if load.split is None else OperationKind.GET_RANGE: 1.0}

    def reads(self, load: Load) -> bool:
        """Return True."""
        return True

    def prepare(self, invocation: "InvocationSpec", thread: int) -> Stream:
        """Yield a head for each key, if sizes have to be known in advance."""
        if invocation.transfer.stat is Stat.BEFORE:
            for line in tuple(dict.fromkeys(invocation.keys))[thread :: invocation.load.threads]:
                key, size = listed(line)
                yield OperationSpec(kind=OperationKind.HEAD, key=key, size=size)

    def operations(self, invocation: "InvocationSpec", thread: int = 0) -> Stream:
        """Yield the gets; the size of an object that sbench did not write is unknown."""
        keys, split = invocation.keys, invocation.load.split
        for index in range(thread, len(keys) * invocation.read_times, invocation.load.threads):
            line = keys[index % len(keys)]
            # The bytes of an object are known if its key declares their number.
            size = declared_size(line)
            key, whole = (line, size) if size else listed(line)
            if split is None:
                yield OperationSpec(kind=OperationKind.GET, key=key, size=size)
                continue
            if whole is None:
                raise ValueError(f"{key!r} cannot be shared: its size is unknown")
            offset, length = share(whole, invocation.index, split)
            if length:
                yield OperationSpec(
                    kind=OperationKind.GET_RANGE, key=key, size=size, offset=offset, length=length
                )


WORKLOAD = Read()
