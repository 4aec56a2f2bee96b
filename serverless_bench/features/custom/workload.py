"""The workload of a user function, which ``features.custom.user_function`` calls."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from serverless_bench.job.planned_objects import planned_object
from serverless_bench.job.workload import CONTENT, NEW_OBJECTS, Workload

if TYPE_CHECKING:
    from serverless_bench.job.spec import InvocationSpec


class OwnFunction(Workload):
    """The function determines the operations at run time; only its objects are known before."""

    settings = (*NEW_OBJECTS, "key_file", "code", "hedge")
    load = (*CONTENT, "code")
    command = "call"
    default_number = 4
    creates_objects = True
    # An operation has the name of a block for its key.
    reports_keys = True
    runs_code = True
    hue = "pink"
    not_again = (
        "a run directory has no code: pass the function to resume_job to launch missing functions"
    )

    def keys(self, invocation: "InvocationSpec") -> Iterator[str]:
        """Yield the keys of the objects that ``FunctionContext.new_key`` returns."""
        if invocation.size is None and invocation.load.sizes is None:
            return
        for number in range(invocation.objects):
            yield planned_object(invocation, number).key


WORKLOAD = OwnFunction()
