"""Write new objects of one size at random keys."""

from collections.abc import Iterator

from serverless_bench.keys import object_key
from serverless_bench.spec import InvocationSpec, OperationKind, OperationSpec


class Write:
    """One put for each object of the invocation."""

    creates_objects = True

    def operations(self, invocation: InvocationSpec) -> Iterator[OperationSpec]:
        """Yield the puts; their keys depend on run, index and attempt alone."""
        size = invocation.object_bytes
        if size is None:
            raise ValueError("the write workload needs object_bytes")
        for number in range(invocation.objects):
            key = object_key(
                prefix=invocation.target.prefix,
                run_id=invocation.run_id,
                index=invocation.index,
                attempt=invocation.attempt,
                number=number,
                size=size,
            )
            yield OperationSpec(index=number, kind=OperationKind.PUT, key=key, size=size)


WORKLOAD = Write()
