"""Changes of a function in each block: other operations or none, a tax on CPU or lock."""

import threading
from collections import Counter
from collections.abc import Callable
from ctypes import PyDLL
from functools import partial
from hashlib import pbkdf2_hmac
from typing import TYPE_CHECKING, Final

from serverless_bench.base.clock import monotonic_ns, sleep, thread_ns
from serverless_bench.base.units import NS_PER_S
from serverless_bench.features.why.interventions import (
    LEVER,
    Interventions,
    with_extra_threads,
    with_half_bytes,
)
from serverless_bench.job.keys import folder_of, parse_layout
from serverless_bench.job.operations import OperationSpec
from serverless_bench.job.workload import Workload
from serverless_bench.worker.cpu_time import cpu_ns
from serverless_bench.worker.operation import MeasuredOperation

if TYPE_CHECKING:
    from serverless_bench.worker.runner import InvocationRunner, Rounds

_STEP_S: Final = 0.004
"""Interval of the taxes: below the interpreter's switch interval of 5 ms."""
_ROUNDS: Final = 500
"""Iterations of a hash, which takes a fraction of a millisecond without the interpreter lock."""
_MOST_SKIPPED: Final = 64
"""Operations to skip in search of a prefix; a thread without objects in it waits."""


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
        self._ended = threading.local()
        self._over = threading.Event()
        self.doses = Counter(tax_ns=0, tax_of_ns=0, hold_ns=0, hold_of_ns=0, extra_operations=0)
        """Amounts of the changes, as fields of the record."""
        self._threads = [
            threading.Thread(target=self._take, args=(change, take), daemon=True)
            for change, take in (("cpu", self._burn), ("lock", self._hold))
            if change in plan.changes
        ]

    def __enter__(self) -> None:
        for thread in self._threads:
            thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def prepare(self, workload: Workload) -> "list[Rounds]":
        """Prepare the operations of changed blocks; return those of additional threads."""
        # The runner loads this module.
        from serverless_bench.worker.runner import Rounds

        invocation = self._runner.invocation
        if "bytes" in self._plan.changes:
            half = with_half_bytes(invocation)
            threads = range(invocation.load.threads)
            self._halved = [Rounds(workload, half, thread) for thread in threads]
        if "thread" in self._plan.changes:
            extended, threads = with_extra_threads(invocation, self._plan)
            return [Rounds(workload, extended, thread) for thread in threads]
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
        while (block := self.wait(thread)) is not None:
            change = self._plan.change(block)
            if thread >= self._runner.invocation.load.threads:
                self.doses["extra_operations"] += 1
            rounds = self._halved[thread] if change == "bytes" else own
            for _ in range(_MOST_SKIPPED):
                operation = rounds.next(ok, again=True)
                if operation is None or not self._is_unused(operation.key, block):
                    return operation
            self._sleep_through(block)
        return None

    def wait(self, thread: int = 0) -> int | None:
        """Wait until a thread may start an operation; return the block, or None at the end."""
        runner = self._runner
        while not (runner.is_over or runner.is_stopped):
            block = runner.clock.now_ns() // self._plan.block_ns
            change = self._plan.change(block)
            is_awake = change == "thread" or thread < runner.invocation.load.threads
            if is_awake and not self._plan.is_idle(block, runner.invocation.index):
                return block
            self._sleep_through(block)
        return None

    def _sleep_through(self, block: int) -> None:
        left_ns = (block + 1) * self._plan.block_ns - self._runner.clock.now_ns()
        sleep(max(left_ns, 0) / NS_PER_S)

    def _is_unused(self, key: str, block: int) -> bool:
        """Return whether the prefix of an object is in a half that is not used in a block."""
        invocation = self._runner.invocation
        folders = parse_layout(invocation.load.layout)
        folder = None if folders is None else folder_of(key, folders)
        return self._plan.is_idle(block, invocation.index, folder)

    def pause(self, done: MeasuredOperation) -> None:
        """Pause after an operation, if that is the change, for a share of the time of a turn."""
        # A user's function may have threads of its own.
        before_ns, self._ended.ns = getattr(self._ended, "ns", None), done.end_ns
        change = self._plan.change(done.start_ns // self._plan.block_ns)
        if before_ns is not None and change == "pause":
            turn_ns = done.end_ns - max(before_ns, done.start_ns - self._plan.block_ns)
            sleep(LEVER * turn_ns / NS_PER_S)
            self._ended.ns = self._runner.clock.now_ns()

    def _take(self, change: str, take: Callable[[Callable[[], bool]], dict[str, int]]) -> None:
        """Wait for each block with a change, and add the amounts that are taken in it."""
        while not self._over.is_set():
            block = self._runner.clock.now_ns() // self._plan.block_ns
            until_ns = (block + 1) * self._plan.block_ns
            if self._plan.change(block) == change:
                self.doses.update(take(partial(self._goes_on, until_ns)))
            self._over.wait(max(until_ns - self._runner.clock.now_ns(), 0) / NS_PER_S)

    def _goes_on(self, until_ns: int) -> bool:
        return self._runner.clock.now_ns() < until_ns and not self._over.is_set()

    def _burn(self, goes_on: Callable[[], bool]) -> dict[str, int]:
        """Use a share of a CPU, without the interpreter lock."""
        begin_ns, own_ns, used_ns = monotonic_ns(), thread_ns(), cpu_ns()
        while goes_on():
            if thread_ns() - own_ns < LEVER * (monotonic_ns() - begin_ns):
                pbkdf2_hmac("sha256", b"why", b"tax", _ROUNDS)
            else:
                sleep(_STEP_S)
        return {"tax_ns": thread_ns() - own_ns, "tax_of_ns": cpu_ns() - used_ns}

    def _hold(self, goes_on: Callable[[], bool]) -> dict[str, int]:
        """Hold the interpreter lock for a share of the time, without using a CPU."""
        # A function of PyDLL keeps the lock while it runs.
        hold = PyDLL(None).usleep
        begin_ns, held_ns = monotonic_ns(), 0
        while goes_on():
            start_ns = monotonic_ns()
            due_ns = LEVER * (start_ns - begin_ns) - held_ns
            hold(int(min(max(due_ns, 0) / 1000, _STEP_S * 1e6)))
            held_ns += monotonic_ns() - start_ns
            sleep(_STEP_S * (1 - LEVER))
        return {"hold_ns": held_ns, "hold_of_ns": monotonic_ns() - begin_ns}
