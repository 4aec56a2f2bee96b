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
from serverless_bench.job.spec import ArraySpec, OperationKind, OperationSpec, Target, Transfer
from serverless_bench.payload.array_layout import array_bytes, shape_at
from serverless_bench.payload.keystream import Keystream
from serverless_bench.payload.verify import RangeSink
from serverless_bench.rundir.record import Usage
from serverless_bench.worker.meter import Meter
from serverless_bench.worker.resource_usage import Watch, give_memory_back
from serverless_bench.worker.retry import Retrier
from serverless_bench.worker.transfer import Checks


@dataclass(frozen=True, slots=True)
class _Open:
    """A library that this process keeps, as it keeps a client."""

    pid: int
    of: tuple[ArraySpec, Target, Transfer]
    library: ArrayLibrary


_open: list[_Open] = []
_ready: "list[ArrayTask]" = []


def perform_array(
    operation: OperationSpec,
    array: ArraySpec,
    target: Target,
    transfer: Transfer,
    retrier: Retrier,
    checks: Checks,
) -> Usage:
    """Write, append to or read one array.

    Parameters
    ----------
    operation
        A ``WRITE_ARRAY``, ``APPEND_ARRAY`` or ``READ_ARRAY``.
    array, target, transfer
        What, where and how.
    retrier
        Records the call into the library. Libraries try again by themselves, as often as
        ``transfer`` says: nothing is tried again here.
    checks
        Takes what making and comparing bytes comes to, and the usage. Its ``after``
        compares every byte that was read, and raises ``Corrupt`` if it has to.

    Raises
    ------
    OperationError
        If the library failed.
    """
    task = _ready.pop() if _ready else None
    if task is None or not task.fits(operation, array, target, transfer):
        start_ns = monotonic_ns()
        task = ArrayTask(operation, array, target, transfer)
        checks.add_payload(monotonic_ns() - start_ns)
    watch = Watch()
    try:
        with watch:
            task.perform(retrier)
    finally:
        checks.usage = watch.usage(operation.index)

    def compare() -> None:
        task.compare(checks)
        if checks.bad.count:
            raise Corrupt(f"{checks.bad.bytes} bytes of {operation.key} are wrong")

    # The operation is over: its clock stops before this.
    checks.after = compare
    return checks.usage


def prepare_array(
    operation: OperationSpec, array: ArraySpec, target: Target, transfer: Transfer
) -> None:
    """Make what the next ``perform_array`` of this process needs; call it off the clock.

    What goes wrong here goes wrong there again, and is reported then.
    """
    _ready.clear()
    with suppress(Exception):
        _ready.append(ArrayTask(operation, array, target, transfer))


def close_arrays() -> None:
    """Release what this process keeps for its next operation."""
    _ready.clear()
    while _open:
        _open.pop().library.close()


class ArrayTask:
    """One operation with all that it needs.

    Parameters
    ----------
    operation, array, target, transfer
        As in ``perform_array``.

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
        self._asked = (operation, array, target, transfer)
        self._where = place(array, operation.key)
        self._shape = shape_at(array, operation.key)
        self._library = _library(array, target, transfer)
        self._block = None
        self._got: object = None
        give_memory_back()
        if operation.kind is not OperationKind.READ_ARRAY:
            self._block = self._make()

    def fits(self, *asked: object) -> bool:
        """Tell whether this is the task for an operation."""
        return self._asked == asked

    def perform(self, retrier: Retrier) -> None:
        """Call the library; nothing else."""
        operation = self._asked[0]
        # Libraries try again by themselves.
        once = replace(retrier, retries=0)
        if operation.kind is OperationKind.READ_ARRAY:
            once.run("read_array", self._moves(self._read))
            return
        if operation.kind is OperationKind.WRITE_ARRAY:
            once.run("create_array", self._calls(self._create))
            once.run("write_array", self._moves(self._write))
            return
        if self._where not in _appending:
            once.run("create_array", self._calls(self._create))
            _appending[:] = [self._where]
        once.run("append_array", self._moves(self._append))

    def compare(self, checks: Checks) -> None:
        """Compare what was read, byte by byte."""
        operation, _, _, transfer = self._asked
        if operation.kind is not OperationKind.READ_ARRAY:
            return
        # In here, because the function body loads NumPy only for those who ask for arrays.
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
        checks.verified_bytes += sink.verified_bytes
        checks.bad.extend(sink.bad)

    def _make(self) -> object:
        """Return the array that is to be written: the user's own, before he calls anything."""
        from serverless_bench.arrays.blocks import as_block  # noqa: PLC0415 - see compare

        operation, array, _, _ = self._asked
        shape = self._shape if operation.kind is OperationKind.WRITE_ARRAY else array.shape
        size = operation.size if operation.kind is OperationKind.WRITE_ARRAY else array_bytes(array)
        if size is None:
            raise BadResponse(f"the key {operation.key} does not say how big it is")
        data = bytearray(size)
        Keystream(operation.key, operation.generation).readinto_at(operation.offset, data)
        return as_block(data, shape, array)

    def _create(self) -> None:
        operation, array, _, _ = self._asked
        first = self._shape if operation.kind is OperationKind.WRITE_ARRAY else array.shape
        self._library.create(self._where, first)

    def _write(self) -> None:
        self._library.write(self._where, self._block)

    def _append(self) -> None:
        operation, array, _, _ = self._asked
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
        """Return ``do`` as an attempt that moves bytes; they are told at its end, all at once."""
        operation, array, _, _ = self._asked
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
    asked = (array, target, transfer)
    for kept in _open:
        if kept.pid == os.getpid() and kept.of == asked:
            return kept.library
    close_arrays()
    _appending.clear()
    library = open_array_library(*asked)
    _open.append(_Open(os.getpid(), asked, library))
    return library
