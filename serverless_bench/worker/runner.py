"""What one invocation does: its threads, their rounds, and when each operation begins."""

import gc
import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Final

from serverless_bench.clients import open_client
from serverless_bench.clients.base import Client
from serverless_bench.clock import EpochClock, monotonic_ns, sleep
from serverless_bench.job.operations import OperationSpec
from serverless_bench.job.spec import InvocationSpec
from serverless_bench.job.workload import Stream, Workload, next_operation, open_workload
from serverless_bench.rundir.record import Overdue
from serverless_bench.units import NS_PER_S
from serverless_bench.worker.barrier import pass_barrier
from serverless_bench.worker.cpu_time import LockProbe, cpu_ns, thread_counted
from serverless_bench.worker.kept import Kept
from serverless_bench.worker.live_board import BoardWriter
from serverless_bench.worker.live_layout import WARM_UP
from serverless_bench.worker.meter import unseen
from serverless_bench.worker.operation import MeasuredOperation, measure
from serverless_bench.worker.operation_context import (
    InvocationContext,
    OperationContext,
    OperationResult,
)
from serverless_bench.worker.pacing import Schedule, at_most
from serverless_bench.worker.retry import Retrier, jitter_of

_SELDOM: Final = (20_000, 20, 20)
"""Thresholds of the garbage collector, in objects and in collections; 700, 10 and 10 otherwise."""
_AFTER_FAILURE_S: Final = 0.1
_LOOK_NS: Final = NS_PER_S // 4
"""Who waits for longer looks this often whether the driver has ended the run."""
_DEADLINE: Final = "deadline: stopped before the last operation"
_OTHER_THREAD: Final = "another thread failed"
_clients: Final = Kept()
forget_clients: Final = _clients.forget
"""Closes every connection that this process keeps for its next invocation."""


@dataclass(slots=True, kw_only=True)
class InvocationRunner:
    """Performs what one invocation asks for, and keeps what was measured."""

    invocation: InvocationSpec
    clock: EpochClock
    board: BoardWriter | None = None
    """Where the driver reads what is going on; None where they share no memory."""
    measured: list[MeasuredOperation] = field(default_factory=list)
    """In the order in which they ended; appending is atomic, so threads share it."""
    barrier: dict[str, int] = field(default_factory=dict)
    """How it passed the start barrier, as fields of its record; empty without one."""
    probe: LockProbe | None = None
    """Samples the interpreter's lock while several threads measure."""
    deadline_ns: int = 0
    """Monotonic instant after which nothing is begun any more."""
    _context: InvocationContext = field(default_factory=InvocationContext)
    _client: Client | None = None
    _end_ns: int | None = None
    """When the duration is over, once it has begun."""
    _schedule: Schedule | None = None
    _rounds: "list[Rounds]" = field(default_factory=list)
    _freed_ns: list[int] = field(default_factory=list)
    """When threads were free and the time was over."""
    _stopped: str | None = None
    """Why all threads are to stop; None while they may go on."""
    _stopped_ns: int | None = None
    """Since when."""
    _used_before_ns: int | None = None
    """Processor time of the process when the measurement began."""

    def __post_init__(self) -> None:
        if self.board is not None:
            self.board.follow(self.measured)

    def measure_all(self) -> str | None:
        """Do everything; return why it stopped early, if it did.

        All threads prepare, then all warm up; at the start barrier invocations wait for each
        other, and only then the duration and the schedule begin, for all threads together.
        """
        invocation = self.invocation
        self.deadline_ns = monotonic_ns() + round(invocation.deadline * NS_PER_S)
        workload = open_workload(invocation.workload)
        self._context.performer = workload.performer(invocation)
        self._in_threads(lambda thread: self._prepare(workload, thread))
        if self._stopped is None and workload.runs_code:
            # Only user functions pay for what it takes to load it.
            from serverless_bench.worker.user_function import run_function  # noqa: PLC0415

            return run_function(self)
        threads = range(invocation.load.threads)
        self._rounds = [Rounds(workload, invocation, thread) for thread in threads]
        rngs = [self._rng(thread) for thread in threads]
        if invocation.warm_up:
            self._in_threads(lambda thread: self._warm_up(self._rounds[thread], rngs[thread]))
        self.begin()
        if self._stopped is None:
            with ExitStack() as stack:
                stack.enter_context(seldom_collected())
                if invocation.load.threads > 1 or invocation.transfer.connections > 1:
                    # They share the interpreter's lock.
                    self.probe = stack.enter_context(LockProbe())
                    if self.board is not None:
                        self.board.probe = self.probe
                self._in_threads(lambda thread: self._measure(self._rounds[thread], rngs[thread]))
            self._close(workload, rngs[0])
        return self._stopped

    def begin(self) -> None:
        """Wait at the start barrier, if there is one; the measurement begins now."""
        invocation = self.invocation
        if invocation.gate_poll_s is not None:
            self.barrier = pass_barrier(invocation, self.client(), self._rng(0))
        self._used_before_ns = cpu_ns()
        begin_ns, duration_s = monotonic_ns(), invocation.duration
        if duration_s is not None:
            self._end_ns = begin_ns + round(duration_s * NS_PER_S)
        if invocation.load.rate is not None and self._stopped is None:
            self._schedule = Schedule(invocation, begin_ns, self._end_ns)

    @property
    def is_over(self) -> bool:
        """Whether the duration is over, or the driver has ended it; never, if there is none."""
        if self._end_ns is None:
            return False
        now_ns = monotonic_ns()
        if self.board is not None and self.board.stopped and now_ns < self._end_ns:
            self._end_ns = now_ns
            if self._schedule is not None:
                self._schedule.end(now_ns)
        return now_ns >= self._end_ns

    def overdue(self) -> tuple[Overdue, ...]:
        """Return what was due and never begun; once, when all threads are through."""
        if self._schedule is None:
            return ()
        rows = self._schedule.untaken(self._stopped_ns, min(self._freed_ns, default=None))
        if rows and self._end_ns is None:
            # The schedule would have ended with the operations, and so many are left.
            due = sum(row.count for row in rows)
            left = chain.from_iterable(rounds.left() for rounds in self._rounds)
            rows = at_most(rows, sum(1 for _ in islice(left, due)))
        origin_ns = self.clock.origin_ns
        return tuple(
            Overdue(
                first_ns=origin_ns + row.first_ns,
                last_ns=origin_ns + row.last_ns,
                count=row.count,
                until_ns=origin_ns + row.until_ns,
            )
            for row in rows
        )

    def client(self) -> Client:
        """Return the client of the job; the first call opens its library."""
        if self._client is None:
            target, transfer = self.invocation.target, self.invocation.transfer
            self._client = _clients.open(open_client, target, transfer)
        return self._client

    def measured_cpu_ns(self) -> int:
        """Return the processor time used since the measurement began."""
        return 0 if self._used_before_ns is None else cpu_ns() - self._used_before_ns

    def results(self) -> list[MeasuredOperation]:
        """Return what was measured, in order of start."""
        if self.invocation.load.threads > 1:
            self.measured.sort(key=lambda done: done.start_ns)
        return self.measured

    def perform(
        self,
        operation: OperationSpec,
        rng: random.Random,
        *,
        warmup: bool = False,
        intended_ns: int | None = None,
        keep_data: bool = False,
        list_after: str = "",
    ) -> tuple[MeasuredOperation, OperationResult]:
        """Perform one operation, keep what was measured, and return it with the result.

        Parameters
        ----------
        operation, warmup, intended_ns, keep_data, list_after
            As in ``OperationContext``.
        rng
            Source of the jitter before retries.
        """
        transfer, board = self.invocation.transfer, self.board
        on_moved = (
            unseen if board is None else board.on_moved[WARM_UP if warmup else operation.kind]
        )
        retrier = Retrier(
            self._client or self.client(), transfer.retries, self.deadline_ns, rng, on_moved
        )
        context = OperationContext(
            operation,
            transfer,
            retrier,
            self._context,
            warmup=warmup,
            intended_ns=intended_ns,
            keep_data=keep_data,
            list_after=list_after,
        )
        done, result = measure(context, self.clock)
        self.measured.append(done)
        if board is not None and done.end_ns >= board.due_ns:
            board.count(done.end_ns)
        if done.bug:
            self._stop(done.bug)
        elif monotonic_ns() > self.deadline_ns:
            self._stop(_DEADLINE)
        return done, result

    def _stop(self, why: str) -> None:
        if self._stopped is None:
            self._stopped_ns = min(monotonic_ns(), self.deadline_ns)
            self._stopped = why

    def _in_threads(self, do: Callable[[int], None]) -> None:
        threads = self.invocation.load.threads

        def counted(thread: int) -> None:
            with thread_counted():
                do(thread)

        with ThreadPoolExecutor(threads) as pool:
            try:
                if threads == 1:
                    do(0)
                    return
                # Threads make their connections; the library is opened once, here.
                self.client()
                futures = [pool.submit(counted, thread) for thread in range(threads)]
                for future in as_completed(futures):
                    future.result()
            except BaseException:
                # A bug, or Ctrl-C: the others would go on to their ends.
                self._stop(_OTHER_THREAD)
                raise

    def _rng(self, thread: int) -> random.Random:
        return jitter_of(self.invocation.seed, thread)

    def _prepare(self, workload: Workload, thread: int) -> None:
        rng, ok = self._rng(thread), None
        stream = workload.prepare(self.invocation, thread)
        while self._stopped is None and (operation := next_operation(stream, ok)) is not None:
            done, _ = self.perform(operation, rng, warmup=True)
            ok = done.error is None if workload.receives_results else None
            if done.error is not None and self._stopped is None:
                # What follows relies on it.
                self._stop(f"prepare: {operation.kind} of {operation.key} failed: {done.error}")

    def _warm_up(self, rounds: "Rounds", rng: random.Random) -> None:
        for _ in range(self.invocation.warm_up):
            ok: bool | None = None
            while self._stopped is None and (operation := rounds.next(ok)) is not None:
                done, _ = self.perform(operation, rng, warmup=True)
                ok = done.error is None

    def _measure(self, rounds: "Rounds", rng: random.Random) -> None:
        schedule, again = self._schedule, self._end_ns is not None
        ok: bool | None = None
        while self._stopped is None and not (again and self.is_over):
            operation = rounds.next(ok, again=again)
            if operation is None:
                return
            intended_ns = None
            if schedule is not None:
                intended_ns = schedule.take()
                if intended_ns is None or not self._has_come(intended_ns):
                    return
            done, _ = self.perform(operation, rng, intended_ns=intended_ns)
            ok = done.error is None
            if not ok and again and schedule is None:
                # Against a store that refuses at once the loop would only measure itself.
                sleep(_AFTER_FAILURE_S)
        self._freed_ns.append(monotonic_ns())

    def _close(self, workload: Workload, rng: random.Random) -> None:
        """Do what comes last, and counts as little as what comes first."""
        measured = tuple(self.measured)
        stream = workload.closing(self.invocation, (done.row for done in measured))
        while self._stopped is None and (operation := next_operation(stream, None)) is not None:
            self.perform(operation, rng, warmup=True)

    def _has_come(self, instant_ns: int) -> bool:
        """Wait for an instant; return whether it came before the function gave up."""
        while (left_ns := min(instant_ns, self.deadline_ns) - monotonic_ns()) > 0:
            if left_ns > _LOOK_NS and self.board is not None:
                self.board.count(self.clock.now_ns())
            sleep(min(left_ns, _LOOK_NS) / NS_PER_S)
            if left_ns > _LOOK_NS and self.is_over:
                return False
        if instant_ns > self.deadline_ns:
            self._stop(_DEADLINE)
        return self._stopped_ns is None or instant_ns < self._stopped_ns


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Have the garbage collector look seldom: rows are many and stay, and hold no circles."""
    before = gc.get_threshold()
    gc.set_threshold(*_SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*before)


class Rounds:
    """The operations of one thread, round after round.

    Parameters
    ----------
    workload, invocation, thread
        Decide the operations.
    """

    def __init__(self, workload: Workload, invocation: InvocationSpec, thread: int) -> None:
        self._receives_results = workload.receives_results
        self._rounds = workload.rounds(invocation, thread)
        self._stream: Stream | None = None

    def next(self, ok: bool | None, *, again: bool = False) -> OperationSpec | None:  # noqa: FBT001
        """Return the next operation of a round; None at its end, and then of the next round.

        Parameters
        ----------
        ok
            Whether the last one succeeded; None for the first of a round.
        again
            Whether to go on with the next round at once, unless it is empty.
        """
        operation, stream = None, self._stream
        if stream is not None:
            operation = next_operation(stream, ok if self._receives_results else None)
        if operation is None and (self._stream is None or again):
            self._stream = next(self._rounds)
            operation = next_operation(self._stream, None)
        if operation is None:
            self._stream = None
        return operation

    def left(self) -> Iterator[OperationSpec]:
        """Yield what is left of the round that has begun."""
        while self._stream is not None and (each := next_operation(self._stream, None)) is not None:
            yield each
