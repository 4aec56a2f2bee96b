"""What an operation is given, and what it gives back."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from serverless_bench.job.operations import OperationSpec
from serverless_bench.job.transfer import Transfer
from serverless_bench.payload.verify import BadRanges
from serverless_bench.rundir.access import AccessRow
from serverless_bench.rundir.record import Usage
from serverless_bench.worker.retry import Retrier


class Performer:
    """Performs the operations of a workload that are no single request of a client."""

    def prepare(self, context: "OperationContext") -> None:
        """Make what an operation needs and what is not to be measured; before its clock starts."""

    def perform(self, context: "OperationContext") -> "OperationResult":
        """Do what the context's operation says.

        Raises
        ------
        OperationError
            If it failed.
        """
        raise NotImplementedError

    def compare(self, context: "OperationContext") -> None:
        """Compare what was read, after the clock has stopped.

        Raises
        ------
        OperationError
            If any byte is wrong, missing or too much.
        """


@dataclass(slots=True)
class InvocationContext:
    """What the operations of one invocation share."""

    sizes: dict[str, int] = field(default_factory=dict)
    """Bytes by key, as heads returned them: the size cache of a pre-stat."""
    performer: Performer | None = None
    """Of its workload, if that has one."""


@dataclass(slots=True)
class OperationContext:
    """One operation: what it is given, and what making and comparing its bytes takes.

    The second half is filled in while the operation runs, so that it is there too when the
    operation fails.
    """

    spec: OperationSpec
    transfer: Transfer
    retrier: Retrier
    """Makes the requests, and records them; of this operation alone."""
    invocation: InvocationContext = field(default_factory=InvocationContext)
    warmup: bool = False
    """Whether it comes before what reports count."""
    intended_ns: int | None = None
    """Monotonic instant at which it should have begun, in an open loop."""
    keep_data: bool = False
    """Whether a get returns the bytes that it read."""
    list_after: str = ""
    """Key after which a listing begins."""
    payload_ns: int = 0
    verified_bytes: int = 0
    bad: BadRanges = field(default_factory=BadRanges)
    usage: Usage | None = None
    """What a library used, where that was measured."""
    accesses: Sequence[AccessRow] = ()
    """Reads and writes of shared keys, at monotonic instants."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add_payload(self, duration_ns: int) -> None:
        """Count time that went into bytes; threads may call it at once."""
        with self._lock:
            self.payload_ns += duration_ns


# Not frozen: of operations that take 100 us each, a frozen one would cost half a percent.
@dataclass(slots=True)
class OperationResult:
    """What an operation returns, if it succeeds."""

    count: int = 1
    """Keys that it concerned."""
    size: int = 0
    """Bytes of the object, from a head."""
    keys: Sequence[str] = ()
    """From a listing."""
    more: bool = False
    """Whether a listing goes on after its last key."""
    data: bytearray | None = None
    """From a get with ``keep_data``."""


DONE: Final = OperationResult()
"""Of every operation that returns nothing but success: one for all costs none of them."""
