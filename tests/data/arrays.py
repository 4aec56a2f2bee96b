"""Arrays for tests: written, appended to and read as the function body does it."""

import random
import uuid
from dataclasses import replace
from pathlib import Path

from serverless_bench.base.clock import monotonic_ns
from serverless_bench.clients import open_client
from serverless_bench.features.array.load import ArraySpec, array_bytes
from serverless_bench.features.array.operation import ArrayPerformer
from serverless_bench.job.keys import object_key
from serverless_bench.job.operations import OperationKind, OperationSpec
from serverless_bench.job.target import Target, Transfer
from serverless_bench.rundir.record import Usage
from serverless_bench.worker.operation_context import InvocationContext, OperationContext
from serverless_bench.worker.retry import Retrier

NOWHERE = Target(bucket="files", endpoint_url="http://127.0.0.1:9")
TRANSFER = Transfer(retries=0)


def key_of(array: ArraySpec, *, appends: int = 1, prefix: str = "sbench/") -> str:
    return object_key(
        prefix=prefix,
        run_id=uuid.uuid4().hex,
        index=0,
        launch=0,
        number=0,
        size=appends * array_bytes(array),
    )


class Session:
    """Arrays in one place; it keeps the state that a function would keep."""

    def __init__(self, target: Target = NOWHERE) -> None:
        self.target = target
        self._last: OperationContext | None = None

    @property
    def last(self) -> OperationContext:
        """The latest operation, which may have failed."""
        assert self._last is not None
        return self._last

    def write(self, array: ArraySpec, key: str) -> Usage:
        return self._do(OperationKind.WRITE_ARRAY, array, key)

    def append(self, array: ArraySpec, key: str, number: int) -> Usage:
        offset = number * array_bytes(array)
        return self._do(OperationKind.APPEND_ARRAY, array, key, offset)

    def read(self, array: ArraySpec, key: str) -> int:
        """Read an array and return how many of its bytes were right."""
        array = replace(array, operation="read")
        return self._perform(OperationKind.READ_ARRAY, array, key).verified_bytes

    def _retrier(self) -> Retrier:
        client = open_client(self.target, TRANSFER)
        deadline_ns = monotonic_ns() + 10**13
        return Retrier(client, 0, deadline_ns, random.Random(0))

    def _do(self, kind: OperationKind, array: ArraySpec, key: str, offset: int = 0) -> Usage:
        usage = self._perform(kind, array, key, offset).usage
        assert usage is not None
        return usage

    def _perform(
        self, kind: OperationKind, array: ArraySpec, key: str, offset: int = 0
    ) -> OperationContext:
        size = int(key.rpartition(".")[2])
        operation = OperationSpec(kind=kind, key=key, size=size, offset=offset)
        performer = ArrayPerformer(array, self.target)
        invocation = InvocationContext(performer=performer)
        self._last = context = OperationContext(operation, TRANSFER, self._retrier(), invocation)
        performer.perform(context)
        performer.compare(context)
        return context


def files_of(array: ArraySpec, key: str) -> dict[str, Path]:
    """Every file of an array, by the key that an object would have."""
    assert array.path is not None
    folder = Path(array.path) / key.rpartition("/")[2]
    found = (path for path in folder.rglob("*") if path.is_file())
    return {f"{key}/{path.relative_to(folder).as_posix()}": path for path in found}
