"""Move an object or a range of it, in one piece or in parts, over one or more connections."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final

from serverless_bench.base.clock import monotonic_ns
from serverless_bench.base.errors import BadResponse, Corrupt, OperationError
from serverless_bench.clients.base import Sink
from serverless_bench.job.operations import OperationKind
from serverless_bench.payload.keystream import Keystream, ReadableAt
from serverless_bench.payload.shaped import content_of
from serverless_bench.payload.verify import RangeSink, absent
from serverless_bench.rundir.record import FoundBytes
from serverless_bench.worker.cpu_time import thread_counted
from serverless_bench.worker.in_memory import MemorySink
from serverless_bench.worker.meter import Meter
from serverless_bench.worker.operation_context import DONE, OperationContext, OperationResult

_NO_SUCH_RANGE: Final = 416
"""Status of a request for a range after the object's end."""


@dataclass(slots=True)
class RangeSource:
    """A range of a keystream as the body of a request."""

    _keystream: ReadableAt
    _offset: int
    size: int
    _context: OperationContext

    def readinto_at(self, offset: int, buffer: memoryview) -> None:
        """Fill ``buffer`` with the body's bytes from ``offset`` on."""
        start_ns = monotonic_ns()
        self._keystream.readinto_at(self._offset + offset, buffer)
        self._context.add_payload(monotonic_ns() - start_ns)


def put_object(context: OperationContext) -> OperationResult:
    """Write an object.

    Raises
    ------
    OperationError
        If it could not be written; a multipart upload is aborted in that case.
    """
    operation, transfer, retrier = context.spec, context.transfer, context.retrier
    client, key, size = retrier.client, operation.key, operation.size
    if size is None:
        raise ValueError(f"cannot write {key!r} without a size")
    keystream = _content(context, key)
    # A library that splits uploads itself gets complete objects.
    parts = "multipart" in client.info.operations
    part_bytes = transfer.part_length(operation.kind, size) if parts else None
    if part_bytes is None:
        source = RangeSource(keystream, 0, size, context)
        retrier.run("put", partial(client.put, key, source))
        return DONE
    upload_id = retrier.run("create_multipart", partial(client.create_multipart, key))
    count = -(-size // part_bytes)
    etags = [""] * count

    def upload(index: int) -> None:
        offset = index * part_bytes
        source = RangeSource(keystream, offset, min(part_bytes, size - offset), context)
        call = partial(client.upload_part, key, upload_id, index + 1, source)
        etags[index] = retrier.run("upload_part", call, part=index + 1)

    try:
        in_parallel(upload, count, transfer.connections)
        retrier.run("complete_multipart", partial(client.complete_multipart, key, upload_id, etags))
    except OperationError:
        # If that fails too, the attempt is recorded; this error is the one to report, and `sbench
        # clean` looks for uploads that are still open.
        with suppress(OperationError):
            retrier.run("abort_multipart", partial(client.abort_multipart, key, upload_id))
        raise
    return DONE


def get_object(context: OperationContext) -> OperationResult:
    """Read an object, or the range of it that the operation requests, and compare it.

    Raises
    ------
    Corrupt
        If the bytes differ from those written, or their number does.
    OperationError
        If it could not be read.
    """
    spec, transfer, retrier = context.spec, context.transfer, context.retrier
    key, first, size, step = spec.key, spec.offset, spec.size, spec.length
    keystream = None
    if size is not None:
        keystream = _content(context, spec.content or key)
    else:
        # sbench did not write it; an earlier head may have stored its size.
        size = context.invocation.sizes.get(key)
    length = size if step is None else step
    if length and "range" in retrier.client.info.operations:
        step = transfer.part_length(OperationKind.GET, length) or step
    kept = MemorySink() if context.keep_data else None
    # Small objects that are not hedged do without another call.
    fetch = retrier.client.get if retrier.hedging is None else retrier.get

    def get_whole(meter: Meter) -> RangeSink:
        sink = RangeSink(keystream, size, first, length, transfer.verify)
        into = sink if kept is None else _KeepingSink(sink, kept, 0, length)
        fetch(key, into, meter)
        return sink

    if step is None or length is None:
        _take(context, retrier.run("get", get_whole))
    else:
        sink_of = partial(RangeSink, keystream, size, verify=transfer.verify)
        _Ranges(context, sink_of, kept, length, step).get(size)
    if context.bad.count:
        raise Corrupt(f"{key} differs from the written object")
    return DONE if kept is None else OperationResult(data=kept.data)


def _content(context: OperationContext, key: str) -> Keystream:
    """Return the bytes of an object; most workloads have no performer that defines them."""
    performer, generation = context.invocation.performer, context.spec.generation
    return content_of(key, generation) if performer is None else performer.content(key, generation)


def _take(context: OperationContext, sink: RangeSink) -> None:
    """Add a finished sink's counts to the context; it receives no further bytes."""
    sink.finish()
    context.payload_ns += sink.payload_ns
    context.verified_bytes += sink.verified_bytes
    if sink.bad.count:
        context.bad.extend(sink.bad)


@dataclass(slots=True)
class _KeepingSink:
    """Passes the body of a response, which starts at ``begin`` of ``kept``, to two sinks.

    Bytes beyond ``length``, if that is known, are wrong. They are not kept, because they may never
    end.
    """

    sink: Sink
    kept: Sink
    begin: int
    length: int | None

    def write_at(self, offset: int, data: memoryview) -> None:
        self.sink.write_at(offset, data)
        wanted = data if self.length is None else data[: max(0, self.length - offset)]
        if wanted:
            self.kept.write_at(self.begin + offset, wanted)


class _Ranges:
    """An object, or a range of it, as the ranges to request: numbered from 0.

    Parameters
    ----------
    context
        Context of the operation.
    sink_of
        Returns the sink of a range, by offset in the object and length.
    kept
        Receives all bytes; None to keep none.
    length
        Total length of all ranges in bytes.
    step
        Length of each range in bytes.
    """

    def __init__(
        self,
        context: OperationContext,
        sink_of: Callable[[int, int], RangeSink],
        kept: MemorySink | None,
        length: int,
        step: int,
    ) -> None:
        self._context = context
        self._retrier = context.retrier
        self._sink_of = sink_of
        self._kept = kept
        self._first = context.spec.offset
        self._length = length
        self._step = step
        self._count = -(-length // step) or 1
        self._sinks: list[RangeSink | None] = [None] * self._count
        self._reported: set[int] = set()
        """Sizes of the object reported by responses."""

    def get(self, size: int | None) -> None:
        """Get all ranges; ``size`` is the object's size, if known."""
        try:
            in_parallel(self._fetch, self._count, self._context.transfer.connections)
        finally:
            for sink in self._sinks:
                if sink is not None:
                    _take(self._context, sink)
        self._check_size(size)

    def _fetch(self, index: int) -> None:
        """Get one of the ranges."""
        offset = self._first + index * self._step
        wanted = min(self._step, self._first + self._length - offset)
        call = partial(self._try, offset=offset, length=wanted)
        try:
            sink = self._retrier.run("get", call, part=index + 1 if self._count > 1 else 0)
        except OperationError as exc:
            if exc.status != _NO_SUCH_RANGE:
                raise
            # The object ends before this range: record that none of it arrived.
            sink = self._sink_of(offset, wanted)
        self._sinks[index] = sink

    def _try(self, meter: Meter, offset: int, length: int) -> RangeSink:
        sink = self._sink_of(offset, length)
        into: Sink = sink
        if self._kept is not None:
            into = _KeepingSink(sink, self._kept, offset - self._first, length)
        key = self._context.spec.key
        meter = self._retrier.get(key, into, meter, offset=offset, length=length)
        _check_range(meter, offset, length)
        if meter.total_bytes is not None:
            self._reported.add(meter.total_bytes)
        return sink

    def _check_size(self, size: int | None) -> None:
        """Note a size other than the expected one, as reported by responses.

        The requested ranges end at the expected end of the object, so no sink sees extra bytes, or
        bytes missing beyond its range. A reader of other ranges also reports the extra range but
        counts none of it: of several readers of an object, only the reader of its end does.
        """
        length, bad = self._length, self._context.bad
        other = next((reported for reported in sorted(self._reported) if reported != size), None)
        if other is None or size is None:
            return
        if other > size:
            counted = other - size if self._first + length >= size else 0
            bad.add(absent(FoundBytes.EXTRA, size, other - size, bad_bytes=counted))
        elif not any(sink.missing for sink in self._sinks if sink is not None):
            bad.add(absent(FoundBytes.MISSING, other, size - other, bad_bytes=0))


def _check_range(meter: Meter, offset: int, length: int) -> None:
    """Reject a response that holds other bytes than requested.

    Raises
    ------
    BadResponse
        If the range differs. Fewer bytes are accepted: the object may end there.
    """
    if meter.content_range is None:
        return
    begin, end = meter.content_range
    if begin != offset or not begin <= end < offset + length:
        raise BadResponse(
            f"requested bytes {offset} to {offset + length - 1}, the response has {begin} to {end}"
        )


def in_parallel(do: Callable[[int], None], count: int, connections: int) -> None:
    """Call ``do`` for all indexes below ``count``, several at a time.

    Raises
    ------
    OperationError
        The first error that a call raised; calls not yet started are skipped.
    """
    if count == 1 or connections == 1:
        for index in range(count):
            do(index)
        return
    # Threads share the iterator: advancing a range iterator is atomic.
    waiting = iter(range(count))

    def run_calls() -> None:
        with thread_counted():
            for index in waiting:
                try:
                    do(index)
                except BaseException:
                    # Skip the remaining calls.
                    deque(waiting, maxlen=0)
                    raise

    with ThreadPoolExecutor(min(connections, count)) as pool:
        futures = [pool.submit(run_calls) for _ in range(min(connections, count))]
        for future in as_completed(futures):
            future.result()
