"""Workloads that do what an executor has to survive; every fourth invocation does it.

They are registered as ``fault-raise``, ``fault-kill`` and ``fault-hang`` through entry
points, like any plugin of another package.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator

from serverless_bench.spec import InvocationSpec, OperationSpec

FAULTY_EVERY, FAULTY_INDEX = 4, 1
"""Invocations 1, 5, 9, ...: of four, the second."""


class Fault:
    """A workload without operations whose invocations 1, 5, 9, ... misbehave.

    Parameters
    ----------
    misbehave
        What happens there.
    """

    creates_objects = False

    def __init__(self, misbehave: Callable[[], None]) -> None:
        self._misbehave = misbehave

    def operations(self, invocation: InvocationSpec) -> Iterator[OperationSpec]:
        """Yield nothing, or never get there."""
        if invocation.index % FAULTY_EVERY == FAULTY_INDEX:
            self._misbehave()
        yield from ()


def _raise() -> None:
    raise RuntimeError("planned failure")


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _hang() -> None:
    threading.Event().wait()


RAISE = Fault(_raise)
KILL = Fault(_kill)
HANG = Fault(_hang)
