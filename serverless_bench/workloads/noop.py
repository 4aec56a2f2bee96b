"""Nothing: what remains is what the fan-out itself costs."""

from collections.abc import Iterator

from serverless_bench.spec import InvocationSpec, OperationSpec


class Noop:
    """An invocation without operations."""

    creates_objects = False

    def operations(self, invocation: InvocationSpec) -> Iterator[OperationSpec]:  # noqa: ARG002
        """Yield nothing."""
        yield from ()


WORKLOAD = Noop()
