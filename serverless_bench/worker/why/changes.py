"""Operations of a function in each block: of an additional thread, half as large, or none."""

from typing import TYPE_CHECKING, Final

from serverless_bench.clock import sleep
from serverless_bench.job.interventions import (
    Interventions,
    with_extra_thread,
    with_half_bytes,
)
from serverless_bench.job.keys import parse_layout
from serverless_bench.job.operations import OperationSpec
from serverless_bench.job.workload import Workload
from serverless_bench.units import NS_PER_S
from serverless_bench.worker.operation import MeasuredOperation
from serverless_bench.worker.why.taxes import Taxes

if TYPE_CHECKING:
    from serverless_bench.worker.runner import InvocationRunner, Rounds

_MOST_SKIPPED: Final = 64
"""Operations to skip in search of a prefix; a thread may have objects in few prefixes."""


class Changes:
    """The changes in one function; its threads share it.

    Parameters
    ----------
    runner
        Runner of the invocation.
    plan
        The blocks.
    """

    def __init__(self, runner: "InvocationRunner", plan: Interventions) -> None:
        self._plan = plan
        self._runner = runner
        self._halved: list[Rounds] = []
        self._ended_ns: int | None = None
        self.extra_operations = 0
        """Operations that the additional thread started."""
        self.taxes = Taxes(plan, runner.clock)

    def record(self) -> dict[str, int]:
        """Return the measured doses, as fields of the record."""
        return {**self.taxes.taken, "extra_operations": self.extra_operations}

    def prepare(self, workload: Workload) -> "list[Rounds]":
        """Prepare the operations of changed blocks; return those of additional threads."""
        # The runner loads this module.
        from serverless_bench.worker.runner import Rounds  # noqa: PLC0415

        invocation = self._runner.invocation
        if "bytes" in self._plan.changes:
            half = with_half_bytes(invocation)
            threads = range(invocation.load.threads)
            self._halved = [Rounds(workload, half, thread) for thread in threads]
        if "thread" in self._plan.changes:
            return [Rounds(workload, *with_extra_thread(invocation))]
        return []

    def next(self, thread: int, own: "Rounds", ok: bool | None) -> OperationSpec | None:  # noqa: FBT001
        """Return the next operation of a thread; None at the end of the run.

        Parameters
        ----------
        thread
            Number of the thread.
        own
            Operations of this thread in blocks without a change.
        ok
            Whether its previous operation succeeded; None for the first.
        """
        change = self.wait(thread)
        if change is None:
            return None
        if thread >= self._runner.invocation.load.threads:
            self.extra_operations += 1
        rounds = self._halved[thread] if change == "bytes" else own
        operation = rounds.next(ok, again=True)
        for _ in range(_MOST_SKIPPED):
            if operation is None or change != "prefixes" or not self._is_unused(operation.key):
                break
            operation = rounds.next(ok, again=True)
        return operation

    def wait(self, thread: int = 0) -> str | None:
        """Wait until a thread may start an operation; return the change, or None at the end."""
        runner = self._runner
        while not (runner.is_over or runner.is_stopped):
            now_ns = runner.clock.now_ns()
            block = now_ns // self._plan.block_ns
            change = self._plan.change(block)
            is_awake = change == "thread" or thread < runner.invocation.load.threads
            if is_awake and not self._plan.is_idle(block, runner.invocation.index):
                return change
            sleep(((block + 1) * self._plan.block_ns - now_ns) / NS_PER_S)
        return None

    def _is_unused(self, key: str) -> bool:
        """Return whether the prefix of an object is in the half that is not used now."""
        folders = parse_layout(self._runner.invocation.load.layout) or 1
        digits = key.rpartition("/")[2].partition(".")[0]
        block = self._runner.clock.now_ns() // self._plan.block_ns
        return int(digits, 16) % folders % 2 == self._plan.side(block)

    def pause(self, done: MeasuredOperation) -> None:
        """Pause after an operation, if that is the change, for a share of the time of a turn."""
        before_ns, self._ended_ns = self._ended_ns, done.end_ns
        change = self._plan.change(done.start_ns // self._plan.block_ns)
        if before_ns is not None and change == "pause":
            turn_ns = done.end_ns - max(before_ns, done.start_ns - self._plan.block_ns)
            sleep(self._plan.lever * turn_ns / NS_PER_S)
            self._ended_ns = self._runner.clock.now_ns()
