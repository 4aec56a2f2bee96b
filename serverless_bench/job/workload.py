"""What one invocation does: each workload turns it into operations."""

from collections.abc import Generator, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from serverless_bench.job.operations import OperationSpec
from serverless_bench.plugins import Registry

if TYPE_CHECKING:
    from serverless_bench.job.spec import InvocationSpec
    from serverless_bench.rundir.record import OperationRow
    from serverless_bench.worker.operation_context import Performer

Stream = Generator[OperationSpec, bool | None, None] | Iterator[OperationSpec]
"""Operations of one thread, one after the other."""


class Workload:
    """Performs nothing, reads no clock, and gives the same answers again."""

    creates_objects = False
    """Whether it makes objects: they have to stand in the run's ledger before it may run."""
    receives_results = False
    """Whether its streams are generators that receive whether each operation succeeded."""

    def keys(self, invocation: "InvocationSpec") -> Iterator[str]:
        """Yield every key that the invocation may create."""
        if not self.creates_objects:
            return
        for thread in range(invocation.load.threads):
            for operation in self.operations(invocation, thread):
                if operation.kind.creates:
                    yield operation.key

    def prepare(self, invocation: "InvocationSpec", thread: int) -> Stream:  # noqa: ARG002
        """Yield what one thread is to do before the measurement begins: nothing, as a rule."""
        yield from ()

    def operations(self, invocation: "InvocationSpec", thread: int = 0) -> Stream:
        """Yield what one thread of the invocation is to do, in order.

        A workload whose next operation depends on the result of the last one sets
        ``receives_results``: the result is the value of its ``yield``.
        """
        raise NotImplementedError

    def performer(self, invocation: "InvocationSpec") -> "Performer | None":  # noqa: ARG002
        """Return who performs kinds of operations that are no request of a client; None for no one.

        What it takes is loaded here, and only in functions that run this workload.
        """
        return None

    def rounds(self, invocation: "InvocationSpec", thread: int) -> Iterator[Stream]:
        """Yield the rounds of one thread without an end, each begun when the last is over.

        Warm-up and duration take as many as they need. They are all the same, unless what
        one round did is there in the next.
        """
        while True:
            yield self.operations(invocation, thread)

    def closing(
        self,
        invocation: "InvocationSpec",  # noqa: ARG002
        done: "Iterable[OperationRow]",  # noqa: ARG002
    ) -> Stream:
        """Yield what is to be done when all threads are through, and not counted.

        Parameters
        ----------
        invocation
            Which.
        done
            What all threads have done.
        """
        yield from ()


WORKLOADS: Final = Registry[Workload](
    "workloads",
    {
        "array": "serverless_bench.workloads.array.workload:WORKLOAD",
        "contend": "serverless_bench.workloads.contend.workload:WORKLOAD",
        "function": "serverless_bench.workloads.function:WORKLOAD",
        "mixed": "serverless_bench.workloads.mixed:WORKLOAD",
        "noop": "serverless_bench.workloads.noop:WORKLOAD",
        "read": "serverless_bench.workloads.read:WORKLOAD",
        "write": "serverless_bench.workloads.write:WORKLOAD",
    },
)

open_workload: Final = WORKLOADS.load
