"""Write arrays through an array library, append to them, or read them back."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from serverless_bench.job.keys import declared_size
from serverless_bench.job.load import ArraySpec
from serverless_bench.job.operations import OperationKind, OperationSpec
from serverless_bench.job.planned_objects import planned_object
from serverless_bench.job.spec import InvocationSpec
from serverless_bench.job.workload import Stream, Workload
from serverless_bench.payload.array_layout import array_bytes, array_keys

if TYPE_CHECKING:
    from serverless_bench.worker.operation_context import Performer


class Array(Workload):
    """One operation for each array, or for each append to the invocation's one array."""

    creates_objects = True

    def keys(self, invocation: InvocationSpec) -> Iterator[str]:
        """Yield the key of every chunk and of the metadata; arrays in files have none."""
        array = _array(invocation)
        if array.path is not None:
            return
        for key in new_arrays(invocation):
            yield from array_keys(array, key)

    def performer(self, invocation: InvocationSpec) -> "Performer":
        """Return what calls the library: it brings NumPy, which nothing else here needs."""
        from serverless_bench.workloads.array.operation import ArrayPerformer  # noqa: PLC0415

        return ArrayPerformer(_array(invocation), invocation.target)

    def operations(self, invocation: InvocationSpec, thread: int = 0) -> Stream:
        """Yield the operations, all to the first thread: a library has threads of its own."""
        if thread:
            return
        array = _array(invocation)
        if array.operation == "append":
            yield from _appends(invocation, array)
            return
        reads = array.operation == "read"
        kind = OperationKind.READ_ARRAY if reads else OperationKind.WRITE_ARRAY
        keys = invocation.keys * invocation.repeats if reads else new_arrays(invocation)
        for key in keys:
            yield OperationSpec(kind=kind, key=key, size=declared_size(key))


def new_arrays(invocation: InvocationSpec) -> Iterator[str]:
    """Yield the keys of the arrays that an invocation makes: of each, all begins with it."""
    array = _array(invocation)
    if array.operation == "read":
        return
    size, count = array_bytes(array), invocation.objects
    if array.operation == "append":
        yield planned_object(invocation, 0, size=size * count).key
        return
    for number in range(count):
        yield planned_object(invocation, number, size=size).key


def _appends(invocation: InvocationSpec, array: ArraySpec) -> Iterator[OperationSpec]:
    (key,) = new_arrays(invocation)
    size = array_bytes(array)
    for number in range(invocation.objects):
        yield OperationSpec(
            kind=OperationKind.APPEND_ARRAY,
            key=key,
            size=declared_size(key),
            offset=number * size,
            length=size,
        )


def _array(invocation: InvocationSpec) -> ArraySpec:
    if invocation.load.array is None:
        raise ValueError("the array workload needs an array")
    return invocation.load.array


WORKLOAD = Array()
