"""Nothing: what remains is what the fan-out itself costs."""

from typing import TYPE_CHECKING

from serverless_bench.job.workload import Stream, Workload

if TYPE_CHECKING:
    from serverless_bench.job.spec import InvocationSpec


class Noop(Workload):
    """An invocation without operations."""

    uses_store = False

    def operations(self, invocation: "InvocationSpec", thread: int = 0) -> Stream:  # noqa: ARG002
        """Yield nothing."""
        yield from ()


WORKLOAD = Noop()
