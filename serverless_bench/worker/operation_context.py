"""Input and result of an operation."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from serverless_bench.job.operations import OperationKind, OperationSpec
from serverless_bench.job.target import Transfer
from serverless_bench.payload.keystream import Keystream
from serverless_bench.payload.shaped import content_of
from serverless_bench.payload.verify import BadRanges
from serverless_bench.rundir.record import Usage
from serverless_bench.rundir.rows import AccessRow
from serverless_bench.worker.retry import Patience, Retrier


class Performer:
    """Performs the operations of a workload that need more than a single request of a client."""

    def prepare(self, context: "OperationContext") -> None:
        """Prepare the unmeasured data of an operation, before its clock starts."""

    def content(self, key: str, generation: int) -> Keystream:
        """Return the bytes of an object, which a put writes and a get verifies."""
        return content_of(key, generation)

    def perform(self, context: "OperationContext") -> "OperationResult":
        """Perform the context's operation.

        Raises
        ------
        OperationError
            If it failed.
        """
        raise NotImplementedError

    def compare(self, context: "OperationContext") -> None:
        """Compare the bytes read, after the clock has stopped.

        Raises
        ------
        OperationError
            If any byte is wrong, missing or too much.
        """


@dataclass(slots=True)
class InvocationContext:
    """State shared by the operations of an invocation."""

    sizes: dict[str, int] = field(default_factory=dict)
    """Size in bytes by key, from head requests: the size cache of a pre-stat."""
    performer: Performer | None = None
    """Performer of the workload; None if the workload needs none."""
    hedging: dict[OperationKind, Patience] = field(default_factory=dict)
    """By kind of operation; empty if none is hedged."""


@dataclass(slots=True)
class OperationContext:
    """One operation: its input, and the time and results of generating and comparing bytes.

    The second half is filled in while the operation runs, so that it is available if the operation
    fails.
    """

    spec: OperationSpec
    transfer: Transfer
    retrier: Retrier
    """Makes the requests of this operation, and records them."""
    invocation: InvocationContext = field(default_factory=InvocationContext)
    warmup: bool = False
    """Whether the operation is a warm-up, which reports leave out."""
    intended_ns: int | None = None
    """Monotonic instant at which it was due, in an open loop."""
    keep_data: bool = False
    """Whether a get returns the bytes that it read."""
    list_after: str = ""
    """Key after which a listing starts."""
    payload_ns: int = 0
    verified_bytes: int = 0
    bad: BadRanges = field(default_factory=BadRanges)
    usage: Usage | None = None
    """Usage of a library, where that was measured."""
    accesses: Sequence[AccessRow] = ()
    """Reads and writes of shared keys, at monotonic instants."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add_payload(self, duration_ns: int) -> None:
        """Count time spent on bytes; threads may call it at the same time."""
        with self._lock:
            self.payload_ns += duration_ns


# Not frozen: for operations of 100 us, a frozen class would add half a percent.
@dataclass(slots=True)
class OperationResult:
    """The result of an operation without an error."""

    count: int = 1
    """Number of keys concerned."""
    size: int = 0
    """Size of the object in bytes, from a head."""
    keys: Sequence[str] = ()
    """Keys from a listing."""
    more: bool = False
    """Whether a listing continues after its last key."""
    data: bytearray | None = None
    """Bytes from a get with ``keep_data``."""


DONE: Final = OperationResult()
"""Result of operations that return only success: a shared instance, which costs no time."""
