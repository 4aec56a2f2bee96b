"""The argument of a user function: the client, the keystream and the recorder.

Operations made through ``FunctionContext`` are measured, verified and reported like those of the
built-in workloads. For work with another library the function calls ``FunctionContext.measure``.
"""

import builtins
import random
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from typing import Any, Final

from serverless_bench.base.clock import monotonic_ns
from serverless_bench.base.errors import DeadlineExceeded, OperationError, UsageError
from serverless_bench.base.units import NS_PER_S
from serverless_bench.clients.base import needs
from serverless_bench.features.custom.spans import Span
from serverless_bench.job.keys import declared_size
from serverless_bench.job.operations import OperationKind, OperationSpec
from serverless_bench.job.planned_objects import planned_object
from serverless_bench.job.target import Target
from serverless_bench.payload.keystream import Keystream
from serverless_bench.payload.shaped import content_of
from serverless_bench.worker.object_io import pages
from serverless_bench.worker.operation import MeasuredOperation, plain
from serverless_bench.worker.operation_context import OperationResult
from serverless_bench.worker.runner import InvocationRunner

_ERRORS: Final[Mapping[str, type[OperationError]]] = {
    kind.code: kind for kind in OperationError.__subclasses__()
}


class FunctionContext:
    """The only argument of a user function. Threads may share it.

    Parameters
    ----------
    runner
        Performs operations and keeps the records.
    warmup
        Whether the call is part of the warm-up.

    Attributes
    ----------
    index
        Number of the function, from 0.
    launch
        0 for the first launch of this index, incremented each time the driver launches it again.
    run_id
        Identifier of the run.
    keys
        Existing objects: this function's part of those given to the job.
    target
        Endpoint, bucket and region, for another library. It has no credentials: the library finds
        them where sbench does, in the environment or role.
    prefix
        Prefix for objects of another library; no other function uses it. The run's ledger does not
        list them: the function has to delete them itself.

    Examples
    --------
    >>> def mine(context):
    ...     with context.measure("think"):
    ...         return sum(range(1000))
    >>> sbench.custom(mine, number=2).summary.ok
    2
    """

    def __init__(self, runner: InvocationRunner, *, warmup: bool = False) -> None:
        invocation = runner.invocation
        self.index = invocation.index
        self.launch = invocation.launch
        self.run_id = invocation.run_id
        self.keys = invocation.keys
        self.target: Target = invocation.target
        self.prefix = f"{self.target.prefix}{self.run_id}/{self.index}/{self.launch}/"
        self._runner = runner
        self._warmup = warmup
        # Open the client here: otherwise each thread of the function would open another.
        self._client = runner.client()
        self._rng = random.Random(invocation.seed)
        self._numbers = count()
        self._made: set[str] = set()
        self._blocks: list[Span] = []
        self._mine = threading.local()

    @property
    def remaining_s(self) -> float:
        """Seconds left before the deadline; below 0 no further operation is started."""
        return (self._runner.deadline_ns - monotonic_ns()) / NS_PER_S

    def new_key(self, number: int | None = None) -> str:
        """Return the key of a new object; the key declares the size, which the job decides.

        Parameters
        ----------
        number
            Index among the job's ``objects``, from 0; None for the next unused index.

        Raises
        ------
        UsageError
            If the job does not let a function create this object.
        """
        invocation = self._runner.invocation
        number = next(self._numbers) if number is None else number
        if invocation.size is None and invocation.load.sizes is None:
            raise UsageError(
                "the job does not let its functions create objects",
                hint="set their size: `size`",
            )
        if not 0 <= number < invocation.objects:
            raise UsageError(
                f"object {number} is out of range: the job lets a function create"
                f" {invocation.objects}, numbered from 0",
                hint="set the number of objects: `objects`",
            )
        key = planned_object(invocation, number).key
        self._made.add(key)
        return key

    def size(self, key: str) -> int | None:
        """Return the size that a key declares; None if sbench did not create the key."""
        return declared_size(key)

    def content(self, key: str) -> Keystream:
        """Return the expected bytes of ``key``, an object's key or any other name."""
        return content_of(key)

    def put(self, key: str) -> None:
        """Write the object with a key from ``new_key``.

        Raises
        ------
        UsageError
            If the key is from elsewhere: the run's ledger would not list the object.
        OperationError
            If all attempts to write it failed; the failure is already recorded.
        """
        _check_mine(key, mine=key in self._made)
        self._perform(OperationKind.PUT, key)

    def get(self, key: str, offset: int = 0, length: int | None = None) -> bytearray:
        """Read an object or a range of it, verify it, and return it.

        Parameters
        ----------
        key
            Key of an existing object.
        offset, length
            The range; a length of None reads everything from ``offset`` on.

        Raises
        ------
        UsageError
            If the object has no such range.
        OperationError
            If it could not be read; ``Corrupt`` if its bytes differ from those written.
        """
        return self._read(key, offset, length, keep_data=True).data or bytearray()

    def check(self, key: str, offset: int = 0, length: int | None = None) -> None:
        """Read and verify as ``get`` does, without keeping the bytes in memory."""
        self._read(key, offset, length, keep_data=False)

    def head(self, key: str) -> int:
        """Return the size that the store reports for an object; raises as ``get``."""
        return self._perform(OperationKind.HEAD, key).size

    def list(self, prefix: str | None = None) -> list[str]:
        """Return the keys below a prefix, by default the target's prefix; raises as ``get``.

        Each thousand keys take a request, recorded as a separate operation.
        """
        below = self.target.prefix if prefix is None else prefix

        def page(after: str) -> tuple[builtins.list[str], bool]:
            result = self._perform(OperationKind.LIST, below, list_after=after)
            return [*result.keys], result.more

        return [key for keys in pages(page) for key in keys]

    def delete(self, key: str) -> None:
        """Delete an object that this function created, with ``new_key`` or below ``prefix``.

        Raises
        ------
        UsageError
            If the key is any other key.
        OperationError
            If the delete fails.
        """
        _check_mine(key, mine=key in self._made or key.startswith(self.prefix))
        self._perform(OperationKind.DELETE, key)

    @contextmanager
    def measure(self, name: str, *, bytes: int = 0) -> Iterator[Span]:  # noqa: A002 - as in records
        """Measure a block that works with another library.

        Parameters
        ----------
        name
            Name in the records; blocks with the same name share a line in a report.
        bytes
            Bytes that the block transfers. Leave it out for operations of this context: they are
            counted separately.
        """
        block = Span(" ".join(plain(name).split()), bytes)
        self._mine.block = block
        self._blocks.append(block)
        try:
            yield block
        except BaseException as exc:
            block.error = exc.code if isinstance(exc, OperationError) else type(exc).__name__
            raise
        finally:
            block.end_ns = monotonic_ns()

    def verify(self, key: str, offset: int, data: Any) -> int:
        """Compare the bytes that this thread's last block read with those that were written.

        Call it outside the block to keep the comparison out of the block's time. All bytes passed
        are counted, so verify each byte once.

        Parameters
        ----------
        key
            Key of the bytes, as in ``content``.
        offset
            Position of ``data`` within them.
        data
            Anything contiguous with a buffer, an array for instance.

        Returns
        -------
        int
            Number of wrong bytes. If it is not zero, the block has failed.

        Raises
        ------
        UsageError
            If this thread has not measured a block.
        """
        block: Span | None = getattr(self._mine, "block", None)
        if block is not None and key in block.read:
            raise UsageError(
                f"{key} was already read and verified by the context in this block:"
                " its bytes would count twice",
                hint="call verify only for bytes that another library has read",
            )
        if block is None:
            raise UsageError(
                "verify was called before any measured block",
                hint="read inside `with context.measure(NAME):`; context.get verifies by itself",
            )
        return block.verify(key, offset, data)

    def finish(self) -> None:
        """Add the blocks to the records; they cannot be verified afterwards."""
        runner = self._runner
        for block in self._blocks:
            runner.measured.append(block.measured(runner.clock.origin_ns, warmup=self._warmup))
        self._blocks.clear()

    def _read(
        self, key: str, offset: int, length: int | None, *, keep_data: bool
    ) -> OperationResult:
        size, offset = declared_size(key), int(offset)
        if length is not None:
            length = int(length)
        elif size is not None:
            length = size - offset
        if offset < 0 or (length is not None and length < 1):
            raise UsageError(f"not a range of an object: offset {offset}, length {length} bytes")
        block: Span | None = getattr(self._mine, "block", None)
        if block is not None and block.end_ns is None:
            block.read.add(key)
        if offset == 0 and length == size:
            return self._perform(OperationKind.GET, key, keep_data=keep_data)
        if length is None:
            raise UsageError(f"a range of {key} needs a length: the key declares no size")
        return self._perform(
            OperationKind.GET_RANGE, key, offset=offset, length=length, keep_data=keep_data
        )

    def _perform(
        self,
        kind: OperationKind,
        key: str,
        *,
        offset: int = 0,
        length: int | None = None,
        keep_data: bool = False,
        list_after: str = "",
    ) -> OperationResult:
        if needs(kind) not in self._client.info.operations:
            raise UsageError(f"client {self.target.client!r} does not support {kind}")
        if self.remaining_s < 0 or self._runner.is_run_over():
            raise DeadlineExceeded("the function's deadline has passed")
        spec = OperationSpec(
            kind=kind, key=key, size=declared_size(key), offset=offset, length=length
        )
        done, result = self._runner.perform(
            spec, self._rng, warmup=self._warmup, keep_data=keep_data, list_after=list_after
        )
        _raise_if_failed(done)
        return result


def _check_mine(key: str, *, mine: bool) -> None:
    if not mine:
        raise UsageError(
            f"{key} was not created by this function",
            hint="use a key from new_key(): the run's ledger lists those",
        )


def _raise_if_failed(done: MeasuredOperation) -> None:
    """Raise the error that is already recorded."""
    if done.bug:
        raise RuntimeError(done.bug)
    if not done.error:
        return
    operation = done.operation
    reason = next((a.detail for a in reversed(done.attempts) if a.detail), operation.error)
    if operation.bad_bytes:
        reason = f"{operation.bad_bytes} bytes are wrong"
    raise _ERRORS.get(done.error, OperationError)(f"{operation.kind}: {reason}")
