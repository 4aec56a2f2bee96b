"""Perform one operation on an array and compare what comes back.

What has to be there before, the library and the array in memory, is made by
``ArrayTask``, before the operation's first clock read; the comparison is after its last.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final

from serverless_bench.clock import monotonic_ns
from serverless_bench.errors import Corrupt
from serverless_bench.job.load import ArraySpec
from serverless_bench.job.operations import OperationKind, OperationSpec
from serverless_bench.job.target import Target
from serverless_bench.job.transfer import Transfer
from serverless_bench.payload.array_layout import array_bytes, shape_at
from serverless_bench.payload.keystream import Keystream
from serverless_bench.payload.verify import RangeSink
from serverless_bench.worker.kept import Kept
from serverless_bench.worker.meter import Meter
from serverless_bench.worker.operation_context import (
    DONE,
    OperationContext,
    OperationResult,
    Performer,
)
from serverless_bench.worker.retry import Retrier
from serverless_bench.workloads.array.libraries import open_array_library
from serverless_bench.workloads.array.libraries.base import ArrayLibrary, explained, place
from serverless_bench.workloads.array.libraries.blocks import as_block, as_bytes
from serverless_bench.workloads.array.resource_usage import Watch, give_memory_back

_libraries: Final = Kept()
_appending: list[tuple[ArrayLibrary, str]] = []
"""The library, and the array that it has open for writing."""


class ArrayPerformer(Performer):
    """Writes, appends to and reads arrays, in one thread.

    Nothing is retried here: libraries do so by themselves, as often as the transfer says.

    Parameters
    ----------
    array, target
        What, and where.
    """

    def __init__(self, array: ArraySpec, target: Target) -> None:
        self._array = array
        self._target = target
        self._task: ArrayTask | None = None

    def prepare(self, context: OperationContext) -> None:
        """Make the array; what goes wrong here goes wrong in ``perform`` again."""
        self._task = None
        with suppress(Exception):
            self._task = self._made(context)

    def perform(self, context: OperationContext) -> OperationResult:
        """Write, append to or read one array.

        Raises
        ------
        OperationError
            If the library failed.
        """
        if self._task is None:
            start_ns = monotonic_ns()
            self._task = self._made(context)
            context.add_payload(monotonic_ns() - start_ns)
        watch = Watch()
        try:
            with watch:
                self._task.perform(context.retrier)
        finally:
            context.usage = watch.usage()
        return DONE

    def compare(self, context: OperationContext) -> None:
        """Compare what was read, byte by byte, and let the array go.

        Raises
        ------
        Corrupt
            If any byte is wrong, missing or too much.
        """
        task, self._task = self._task, None
        if task is not None:
            task.compare(context)

    def _made(self, context: OperationContext) -> "ArrayTask":
        return ArrayTask(context.spec, self._array, self._target, context.transfer)


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
        self._transfer = transfer
        self._where = place(array, operation.key)
        whole = shape_at(array, operation.key)
        appends = operation.kind is OperationKind.APPEND_ARRAY
        # An append adds one array to those that the key says.
        self._array = array if appends else replace(array, shape=whole)
        self._size = array_bytes(self._array)
        self._library = _libraries.open(open_array_library, array, target, transfer)
        self._block: object = None
        self._got: object = None
        give_memory_back()
        if operation.kind is not OperationKind.READ_ARRAY:
            # The user's own array, before he calls anything.
            data = bytearray(self._size)
            Keystream(operation.key, operation.generation).readinto_at(operation.offset, data)
            self._block = as_block(data, self._array.shape, self._array)

    def perform(self, retrier: Retrier) -> None:
        """Call the library; nothing else."""
        kind, library, where = self._operation.kind, self._library, self._where
        # Libraries retry by themselves.
        once = replace(retrier, retries=0)

        def run(request: str, moves: int, do: Callable[..., object], *arguments: object) -> object:
            return once.run(request, partial(_call, partial(do, where, *arguments), moves))

        if kind is OperationKind.READ_ARRAY:
            self._got = run("read_array", self._size, library.read)
            return
        if kind is OperationKind.WRITE_ARRAY or (library, where) not in _appending:
            run("create_array", 0, library.create, self._array.shape)
            _appending[:] = [(library, where)]
        if kind is OperationKind.WRITE_ARRAY:
            run("write_array", self._size, library.write, self._block)
        else:
            row = self._operation.offset // self._size * self._array.shape[0]
            run("append_array", self._size, library.append, self._block, row)

    def compare(self, context: OperationContext) -> None:
        """Compare what was read, byte by byte.

        Raises
        ------
        Corrupt
            If any byte is wrong, missing or too much.
        """
        operation, block_bytes = self._operation, self._transfer.block_size
        if operation.kind is not OperationKind.READ_ARRAY:
            return
        data = as_bytes(self._got)
        self._got = None
        size = operation.size if operation.size is not None else len(data)
        sink = RangeSink(
            Keystream(operation.key, operation.generation),
            size=size,
            offset=0,
            length=size,
            verify=self._transfer.verify,
        )
        for offset in range(0, len(data), block_bytes):
            sink.write_at(offset, data[offset : offset + block_bytes])
        sink.finish()
        context.verified_bytes += sink.verified_bytes
        context.bad.extend(sink.bad)
        if context.bad.count:
            raise Corrupt(f"{context.bad.bytes} bytes of {operation.key} are wrong")


def _call(do: Callable[[], object], moves: int, meter: Meter) -> object:
    """Make one attempt; the bytes that it moves are counted at its end."""
    with explained():
        result = do()
    if moves:
        meter.moved(moves)
    return result
