"""Changes of a function's operations while it runs."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from serverless_bench.job.operations import OperationSpec
    from serverless_bench.job.workload import Workload
    from serverless_bench.worker.operation import MeasuredOperation
    from serverless_bench.worker.runner import Rounds


class OperationChanges(Protocol):
    """Part of a policy in one function; its threads share it. Entered before the warm-up."""

    @property
    def doses(self) -> Mapping[str, int]:
        """Amounts of the changes, as fields of the record."""

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...

    def prepare(self, workload: "Workload") -> "list[Rounds]":
        """Prepare the changed operations; return those of additional threads."""

    def next(self, thread: int, own: "Rounds", ok: bool | None) -> "OperationSpec | None":  # noqa: FBT001
        """Return the next operation of a thread in place of ``own``; None at the end of the run."""

    def wait(self) -> object:
        """Wait until an operation may start."""

    def pause(self, done: "MeasuredOperation") -> None:
        """Note an operation, and pause after it if required."""
