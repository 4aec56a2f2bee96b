"""Perform one operation on an array and compare the result.

The library and the array in memory are created by ``prepare``, before the operation's first clock
read; the comparison comes after its last.

Memory, threads and CPU time of the library are those of one operation. The peak of the resident set
comes from the kernel (``VmHWM``), reset at the start of the operation. If the reset is not
permitted, and for the threads, a thread samples every few milliseconds.
"""

import ctypes
import resource
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import prod
from typing import Final, Self

from serverless_bench.base.clock import monotonic_ns
from serverless_bench.base.errors import Corrupt
from serverless_bench.base.process import Kept, forget_peak_rss, linux_status
from serverless_bench.base.units import KIB
from serverless_bench.features.array.libraries import ARRAYS
from serverless_bench.features.array.libraries.base import ArrayLibrary, explained, place
from serverless_bench.features.array.libraries.blocks import as_block, as_bytes
from serverless_bench.features.array.load import ITEM_BYTES, ArraySpec, shape_at
from serverless_bench.job.operations import OperationKind
from serverless_bench.job.target import Target, Transfer
from serverless_bench.payload.keystream import Keystream
from serverless_bench.payload.verify import RangeSink
from serverless_bench.rundir.record import Usage
from serverless_bench.worker.meter import Meter
from serverless_bench.worker.operation_context import (
    DONE,
    OperationContext,
    OperationResult,
    Performer,
)

_EVERY_S: Final = 0.01


class Watch:
    """Measures the process's usage during a block of code; ``usage`` returns it afterwards."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self._sampler = threading.Thread(target=self._sample, name="sbench-watch", daemon=True)
        self._threads = 0
        self._seen_bytes = 0
        self._exact = False
        self._before_bytes: int | None = None
        self._peak_bytes: int | None = None
        self._cpu = resource.getrusage(resource.RUSAGE_SELF)
        self._used = self._cpu

    def __enter__(self) -> Self:
        if linux_status():
            self._exact = forget_peak_rss()
            self._before_bytes = linux_status()["VmRSS"] * KIB
            self._sampler.start()
        self._cpu = resource.getrusage(resource.RUSAGE_SELF)
        return self

    def __exit__(self, *_: object) -> None:
        self._used = resource.getrusage(resource.RUSAGE_SELF)
        if self._before_bytes is None:
            return
        self._over.set()
        self._sampler.join()
        peak_bytes = linux_status()["VmHWM"] * KIB if self._exact else self._seen_bytes
        self._peak_bytes = max(peak_bytes, self._before_bytes)

    def usage(self) -> Usage:
        """Return the usage."""
        is_measured = self._before_bytes is not None
        return Usage(
            operation=0,
            rss_before_bytes=self._before_bytes,
            rss_peak_bytes=self._peak_bytes,
            threads_peak=self._threads if is_measured else None,
            cpu_user_s=round(self._used.ru_utime - self._cpu.ru_utime, 6),
            cpu_sys_s=round(self._used.ru_stime - self._cpu.ru_stime, 6),
        )

    def _sample(self) -> None:
        over = False
        while not over:
            over = self._over.wait(_EVERY_S)
            now = linux_status()
            # Exclude this sampling thread.
            self._threads = max(self._threads, now["Threads"] - 1)
            self._seen_bytes = max(self._seen_bytes, now["VmRSS"] * KIB)


def give_memory_back() -> None:
    """Return memory freed by earlier operations to the system (glibc's ``malloc_trim``)."""
    # The next operation would reuse memory that the allocator keeps, without growing the resident
    # set: only the first operation of a process would show the library's real needs.
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


_libraries: Final = Kept()
_appending: list[tuple[ArrayLibrary, str]] = []
"""The library, and the array that it has open for writing."""


class ArrayPerformer(Performer):
    """Writes, appends to and reads arrays, in one thread.

    It does not retry: libraries retry by themselves, as often as the transfer specifies.

    Parameters
    ----------
    array, target
        The array, and where it is stored.
    """

    def __init__(self, array: ArraySpec, target: Target) -> None:
        self._array = array
        self._target = target
        self._is_ready = False
        self._data: object = None
        """Data in memory, to write or after a read."""

    def prepare(self, context: OperationContext) -> None:
        """Create the library and the array; after an error, ``perform`` repeats this."""
        self._is_ready = False
        with suppress(Exception):
            self._make_ready(context)

    def perform(self, context: OperationContext) -> OperationResult:
        """Write, append to or read one array.

        Raises
        ------
        OperationError
            If the library failed.
        UsageError
            If the key is not of an array of this row length, or an option cannot be set.
        PluginError
            If the library is not installed.
        """
        if not self._is_ready:
            start_ns = monotonic_ns()
            self._make_ready(context)
            context.add_payload(monotonic_ns() - start_ns)
        watch = Watch()
        try:
            with watch:
                self._call_library(context)
        finally:
            context.usage = watch.usage()
        return DONE

    def compare(self, context: OperationContext) -> None:
        """Verify the data read, byte by byte, and release the array.

        Raises
        ------
        Corrupt
            If any byte is wrong, missing or too much.
        """
        operation, transfer = context.spec, context.transfer
        array, self._data = self._data, None
        if operation.kind is not OperationKind.READ_ARRAY:
            return
        data = as_bytes(array)
        size = operation.size if operation.size is not None else len(data)
        keystream = Keystream(operation.key, operation.generation)
        sink = RangeSink(keystream, size, 0, size, transfer.verify)
        for offset in range(0, len(data), transfer.block_size):
            sink.write_at(offset, data[offset : offset + transfer.block_size])
        sink.finish()
        context.verified_bytes += sink.verified_bytes
        context.bad.extend(sink.bad)
        if context.bad.count:
            raise Corrupt(f"{context.bad.bytes} bytes of {operation.key} are wrong")

    def _make_ready(self, context: OperationContext) -> None:
        operation, array = context.spec, self._array
        self._where = place(array, operation.key)
        self._shape = shape_at(array, operation.key)
        if operation.kind is OperationKind.APPEND_ARRAY:
            # An append writes one array of those that the key declares.
            self._shape = array.shape
        self._size = prod(self._shape) * ITEM_BYTES[array.dtype]
        self._library = _libraries.open(open_array_library, array, self._target, context.transfer)
        self._data = None
        give_memory_back()
        if operation.kind is not OperationKind.READ_ARRAY:
            # This is the array that a user's program would already hold.
            keystream = Keystream(operation.key, operation.generation)
            self._data = as_block(keystream.read(operation.offset, self._size), self._shape, array)
        self._is_ready = True

    def _call_library(self, context: OperationContext) -> None:
        kind, library, where = context.spec.kind, self._library, self._where
        # Libraries retry by themselves.
        once = replace(context.retrier, retries=0)

        def run(request: str, moves: int, do: Callable[..., object], *arguments: object) -> object:
            return once.run(request, partial(_call, partial(do, where, *arguments), moves))

        if kind is OperationKind.READ_ARRAY:
            self._data = run("read_array", self._size, library.read)
            return
        if kind is OperationKind.WRITE_ARRAY or (library, where) not in _appending:
            run("create_array", 0, library.create, self._shape)
            _appending[:] = [(library, where)]
        if kind is OperationKind.WRITE_ARRAY:
            run("write_array", self._size, library.write, self._data)
        else:
            row = context.spec.offset // self._size * self._shape[0]
            run("append_array", self._size, library.append, self._data, row)


def open_array_library(array: ArraySpec, target: Target, transfer: Transfer) -> ArrayLibrary:
    """Return the library that ``array`` names, ready to write to ``target`` or to files."""
    return ARRAYS.load(array.library)(array, target, transfer)


def _call(do: Callable[[], object], moves: int, meter: Meter) -> object:
    """Make one attempt; its bytes are counted at the end."""
    with explained():
        result = do()
    if moves:
        meter.moved(moves)
    return result
