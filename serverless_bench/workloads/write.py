"""Write new objects at random keys."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from serverless_bench.job.load import Load
from serverless_bench.job.operations import OperationKind, OperationSpec
from serverless_bench.job.planned_objects import planned_object
from serverless_bench.job.workload import CONTENT, NEW_OBJECTS, PACE, PACED, Stream, Workload

if TYPE_CHECKING:
    from serverless_bench.job.spec import InvocationSpec


class Write(Workload):
    """One put for each object of the invocation."""

    settings = (*PACED, *NEW_OBJECTS)
    load = (*PACE, *CONTENT)
    needs_size = True
    creates_objects = True
    deals_objects = True
    past_tense = "wrote"
    hue = "green"

    def kinds(self, load: Load) -> Mapping[OperationKind, float]:
        """Return puts."""
        return {OperationKind.PUT: 1.0}

    def operations(self, invocation: "InvocationSpec", thread: int = 0) -> Stream:
        """Yield the puts; their keys depend only on run, index and launch."""
        for number in range(thread, invocation.objects, invocation.load.threads):
            planned = planned_object(invocation, number)
            yield OperationSpec(kind=OperationKind.PUT, key=planned.key, size=planned.size)


WORKLOAD = Write()
