"""Move one object, or a range of it: whole or in parts, over one connection or several."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import partial

from serverless_bench.clients.base import Client
from serverless_bench.clock import monotonic_ns
from serverless_bench.errors import Corrupt, OperationError
from serverless_bench.keystream import ReadableAt
from serverless_bench.meter import Meter
from serverless_bench.payload import content_of
from serverless_bench.processor import thread_counted
from serverless_bench.record import Usage
from serverless_bench.spec import OperationKind, OperationSpec, Transfer
from serverless_bench.tries import Tries
from serverless_bench.verify import BadRanges, RangeSink


class RangeSource:
    """A range of a keystream as the body of one request."""

    def __init__(self, keystream: ReadableAt, offset: int, size: int, told: "Checks") -> None:
        self._keystream = keystream
        self._offset = offset
        self._told = told
        self.size = size

    def readinto_at(self, offset: int, buffer: memoryview) -> None:
        """See ``Source``."""
        start_ns = monotonic_ns()
        self._keystream.readinto_at(self._offset + offset, buffer)
        self._told.add_payload(monotonic_ns() - start_ns)


@dataclass(slots=True)
class Checks:
    """What making and comparing the bytes of one operation came to."""

    payload_ns: int = 0
    verified_bytes: int = 0
    bad: BadRanges = field(default_factory=BadRanges)
    usage: Usage | None = None
    """What a library used, where it was watched."""
    after: Callable[[], None] | None = None
    """Compares what came, once the clock has stopped; where that can wait."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add_payload(self, duration_ns: int) -> None:
        """Count time that went into bytes; threads may call it at once."""
        with self._lock:
            self.payload_ns += duration_ns


def put_object(operation: OperationSpec, transfer: Transfer, tries: Tries, checks: Checks) -> None:
    """Write one object.

    Raises
    ------
    OperationError
        If it could not be written; an upload in parts was given up then.
    """
    client, key, size = tries.client, operation.key, _known(operation)
    keystream = content_of(key, operation.generation)
    # A library that cuts uploads itself is given whole objects.
    parts = "multipart" in client.operations
    part_bytes = transfer.part_size(operation.kind, size) if parts else None
    if part_bytes is None:
        source = RangeSource(keystream, 0, size, checks)
        tries.run("put", partial(client.put, key, source))
        return
    upload_id = tries.run("create_multipart", partial(client.create_multipart, key))
    count = -(-size // part_bytes)
    etags = [""] * count

    def upload(index: int) -> None:
        offset = index * part_bytes
        source = RangeSource(keystream, offset, min(part_bytes, size - offset), checks)
        call = partial(client.upload_part, key, upload_id, index + 1, source)
        etags[index] = tries.run("upload_part", call, part=index + 1)

    try:
        each(upload, count, transfer.connections)
        tries.run("complete_multipart", partial(client.complete_multipart, key, upload_id, etags))
    except OperationError:
        _give_up(client, key, upload_id, tries)
        raise


def get_object(
    operation: OperationSpec,
    transfer: Transfer,
    tries: Tries,
    checks: Checks,
    *,
    said_bytes: int | None = None,
) -> None:
    """Read one object, or the range of it that the operation asks for, and compare it.

    Parameters
    ----------
    operation, transfer, tries, checks
        As in ``operations.perform``.
    said_bytes
        What the store says is the size of an object that sbench did not write.

    Raises
    ------
    Corrupt
        If other bytes, or more, or fewer, came than were written.
    OperationError
        If it could not be read.
    """
    client, key = tries.client, operation.key
    size = said_bytes if operation.size is None else operation.size
    first, length = operation.offset, size if operation.length is None else operation.length
    foreign = operation.size is None
    keystream = None if foreign else content_of(operation.content or key, operation.generation)
    ranges = length is not None and "range" in client.operations
    part_bytes = transfer.part_size(OperationKind.GET, length) if ranges and length else None
    if part_bytes is None and operation.length is not None:
        part_bytes = operation.length
    step = part_bytes or length
    count = 1 if not length or step is None else -(-length // step)
    sinks: list[RangeSink | None] = [None] * count

    def fetch(meter: Meter, offset: int, length: int | None) -> RangeSink:
        sink = RangeSink(keystream, size=size, offset=offset, length=length, verify=transfer.verify)
        if part_bytes is None:
            client.get(key, sink, meter)
        else:
            client.get(key, sink, meter, offset=offset, length=length)
        return sink

    def download(index: int) -> None:
        offset = first + index * (step or 0)
        wanted = None if length is None or step is None else min(step, first + length - offset)
        call = partial(fetch, offset=offset, length=wanted)
        sinks[index] = tries.run("get", call, part=index + 1 if count > 1 else 0)

    try:
        each(download, count, transfer.connections)
    finally:
        for sink in sinks:
            if sink is not None:
                sink.finish()
                checks.payload_ns += sink.payload_ns
                checks.verified_bytes += sink.verified_bytes
                checks.bad.extend(sink.bad)
    if checks.bad.count:
        raise Corrupt(f"{checks.bad.bytes} bytes of {key} are wrong")


def each(do: Callable[[int], None], count: int, connections: int) -> None:
    """Call ``do`` for every index below ``count``, several at once.

    Raises
    ------
    OperationError
        The first one that any call raised; calls not yet begun are left out.
    """
    if count == 1 or connections == 1:
        for index in range(count):
            do(index)
        return
    waiting, stopped = iter(range(count)), threading.Event()
    turn = threading.Lock()

    def take() -> int | None:
        with turn:
            return None if stopped.is_set() else next(waiting, None)

    def work() -> None:
        with thread_counted():
            while (index := take()) is not None:
                try:
                    do(index)
                except BaseException:
                    stopped.set()
                    raise

    with ThreadPoolExecutor(min(connections, count)) as pool:
        futures = [pool.submit(work) for _ in range(min(connections, count))]
        for future in as_completed(futures):
            future.result()


def _give_up(client: Client, key: str, upload_id: str, tries: Tries) -> None:
    try:
        tries.run("abort_multipart", partial(client.abort_multipart, key, upload_id))
    except OperationError:
        # The try is on record; the error that brought us here is the one to report, and
        # `sbench clean` looks for uploads that are still open.
        return


def _known(operation: OperationSpec) -> int:
    if operation.size is None:
        raise ValueError(f"cannot write {operation.key!r} without a size")
    return operation.size
