"""The workload of a user function, which ``features.custom.user_function`` calls."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from serverless_bench.features.custom.load import FunctionLoad
from serverless_bench.job.abilities import RunsCode, RunsOnce
from serverless_bench.job.planned_objects import planned_object
from serverless_bench.job.workload import NEW_OBJECTS, Appearance, Trait, Workload

if TYPE_CHECKING:
    from serverless_bench.job.spec import InvocationSpec
    from serverless_bench.worker.runner import InvocationRunner

ALLOW_CODE: Final = "SBENCH_ALLOW_CODE"
"""Environment variable; ``1`` lets a worker run code that comes with an invocation."""


class OwnFunction(Workload, RunsCode, RunsOnce):
    """The function determines the operations at run time; only its objects are known before."""

    settings = (*NEW_OBJECTS, "key_file")
    traits = Trait.CREATES_OBJECTS | Trait.READS_OBJECTS | Trait.REPORTS_KEYS
    look = Appearance(hue="pink")
    load_type = FunctionLoad
    default_number = 4
    # An operation has the name of a block for its key.
    environment = {ALLOW_CODE: "1"}  # noqa: RUF012
    not_again = (
        "a run directory has no code: pass the function to resume_job to launch missing functions"
    )

    def keys(self, invocation: "InvocationSpec") -> Iterator[str]:
        """Yield the keys of the objects that ``FunctionContext.new_key`` returns."""
        if invocation.size is None and invocation.load.sizes is None:
            return
        yield from (planned_object(invocation, number).key for number in range(invocation.objects))

    def run_code(self, runner: "InvocationRunner") -> str | None:
        """Call the function."""
        # Only jobs with user functions pay for loading this.
        from serverless_bench.features.custom.user_function import run_function

        return run_function(runner)


WORKLOAD = OwnFunction()
