"""Read existing objects and compare every byte with what was written."""

from collections.abc import Iterator

from serverless_bench.keys import declared_size
from serverless_bench.spec import InvocationSpec, OperationKind, OperationSpec


class Read:
    """One get for each key of the invocation, the whole list as often as asked."""

    creates_objects = False

    def operations(self, invocation: InvocationSpec) -> Iterator[OperationSpec]:
        """Yield the gets; an object that sbench did not write has no known size."""
        for index, key in enumerate(invocation.keys * invocation.repeats):
            yield OperationSpec(
                index=index, kind=OperationKind.GET, key=key, size=declared_size(key)
            )


WORKLOAD = Read()
