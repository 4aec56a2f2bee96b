"""What one function does: each workload turns an invocation into operations."""

from collections.abc import Iterator, Mapping
from typing import Final, Protocol, cast

from serverless_bench import plugins
from serverless_bench.spec import InvocationSpec, OperationSpec

WORKLOADS: Final[Mapping[str, str]] = {
    "noop": "serverless_bench.workloads.noop:WORKLOAD",
    "read": "serverless_bench.workloads.read:WORKLOAD",
    "write": "serverless_bench.workloads.write:WORKLOAD",
}


class Workload(Protocol):
    """Pure: performs nothing, reads no clock, and gives the same answer again."""

    @property
    def creates_objects(self) -> bool:
        """Whether its puts have to stand in the run's ledger before it may run."""

    def operations(self, invocation: InvocationSpec) -> Iterator[OperationSpec]:
        """Yield what the invocation is to do, in order."""


def open_workload(name: str) -> Workload:
    """Return the workload called ``name``."""
    return cast("Workload", plugins.load("workloads", WORKLOADS, name))
