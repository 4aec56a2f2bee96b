"""Write new objects at random keys."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from serverless_bench.job.operations import OperationKind, OperationSpec
from serverless_bench.job.planned_objects import planned_object
from serverless_bench.job.workload import (
    NEW_OBJECTS,
    PACED,
    Appearance,
    Load,
    Stream,
    Trait,
    Workload,
)

if TYPE_CHECKING:
    from serverless_bench.job.spec import InvocationSpec


class Write(Workload):
    """One put for each object of the invocation."""

    settings = (*PACED, *NEW_OBJECTS)
    traits = Trait.NEEDS_SIZE | Trait.CREATES_OBJECTS | Trait.DEALS_OBJECTS
    look = Appearance(hue="green", past_tense="wrote")

    def kinds(self, load: Load) -> Mapping[OperationKind, float]:
        """Return puts."""
        return {OperationKind.PUT: 1.0}

    def operations(self, invocation: "InvocationSpec", thread: int = 0) -> Stream:
        """Yield the puts; their keys depend only on run, index and launch."""
        for number in range(thread, invocation.objects, invocation.load.threads):
            planned = planned_object(invocation, number)
            yield OperationSpec(kind=OperationKind.PUT, key=planned.key, size=planned.size)


WORKLOAD = Write()
