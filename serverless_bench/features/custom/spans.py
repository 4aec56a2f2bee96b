"""Measured blocks of a user function."""

from dataclasses import replace
from typing import Any

from serverless_bench.base.clock import monotonic_ns
from serverless_bench.base.errors import Corrupt
from serverless_bench.base.units import MIB
from serverless_bench.job.operations import OperationKind
from serverless_bench.job.target import Verify
from serverless_bench.payload.shaped import content_of
from serverless_bench.payload.verify import MAX_BAD_RANGES, RangeSink
from serverless_bench.rundir.record import BadRange, OperationRow
from serverless_bench.worker.operation import MeasuredOperation


class Span:
    """A measured block of the function, recorded as one operation.

    Attributes
    ----------
    bytes
        Bytes transferred in the block, as reported by the function. At least the verified bytes are
        counted.
    """

    def __init__(self, name: str, size: int) -> None:
        self.name = name
        self.bytes = size
        self.error: str | None = None
        self.start_ns = monotonic_ns()
        self.end_ns: int | None = None
        self.read: set[str] = set()
        """Keys read through the context inside the block: these reads are separate operations."""
        self.payload_ns = 0
        self.verified_bytes = 0
        self.bad_bytes = 0
        self.bad_count = 0
        self.bad_ranges: list[BadRange] = []

    def verify(self, key: str, offset: int, data: Any) -> int:
        """Compare bytes read by the block, as ``FunctionContext.verify`` does."""
        view = memoryview(data).cast("B")
        sink = RangeSink(
            content_of(key), size=None, offset=int(offset), length=len(view), verify=Verify.FULL
        )
        for start in range(0, len(view), MIB):
            sink.write_at(start, view[start : start + MIB])
        self.verified_bytes += sink.verified_bytes
        self.bad_bytes += sink.bad.bytes
        self.bad_count += sink.bad.count
        room = MAX_BAD_RANGES - len(self.bad_ranges)
        self.bad_ranges += [replace(bad, key=key) for bad in sink.bad.listed[:room]]
        if self.end_ns is None:
            self.payload_ns += sink.payload_ns
        return sink.bad.bytes

    def measured(self, origin_ns: int, *, warmup: bool) -> MeasuredOperation:
        """Return the records; ``origin_ns`` is the start of the monotonic clock."""
        end_ns = self.start_ns if self.end_ns is None else self.end_ns
        # JSON does not accept NumPy integers.
        moved = max(int(self.bytes), self.verified_bytes + self.bad_bytes)
        operation: OperationRow = (
            OperationKind.CALL,
            self.name,
            None,
            origin_ns + self.start_ns,
            origin_ns + end_ns,
            None,
            None,
            moved,
            self.verified_bytes,
            self.bad_bytes,
            self.bad_count,
            self.payload_ns,
            self.error or (Corrupt.code if self.bad_count else None),
            warmup,
            0,
            0,
            1,
            None,
        )
        return MeasuredOperation(operation, (), ((end_ns - self.start_ns, moved),), self.bad_ranges)
