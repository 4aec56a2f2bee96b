"""Workloads with faults that an executor has to survive, in each fourth invocation.

They are registered as ``fault-raise``, ``fault-exit``, ``fault-kill``, ``fault-oom`` and
``fault-hang`` through entry points, like plugins of other packages.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from serverless_bench.job.abilities import Continuing
from serverless_bench.job.operations import OperationSpec
from serverless_bench.job.spec import InvocationSpec
from serverless_bench.job.workload import Stream, Trait, Workload
from serverless_bench.workloads.write import Write

FAULTY_EVERY, FAULTY_INDEX = 4, 1
"""Faulty invocations are 1, 5, 9, ...: the second of each four."""
_OOM_BYTES: Final = 1 << 30
"""Amount after which the fault kills the process itself, if memory is not limited."""
_STEP_BYTES: Final = 1 << 24


class FaultWorkload(Workload, Continuing):
    """A workload whose invocations 1, 5, 9, ... misbehave at their first launch.

    If objects have a size, it writes them, and a faulty invocation writes all but the last of its
    objects first; otherwise there are no operations.

    Parameters
    ----------
    misbehave
        The fault; it does not return.
    """

    settings = Write.settings
    traits = Trait.CREATES_OBJECTS

    def __init__(self, misbehave: Callable[[], object]) -> None:
        self._misbehave = misbehave

    def operations(self, invocation: InvocationSpec, thread: int = 0) -> Stream:
        """Yield all puts: the driver also calls this, to determine the keys."""
        if invocation.size is not None:
            yield from Write().operations(invocation, thread)

    def rounds(self, invocation: InvocationSpec, thread: int) -> Iterator[Stream]:
        """Yield the rounds to perform; a faulty invocation never reaches the last put."""
        faulty = invocation.index % FAULTY_EVERY == FAULTY_INDEX and not invocation.launch
        while True:
            puts = list(self.operations(invocation, thread))
            yield self._trapped(puts) if faulty else iter(puts)

    def _trapped(self, puts: Sequence[OperationSpec]) -> Stream:
        yield from puts[:-1]
        self._misbehave()


def _raise() -> None:
    raise RuntimeError("planned failure")


def _fill_memory() -> None:
    taken = [b"\1" * _STEP_BYTES for _ in range(_OOM_BYTES // _STEP_BYTES)]
    del taken
    signal.raise_signal(signal.SIGKILL)


RAISE = FaultWorkload(_raise)
EXIT = FaultWorkload(partial(os._exit, 3))
KILL = FaultWorkload(partial(signal.raise_signal, signal.SIGKILL))
OOM = FaultWorkload(_fill_memory)
HANG = FaultWorkload(threading.Event().wait)
