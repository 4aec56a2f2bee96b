"""Carry out the changes of ``sbench why`` inside a function; no other job loads this module."""

import threading
from collections.abc import Iterator
from ctypes import PyDLL
from hashlib import pbkdf2_hmac
from typing import TYPE_CHECKING, Any, Final, Self

from serverless_bench.clock import monotonic_ns, sleep, thread_ns
from serverless_bench.job.interventions import with_extra_thread, with_half_bytes
from serverless_bench.job.keys import parse_layout
from serverless_bench.job.operations import OperationSpec
from serverless_bench.job.workload import Workload
from serverless_bench.units import NS_PER_S
from serverless_bench.worker.cpu_time import cpu_ns
from serverless_bench.worker.operation import MeasuredOperation

if TYPE_CHECKING:
    from serverless_bench.worker.runner import InvocationRunner, Rounds

_STEP_S: Final = 0.004
"""Interval of the taxes: below the interpreter's switch interval of 5 ms."""
_ROUNDS: Final = 500
"""Iterations of a hash, which takes a fraction of a millisecond without the interpreter's lock."""
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
        self._over = threading.Event()
        self._halved: list[Rounds] = []
        self._ended_ns: int | None = None
        self.extra_operations = 0
        """Operations that the additional thread started."""
        self._tax_ns = self._tax_of_ns = self._hold_ns = self._hold_of_ns = 0

    def __enter__(self) -> Self:
        taxes = {"processor": self._burn, "lock": self._hold}
        self._threads = [
            threading.Thread(target=do, name=f"why-{change}", daemon=True)
            for change, do in taxes.items()
            if change in self._plan.changes
        ]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def record(self) -> dict[str, Any]:
        """Return the measured doses, as fields of the record."""
        return {
            "tax_ns": self._tax_ns,
            "tax_of_ns": self._tax_of_ns,
            "hold_ns": self._hold_ns,
            "hold_of_ns": self._hold_of_ns,
            "extra_operations": self.extra_operations,
        }

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
        while not self._runner.is_over:
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
        while not self._runner.is_over:
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
        idle = self._plan.is_idle(change, block, self._index)
        return change, idle, (block + 1) * self._plan.block_ns

    def _sleep(self, until_ns: int) -> None:
        sleep(max(until_ns - self._runner.clock.now_ns(), 0) / NS_PER_S)

    def _blocks_of(self, change: str) -> Iterator[int]:
        """Wait for each block of a change, and yield its end."""
        while not self._over.is_set():
            current, _, until_ns = self._now()
            if current == change:
                yield until_ns
            else:
                self._over.wait(max(until_ns - self._runner.clock.now_ns(), 0) / NS_PER_S)

    def _burn(self) -> None:
        """Use a share of a processor, without the interpreter's lock."""
        lever, now_ns = self._plan.lever, self._runner.clock.now_ns
        for until_ns in self._blocks_of("processor"):
            begin_ns, own_ns, used_ns = monotonic_ns(), thread_ns(), cpu_ns()
            while now_ns() < until_ns and not self._over.is_set():
                if thread_ns() - own_ns < lever * (monotonic_ns() - begin_ns):
                    pbkdf2_hmac("sha256", b"why", b"tax", _ROUNDS)
                else:
                    sleep(_STEP_S)
            self._tax_ns += thread_ns() - own_ns
            self._tax_of_ns += cpu_ns() - used_ns

    def _hold(self) -> None:
        """Hold the interpreter's lock for a share of the time, without using a processor."""
        # A function of PyDLL keeps the lock while it runs.
        hold = PyDLL(None).usleep
        lever, now_ns = self._plan.lever, self._runner.clock.now_ns
        for until_ns in self._blocks_of("lock"):
            begin_ns, held_ns = monotonic_ns(), 0
            while now_ns() < until_ns and not self._over.is_set():
                start_ns = monotonic_ns()
                due_ns = lever * (start_ns - begin_ns) - held_ns
                hold(int(min(max(due_ns, 0) / 1000, _STEP_S * 1e6)))
                held_ns += monotonic_ns() - start_ns
                sleep(_STEP_S * (1 - lever))
            self._hold_ns += held_ns
            self._hold_of_ns += monotonic_ns() - begin_ns
