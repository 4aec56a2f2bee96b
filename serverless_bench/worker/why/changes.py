"""Operations of a function in each block: of an additional thread, half as large, or none."""

from typing import TYPE_CHECKING, Final

from serverless_bench.clock import sleep
from serverless_bench.job.interventions import with_extra_thread, with_half_bytes
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
        Runner of the invocation, which has interventions.
    """

    def __init__(self, runner: "InvocationRunner") -> None:
        plan = runner.invocation.interventions
        if plan is None:
            raise ValueError("this invocation has no interventions")
        self._plan = plan
        self._runner = runner
        self._index = runner.invocation.index
        self._folders = parse_layout(runner.invocation.load.layout) or 0
        self._halved: list[Rounds] = []
        self._ended_ns: int | None = None
        self.extra_operations = 0
        """Operations that the additional thread started."""
        self.taxes = Taxes(plan, runner.clock)

    def record(self) -> dict[str, int]:
        """Return the measured doses, as fields of the record."""
        return {**self.taxes.record(), "extra_operations": self.extra_operations}

    def prepare(self, workload: Workload) -> "list[Rounds]":
        """Prepare the operations of changed blocks; return those of additional threads."""
        # The runner loads this module.
        from serverless_bench.worker.runner import Rounds  # noqa: PLC0415

        invocation = self._runner.invocation
        if "bytes" in self._plan.changes:
            half = with_half_bytes(invocation)
            threads = range(invocation.load.threads)
            self._halved = [Rounds(workload, half, thread) for thread in threads]
        return [
            Rounds(workload, *with_extra_thread(invocation))
            for change in self._plan.changes
            if change == "thread"
        ]

    def next(self, thread: int, own: "Rounds", ok: bool | None) -> OperationSpec | None:  # noqa: FBT001
        """Return the next operation of a thread; None at the end of the run.

        A thread that has nothing to do in this block waits for the next block.

        Parameters
        ----------
        thread
            Number of the thread.
        own
            Operations of this thread in blocks without a change.
        ok
            Whether its previous operation succeeded; None for the first.
        """
        is_extra = thread >= self._runner.invocation.load.threads
        while not (self._runner.is_over or self._runner.is_stopped):
            change, idle, until_ns = self._now()
            if idle or (is_extra and change != "thread"):
                self._sleep(until_ns)
                continue
            self.extra_operations += is_extra
            rounds = self._halved[thread] if change == "bytes" else own
            operation = rounds.next(ok, again=True)
            skipped = 0
            while operation is not None and self._skips(operation, skipped):
                operation, skipped = rounds.next(ok, again=True), skipped + 1
            return operation
        return None

    def wait_while_idle(self) -> None:
        """Wait until the function may start an operation."""
        while not (self._runner.is_over or self._runner.is_stopped):
            _, idle, until_ns = self._now()
            if not idle:
                return
            self._sleep(until_ns)

    def _skips(self, operation: OperationSpec, skipped: int) -> bool:
        """Return whether an operation is left out because its prefix is in the unused half."""
        block = self._block()
        if skipped >= _MOST_SKIPPED or self._plan.change(block) != "prefixes":
            return False
        digits = operation.key.rpartition("/")[2].partition(".")[0]
        return int(digits, 16) % self._folders % 2 == self._plan.side(block)

    def pause(self, done: MeasuredOperation) -> None:
        """Pause after an operation, if that is the change, for a share of the time of a turn."""
        before_ns, self._ended_ns = self._ended_ns, done.end_ns
        if before_ns is not None and self._plan.change(self._block(done.start_ns)) == "pause":
            turn_ns = done.end_ns - max(before_ns, done.start_ns - self._plan.block_ns)
            sleep(self._plan.lever * turn_ns / NS_PER_S)
            self._ended_ns = self._runner.clock.now_ns()

    def _block(self, now_ns: int | None = None) -> int:
        now_ns = self._runner.clock.now_ns() if now_ns is None else now_ns
        return now_ns // self._plan.block_ns

    def _now(self) -> tuple[str, bool, int]:
        """Return the present change, whether this function idles, and the end of the block."""
        block = self._block()
        change = self._plan.change(block)
        idle = self._plan.is_idle(block, self._index)
        return change, idle, (block + 1) * self._plan.block_ns

    def _sleep(self, until_ns: int) -> None:
        sleep(max(until_ns - self._runner.clock.now_ns(), 0) / NS_PER_S)
