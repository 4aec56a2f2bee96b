"""Nothing: what remains is what the fan-out itself costs."""

from serverless_bench.job.spec import InvocationSpec
from serverless_bench.job.workload import Stream, Workload


class Noop(Workload):
    """An invocation without operations."""

    def operations(self, invocation: InvocationSpec, thread: int = 0) -> Stream:  # noqa: ARG002
        """Yield nothing."""
        yield from ()


WORKLOAD = Noop()
