"""What a user function is given: the client, the keystream and the recorder.

What it does through ``FunctionContext`` is measured, verified and reported like the built-in
workloads. What it does with a library of its own it measures with ``FunctionContext.measure``.
"""

import random
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from typing import Any, Final

from serverless_bench.clock import monotonic_ns
from serverless_bench.errors import DeadlineExceeded, OperationError, UsageError
from serverless_bench.job.keys import declared_size
from serverless_bench.job.operations import OperationKind, OperationSpec
from serverless_bench.job.planned_objects import planned_object
from serverless_bench.job.target import Target
from serverless_bench.payload.keystream import Keystream
from serverless_bench.payload.shaped import content_of
from serverless_bench.units import NS_PER_S
from serverless_bench.worker.operation import MeasuredOperation, needs, plain
from serverless_bench.worker.operation_context import OperationResult
from serverless_bench.worker.runner import InvocationRunner
from serverless_bench.worker.spans import Span

_ERRORS: Final[Mapping[str, type[OperationError]]] = {
    kind.code: kind for kind in OperationError.__subclasses__()
}


class FunctionContext:
    """The one argument of a user function. Threads may share it.

    Parameters
    ----------
    runner
        Performs operations and keeps the records.
    warmup
        Whether the call is one of the warm-up.

    Attributes
    ----------
    index
        Number of the function, from 0.
    launch
        0, and one more each time that the driver launches this index again.
    run_id
        Of the run.
    keys
        Existing objects, this function's share of those that the job was given.
    target
        Endpoint, bucket and region, for a library of the function's own. Credentials are
        not here: such a library finds them where ours does, in the environment or role.
    prefix
        Below it a library of its own may write: no other function has it. What is written
        there is not in the run's ledger: the function has to delete it itself.

    Examples
    --------
    >>> def mine(context):
    ...     with context.measure("think"):
    ...         return sum(range(1000))
    >>> with sbench.embedded_target() as target:
    ...     ran = sbench.run_job(mine, target=target, number=2)
    >>> sbench.summarize(ran).ok
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
        # Once, here: threads of the function would each make one.
        self._client = runner.client()
        self._rng = random.Random(invocation.seed)  # noqa: S311 - jitter is no secret
        self._numbers = count()
        self._made: set[str] = set()
        self._blocks: list[Span] = []
        self._mine = threading.local()

    @property
    def remaining_s(self) -> float:
        """Seconds until the function has to be through; below 0 nothing is begun any more."""
        return (self._runner.deadline_ns - monotonic_ns()) / NS_PER_S

    def new_key(self, number: int | None = None) -> str:
        """Return the key of a new object; it declares the size, which the job decides.

        Parameters
        ----------
        number
            Which of the job's ``objects``, from 0; None for the next one.

        Raises
        ------
        UsageError
            If the job lets a function make no such object.
        """
        invocation = self._runner.invocation
        number = next(self._numbers) if number is None else number
        if invocation.size is None and invocation.load.sizes is None:
            raise UsageError(
                "the job lets its functions make no objects",
                hint="say how large they are: `size`",
            )
        if not 0 <= number < invocation.objects:
            raise UsageError(
                f"object {number} is not one of the {invocation.objects} that the job lets a"
                " function make",
                hint="say how many there are: `objects`",
            )
        key = planned_object(invocation, number).key
        self._made.add(key)
        return key

    def size(self, key: str) -> int | None:
        """Return the size that a key declares; None if sbench did not make it."""
        return declared_size(key)

    def content(self, key: str) -> Keystream:
        """Return the bytes that belong to ``key``, an object's or any other name."""
        return content_of(key)

    def put(self, key: str) -> None:
        """Write the object of a key of ``new_key``.

        Raises
        ------
        UsageError
            If the key is another one: it would not stand in the run's ledger.
        OperationError
            If it could not be written, after all attempts; the record has it already.
        """
        _check_mine(key, mine=key in self._made)
        self._perform(OperationKind.PUT, key)

    def get(self, key: str, offset: int = 0, length: int | None = None) -> bytearray:
        """Read an object or a range of it, compare it, and return it.

        Parameters
        ----------
        key
            Of an existing object.
        offset, length
            The range; None for all from ``offset`` on.

        Raises
        ------
        UsageError
            If the object has no such range.
        OperationError
            If it could not be read; ``Corrupt`` if it is not what was written.
        """
        return self._read(key, offset, length, keep_data=True).data or bytearray()

    def check(self, key: str, offset: int = 0, length: int | None = None) -> None:
        """Read and compare as ``get`` does, and keep nothing in memory."""
        self._read(key, offset, length, keep_data=False)

    def head(self, key: str) -> int:
        """Return the size that the store gives of an object; raises as ``get``."""
        return self._perform(OperationKind.HEAD, key).size

    def list(self, prefix: str | None = None) -> list[str]:
        """Return the keys below a prefix, the target's if none is given; raises as ``get``.

        Each thousand is a request, and an operation, of its own.
        """
        prefix = self.target.prefix if prefix is None else prefix
        found: list[str] = []
        while True:
            page = self._perform(OperationKind.LIST, prefix, list_after=found[-1] if found else "")
            found += page.keys
            if not page.more:
                return found

    def delete(self, key: str) -> None:
        """Delete an object that this function has made, with ``new_key`` or below ``prefix``.

        Raises
        ------
        UsageError
            If the key is another one.
        OperationError
            If the store refuses.
        """
        _check_mine(key, mine=key in self._made or key.startswith(self.prefix))
        self._perform(OperationKind.DELETE, key)

    @contextmanager
    def measure(self, name: str, *, bytes: int = 0) -> Iterator[Span]:  # noqa: A002 - as in records
        """Measure a block, for what the function does with a library of its own.

        Parameters
        ----------
        name
            What stands in the records; the same for what is to be one line of a report.
        bytes
            What moves in it. Leave it out for a block around operations of this context:
            they count by themselves.
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

    def verify(self, key: str, offset: int, data: Any) -> int:  # noqa: ANN401 - NumPy has buffers
        """Compare what the last block of this thread has read with what was written.

        Outside of the block it costs the block nothing. Each byte counts: compare it once.

        Parameters
        ----------
        key
            Of the bytes, as in ``content``.
        offset
            Where in them ``data`` begins.
        data
            Anything contiguous with a buffer, an array for instance.

        Returns
        -------
        int
            Bytes that are wrong. The block has failed if there are any.

        Raises
        ------
        UsageError
            If there was no block.
        """
        block: Span | None = getattr(self._mine, "block", None)
        if block is not None and key in block.read:
            raise UsageError(
                f"{key} was read, and verified, by the context in this block: it would count twice",
                hint="verify what a library of your own has read",
            )
        if block is None:
            raise UsageError(
                "no block has read what is to be verified",
                hint="with context.measure(NAME): ...; what context.get reads is verified there",
            )
        return block.verify(key, offset, data)

    def finish(self) -> None:
        """Put the blocks into the records: nothing is verified any more."""
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
            raise UsageError(f"no range of an object begins at {offset} with {length} bytes")
        block: Span | None = getattr(self._mine, "block", None)
        if block is not None and block.end_ns is None:
            block.read.add(key)
        if offset == 0 and length == size:
            return self._perform(OperationKind.GET, key, keep_data=keep_data)
        if length is None:
            raise UsageError(f"a range of {key} needs a length: its key declares no size")
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
            raise UsageError(f"client {self.target.client!r} has no {kind}")
        if self.remaining_s < 0:
            raise DeadlineExceeded("the function's own deadline passed")
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
            f"{key} is not an object that this function made",
            hint="new_key() gives the keys that stand in the run's ledger",
        )


def _raise_if_failed(done: MeasuredOperation) -> None:
    """Raise what the records have already."""
    if done.bug:
        raise RuntimeError(done.bug)
    if not done.error:
        return
    operation = done.operation
    why = next((a.detail for a in reversed(done.attempts) if a.detail), operation.error)
    if operation.bad_bytes:
        why = f"{operation.bad_bytes} bytes are wrong"
    raise _ERRORS.get(done.error, OperationError)(f"{operation.kind}: {why}")
