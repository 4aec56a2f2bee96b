"""Write new objects at random keys."""

from serverless_bench.job.operations import OperationKind, OperationSpec
from serverless_bench.job.planned_objects import planned_object
from serverless_bench.job.spec import InvocationSpec
from serverless_bench.job.workload import Stream, Workload


class Write(Workload):
    """One put for each object of the invocation."""

    creates_objects = True

    def operations(self, invocation: InvocationSpec, thread: int = 0) -> Stream:
        """Yield the puts; their keys depend on run, index and launch alone."""
        for number in range(thread, invocation.objects, invocation.load.threads):
            made = planned_object(invocation, number)
            yield OperationSpec(kind=OperationKind.PUT, key=made.key, size=made.size)


WORKLOAD = Write()
