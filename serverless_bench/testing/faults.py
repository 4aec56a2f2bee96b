"""Workloads that do what an executor has to survive; every fourth invocation does it.

They are registered as ``fault-raise``, ``fault-exit``, ``fault-kill``, ``fault-oom`` and
``fault-hang`` through entry points, like any plugin of another package.
"""

import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from serverless_bench.job.operations import OperationKind, OperationSpec
from serverless_bench.job.spec import InvocationSpec
from serverless_bench.units import MIB
from serverless_bench.workloads import Stream, Workload
from serverless_bench.workloads.write import Write

FAULTY_EVERY, FAULTY_INDEX = 4, 1
"""Invocations 1, 5, 9, ...: of four, the second."""
_UNNUMBERED: Final = -1
_OOM_BYTES: Final = 1024 * MIB
"""Where nothing limits memory, the fault ends here as the kernel would end it."""
_STEP_BYTES: Final = 16 * MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trap(OperationSpec):
    """An operation that is never performed.

    The driver asks for operations, too, to know their keys, and has to survive that. So
    the trap springs when the body gives it its number.
    """

    misbehave: Callable[[], object]

    def __post_init__(self) -> None:
        if self.index != _UNNUMBERED:
            self.misbehave()


class FaultWorkload(Workload):
    """A workload whose invocations 1, 5, 9, ... misbehave at their first launch.

    With a size for objects it writes them, and what misbehaves has written all of its own
    but the last; without one it moves nothing.

    Parameters
    ----------
    misbehave
        What happens there; it does not return.
    """

    creates_objects = True

    def __init__(self, misbehave: Callable[[], object]) -> None:
        self._misbehave = misbehave

    def operations(self, invocation: InvocationSpec, thread: int = 0) -> Stream:
        """Yield the puts, or never get to the last one."""
        sized = invocation.object_bytes is not None
        puts = list(Write().operations(invocation, thread)) if sized else []
        yield from puts[:-1]
        if invocation.index % FAULTY_EVERY != FAULTY_INDEX or invocation.launch:
            yield from puts[-1:]
            return
        yield _Trap(
            index=_UNNUMBERED,
            kind=OperationKind.PUT if sized else OperationKind.GET,
            key=puts[-1].key if sized else "",
            size=invocation.object_bytes,
            misbehave=self._misbehave,
        )


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
