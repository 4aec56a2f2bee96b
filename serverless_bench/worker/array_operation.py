"""Perform one operation on an array and compare what comes back.

What has to be there before, the library and the array in memory, is made by
``ArrayTask``, before the operation's first clock read; the comparison is after its last.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from serverless_bench.arrays import open_array_library
from serverless_bench.arrays.base import ArrayLibrary, explained, place
from serverless_bench.clock import monotonic_ns
from serverless_bench.errors import BadResponse, Corrupt
from serverless_bench.job.load import ArraySpec
from serverless_bench.job.operations import OperationKind, OperationSpec
from serverless_bench.job.target import Target
from serverless_bench.job.transfer import Transfer
from serverless_bench.payload.array_layout import array_bytes, shape_at
from serverless_bench.payload.keystream import Keystream
from serverless_bench.payload.verify import RangeSink
from serverless_bench.worker.meter import Meter
from serverless_bench.worker.operation_context import DONE, OperationContext, OperationResult
from serverless_bench.worker.resource_usage import Watch, give_memory_back
from serverless_bench.worker.retry import Retrier


@dataclass(frozen=True, slots=True)
class _Open:
    """A library that this process keeps, as it keeps a client."""

    pid: int
    settings: tuple[ArraySpec, Target, Transfer]
    library: ArrayLibrary


_open: list[_Open] = []


def perform_array(context: OperationContext) -> OperationResult:
    """Write, append to or read one array.

    What was read is not compared here: ``ArrayTask.compare`` does that, after the clock
    has stopped. Nothing is retried here: libraries do so by themselves, as often as
    ``context.transfer`` says.

    Raises
    ------
    OperationError
        If the library failed.
    """
    if context.task is None:
        start_ns = monotonic_ns()
        context.task = _task(context)
        context.add_payload(monotonic_ns() - start_ns)
    watch = Watch()
    try:
        with watch:
            context.task.perform(context.retrier)
    finally:
        context.usage = watch.usage(context.spec.index)
    return DONE


def prepare_array(context: OperationContext) -> None:
    """Make what ``perform_array`` needs; call it before the clock starts.

    What goes wrong here goes wrong there again, and is reported then.
    """
    with suppress(Exception):
        context.task = _task(context)


def _task(context: OperationContext) -> "ArrayTask":
    array, target = context.invocation.array, context.invocation.target
    if array is None or target is None:
        raise ValueError("an operation on an array needs an array")
    return ArrayTask(context.spec, array, target, context.transfer)


def close_arrays() -> None:
    """Release what this process keeps for its next operation."""
    while _open:
        _open.pop().library.close()


class ArrayTask:
    """One operation with all that it needs.

    Parameters
    ----------
    operation
        A ``WRITE_ARRAY``, ``APPEND_ARRAY`` or ``READ_ARRAY``.
    array, target, transfer
        What, where and how.

    Raises
    ------
    UsageError
        If the key is not of an array of this row length, or an option cannot be set.
    PluginError
        If the library is not installed.
    """

    def __init__(
        self, operation: OperationSpec, array: ArraySpec, target: Target, transfer: Transfer
    ) -> None:
        self._operation = operation
        self._array = array
        self._transfer = transfer
        self._where = place(array, operation.key)
        self._shape = shape_at(array, operation.key)
        self._library = _library(array, target, transfer)
        self._block = None
        self._got: object = None
        give_memory_back()
        if operation.kind is not OperationKind.READ_ARRAY:
            self._block = self._make()

    def perform(self, retrier: Retrier) -> None:
        """Call the library; nothing else."""
        kind = self._operation.kind
        # Libraries retry by themselves.
        once = replace(retrier, retries=0)
        if kind is OperationKind.READ_ARRAY:
            once.run("read_array", self._moves(self._read))
            return
        if kind is OperationKind.WRITE_ARRAY:
            once.run("create_array", self._calls(self._create))
            once.run("write_array", self._moves(self._write))
            return
        if self._where not in _appending:
            once.run("create_array", self._calls(self._create))
            _appending[:] = [self._where]
        once.run("append_array", self._moves(self._append))

    def compare(self, context: OperationContext) -> None:
        """Compare what was read, byte by byte.

        Raises
        ------
        Corrupt
            If any byte is wrong, missing or too much.
        """
        operation, transfer = self._operation, self._transfer
        if operation.kind is not OperationKind.READ_ARRAY:
            return
        # In here, because the worker loads NumPy for arrays only.
        from serverless_bench.arrays.blocks import as_bytes  # noqa: PLC0415

        data = as_bytes(self._got)
        self._got = None
        size = operation.size if operation.size is not None else len(data)
        sink = RangeSink(
            Keystream(operation.key, operation.generation),
            size=size,
            offset=0,
            length=size,
            verify=transfer.verify,
        )
        for offset in range(0, len(data), transfer.block_bytes):
            sink.write_at(offset, data[offset : offset + transfer.block_bytes])
        sink.finish()
        context.verified_bytes += sink.verified_bytes
        context.bad.extend(sink.bad)
        if context.bad.count:
            raise Corrupt(f"{context.bad.bytes} bytes of {operation.key} are wrong")

    def _make(self) -> object:
        """Return the array that is to be written: the user's own, before he calls anything."""
        operation, array = self._operation, self._array
        shape = self._shape if operation.kind is OperationKind.WRITE_ARRAY else array.shape
        size = operation.size if operation.kind is OperationKind.WRITE_ARRAY else array_bytes(array)
        if size is None:
            raise BadResponse(f"the key {operation.key} does not say how big it is")
        data = bytearray(size)
        Keystream(operation.key, operation.generation).readinto_at(operation.offset, data)
        # In here, as in ``compare``.
        from serverless_bench.arrays.blocks import as_block  # noqa: PLC0415

        return as_block(data, shape, array)

    def _create(self) -> None:
        operation, array = self._operation, self._array
        first = self._shape if operation.kind is OperationKind.WRITE_ARRAY else array.shape
        self._library.create(self._where, first)

    def _write(self) -> None:
        self._library.write(self._where, self._block)

    def _append(self) -> None:
        operation, array = self._operation, self._array
        row = operation.offset // array_bytes(array) * array.shape[0]
        self._library.append(self._where, self._block, row)

    def _read(self) -> None:
        self._got = self._library.read(self._where)

    def _calls(self, do: Callable[[], None]) -> Callable[[Meter], None]:
        def call(meter: Meter) -> None:
            del meter
            with explained():
                do()

        return call

    def _moves(self, do: Callable[[], None]) -> Callable[[Meter], None]:
        """Return ``do`` as an attempt that moves bytes: they are counted at its end."""
        operation, array = self._operation, self._array
        whole = operation.kind is not OperationKind.APPEND_ARRAY and operation.size is not None
        size = operation.size if whole else array_bytes(array)

        def call(meter: Meter) -> None:
            with explained():
                do()
            meter.moved(size or 0)

        return call


_appending: list[str] = []
"""The array that this process has open for appends."""


def _library(array: ArraySpec, target: Target, transfer: Transfer) -> ArrayLibrary:
    settings = (array, target, transfer)
    for kept in _open:
        if kept.pid == os.getpid() and kept.settings == settings:
            return kept.library
    close_arrays()
    _appending.clear()
    library = open_array_library(*settings)
    _open.append(_Open(os.getpid(), settings, library))
    return library
