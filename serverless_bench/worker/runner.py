"""Run an invocation: its threads, their rounds, and the start of each operation."""

import gc
import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Final

from serverless_bench.base.clock import EpochClock, monotonic_ns, sleep
from serverless_bench.base.process import Kept
from serverless_bench.base.units import NS_PER_S
from serverless_bench.clients import open_client
from serverless_bench.clients.base import Client
from serverless_bench.job.abilities import Closing, RunsCode, rounds_of
from serverless_bench.job.keys import listed_sizes
from serverless_bench.job.operations import OperationSpec
from serverless_bench.job.policy import Policy, policies_of
from serverless_bench.job.spec import InvocationSpec
from serverless_bench.job.workload import Stream, Trait, Workload, next_operation, open_workload
from serverless_bench.rundir.record import Dropped
from serverless_bench.worker.board import DURATION_OVER, RUN_OVER, WARM_UP, BoardSlot
from serverless_bench.worker.changes import OperationChanges
from serverless_bench.worker.cpu_time import LockProbe, cpu_ns, thread_counted
from serverless_bench.worker.operation import MeasuredOperation, measure
from serverless_bench.worker.operation_context import (
    InvocationContext,
    OperationContext,
    OperationResult,
)
from serverless_bench.worker.pacing import Schedule, at_most, not_taken
from serverless_bench.worker.retry import LOOK_NS, Retrier, jitter_of

_SELDOM: Final = (20_000, 20, 20)
"""Thresholds of the garbage collector: objects, then collections; the defaults are 700, 10, 10."""
_AFTER_FAILURE_S: Final = 0.1
_DEADLINE: Final = "deadline: stopped before the last operation"
_RUN_OVER: Final = "interrupted: stopped before the last operation"
_OTHER_THREAD: Final = "another thread failed"
_clients: Final = Kept()
forget_clients: Final = _clients.forget
"""Close each connection that this process keeps for its next invocation."""


@dataclass(slots=True, kw_only=True)
class InvocationRunner:
    """Performs the operations of an invocation, and keeps the measurements."""

    invocation: InvocationSpec
    clock: EpochClock
    board: BoardSlot = field(default_factory=BoardSlot)
    """Shows progress to the driver, and its signal to stop, if they share memory."""
    measured: list[MeasuredOperation] = field(default_factory=list)
    """Operations in the order in which they finished; appending is atomic, so threads share it."""
    begun: dict[str, int] = field(default_factory=dict)
    """Results of policies before the measurement, as fields of the record."""
    probe: LockProbe | None = None
    """Samples the interpreter lock while several threads measure."""
    changes: OperationChanges | None = None
    """Changes the operations; None without a policy that does."""
    deadline_ns: int = 0
    """Monotonic instant after which no operation is started."""
    _context: InvocationContext = field(default_factory=InvocationContext)
    _policies: list[Policy] = field(default_factory=list)
    _client: Client | None = None
    _end_ns: int | None = None
    """Instant when the duration is over; None before it starts."""
    _begin_ns: int = 0
    """Instant at which the measurement started."""
    _schedule: Schedule | None = None
    _rounds: "list[Rounds]" = field(default_factory=list)
    _freed_ns: list[int] = field(default_factory=list)
    """Instants at which threads became free after the end."""
    _stopped: str | None = None
    """Reason for stopping all threads; None while they may continue."""
    _stopped_ns: int | None = None
    """Instant of the stop."""
    _used_before_ns: int | None = None
    """CPU time of the process when the measurement started."""

    def __post_init__(self) -> None:
        self.board.follow(self.measured)
        self._policies = policies_of(self.invocation)

    def measure_all(self) -> str | None:
        """Run the invocation; return why it stopped early, if it did.

        All threads prepare, then all warm up. After the start barrier, where invocations wait for
        each other, the duration and the schedule start for all threads together.
        """
        invocation = self.invocation
        self.deadline_ns = monotonic_ns() + round(invocation.deadline * NS_PER_S)
        self._heed()
        workload = open_workload(invocation.workload)
        self._context.sizes.update(listed_sizes(invocation.keys))
        self._context.performer = workload.performer(invocation)
        for policy in self._policies:
            self._context.hedging |= policy.second_requests(invocation)
        self._in_threads(lambda thread: self._prepare(workload, thread))
        changes = (policy.in_function(self) for policy in self._policies)
        self.changes = next(filter(None, changes), None)
        with self.changes or nullcontext():
            return self._measure_rounds(workload)

    def _measure_rounds(self, workload: Workload) -> str | None:
        invocation = self.invocation
        if self._stopped is None and isinstance(workload, RunsCode):
            return workload.run_code(self)
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
                    # These threads share the interpreter lock.
                    self.probe = self.board.probe = stack.enter_context(LockProbe())
                if self.changes is not None:
                    self._rounds += self.changes.prepare(workload)
                    rngs += map(self._rng, range(len(rngs), len(self._rounds)))
                self._in_threads(
                    lambda thread: self._measure(self._rounds[thread], rngs[thread], thread),
                    len(self._rounds),
                )
            self._close(workload, rngs[0])
        return self._stopped

    def begin(self) -> None:
        """Do what policies ask before it, as a start barrier does, and start the measurement."""
        invocation = self.invocation
        opened_ns: int | None = None
        for policy in self._policies:
            begun, common_ns = policy.begin(self)
            self.begun |= begun
            opened_ns = opened_ns or common_ns
            self._heed()
        self._used_before_ns = cpu_ns()
        self._begin_ns = begin_ns = monotonic_ns()
        if opened_ns is not None and invocation.load.has_instants:
            # The instants of a log are those of all functions together.
            self._begin_ns = opened_ns - self.clock.origin_ns
        duration_s = invocation.duration
        if duration_s is not None:
            self._end_ns = begin_ns + round(duration_s * NS_PER_S)
        if invocation.load.rate is not None and self._stopped is None:
            self._schedule = Schedule(invocation, begin_ns, self._end_ns)

    @property
    def is_over(self) -> bool:
        """Whether the duration is over or cut short by the driver; False without a duration."""
        self._heed()
        if self._end_ns is None:
            return False
        now_ns = monotonic_ns()
        if self.board.level >= DURATION_OVER and now_ns < self._end_ns:
            self._end_ns = now_ns
            if self._schedule is not None:
                self._schedule.end(now_ns)
        return now_ns >= self._end_ns

    def is_run_over(self) -> bool:
        """Return whether the driver has ended the run for all functions."""
        return self.board.level >= RUN_OVER

    def _heed(self) -> None:
        """Stop early if the driver has ended the run; a duration ends without that."""
        if self._end_ns is None and self.is_run_over():
            self._stop(_RUN_OVER)

    @property
    def is_stopped(self) -> bool:
        """Whether the threads are to stop early."""
        return self._stopped is not None

    def dropped(self) -> tuple[Dropped, ...]:
        """Return the operations that were due and never started; call it after all threads."""
        free_ns = min(self._freed_ns, default=None)
        if self._schedule is None:
            rows = not_taken(self._left(), self._begin_ns, self._stopped_ns, free_ns)
        else:
            rows = self._schedule.untaken(self._stopped_ns, free_ns)
        if rows and self._schedule is not None and self._end_ns is None:
            # Without a duration the schedule ends with the operations: count only those that
            # remain.
            due = sum(row.count for row in rows)
            rows = at_most(rows, sum(1 for _ in islice(self._left(), due)))
        origin_ns = self.clock.origin_ns
        return tuple(
            Dropped(
                first_ns=origin_ns + row.first_ns,
                last_ns=origin_ns + row.last_ns,
                count=row.count,
                until_ns=origin_ns + row.until_ns,
            )
            for row in rows
        )

    def _left(self) -> Iterator[OperationSpec]:
        return chain.from_iterable(rounds.left() for rounds in self._rounds)

    def client(self) -> Client:
        """Return the client of the job; the first call opens it."""
        if self._client is None:
            target, transfer = self.invocation.target, self.invocation.transfer
            self._client = _clients.open(open_client, target, transfer)
        return self._client

    def measured_cpu_ns(self) -> int:
        """Return the CPU time used since the measurement started."""
        return 0 if self._used_before_ns is None else cpu_ns() - self._used_before_ns

    def results(self) -> list[MeasuredOperation]:
        """Return the measurements in order of start."""
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
        """Perform an operation, keep the measurement, and return it with the result.

        Parameters
        ----------
        operation, warmup, intended_ns, keep_data, list_after
            As in ``OperationContext``.
        rng
            Source of the jitter before retries.
        """
        transfer, board = self.invocation.transfer, self.board
        if self.changes is not None and not warmup:
            self.changes.wait()
        retrier = Retrier(
            self._client or self.client(),
            transfer.retries,
            self.deadline_ns,
            rng,
            board.on_moved[WARM_UP if warmup else operation.kind],
            self._context.hedging.get(operation.kind),
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
        if self.changes is not None:
            self.changes.pause(done)
        if done.end_ns >= board.due_ns:
            board.count(done.end_ns)
        if done.bug:
            self._stop(done.bug)
        elif monotonic_ns() > self.deadline_ns:
            self._stop(_DEADLINE)
        else:
            self._heed()
        return done, result

    def _stop(self, reason: str) -> None:
        if self._stopped is None:
            self._stopped_ns = min(monotonic_ns(), self.deadline_ns)
            self._stopped = reason

    def _in_threads(self, do: Callable[[int], None], number: int | None = None) -> None:
        threads = self.invocation.load.threads if number is None else number

        def counted(thread: int) -> None:
            with thread_counted():
                do(thread)

        with ThreadPoolExecutor(threads) as pool:
            try:
                if threads == 1:
                    do(0)
                    return
                # Open the client here, once; each thread makes its connections.
                self.client()
                futures = [pool.submit(counted, thread) for thread in range(threads)]
                for future in as_completed(futures):
                    future.result()
            except BaseException:
                # A bug, or Ctrl-C: without a stop the other threads would continue.
                self._stop(_OTHER_THREAD)
                raise

    def _rng(self, thread: int) -> random.Random:
        return jitter_of(self.invocation.seed, thread)

    def _prepare(self, workload: Workload, thread: int) -> None:
        rng, ok = self._rng(thread), None
        stream = workload.prepare(self.invocation, thread)
        while self._stopped is None and (operation := next_operation(stream, ok)) is not None:
            done, _ = self.perform(operation, rng, warmup=True)
            ok = done.error is None if Trait.RECEIVES_RESULTS in workload.traits else None
            if done.error is not None and self._stopped is None:
                # Later operations depend on this one.
                self._stop(f"prepare: {operation.kind} of {operation.key} failed: {done.error}")

    def _warm_up(self, rounds: "Rounds", rng: random.Random) -> None:
        for _ in range(self.invocation.warm_up):
            ok: bool | None = None
            while self._stopped is None and (operation := rounds.next(ok)) is not None:
                done, _ = self.perform(operation, rng, warmup=True)
                ok = done.error is None

    def _measure(self, rounds: "Rounds", rng: random.Random, thread: int) -> None:
        schedule, repeats = self._schedule, self._end_ns is not None
        ok: bool | None = None
        while self._stopped is None and not (repeats and self.is_over):
            if self.changes is None:
                operation = rounds.next(ok, again=repeats)
            else:
                operation = self.changes.next(thread, rounds, ok)
            if operation is None:
                return
            intended_ns = None
            if operation.due_ns is not None:
                intended_ns = self._begin_ns + operation.due_ns
            elif schedule is not None and (intended_ns := schedule.take()) is None:
                return
            if intended_ns is not None and not self._has_come(intended_ns):
                return
            done, _ = self.perform(operation, rng, intended_ns=intended_ns)
            ok = done.error is None
            if not ok and repeats and schedule is None:
                # Without a pause, a store that fails at once would be flooded with requests.
                sleep(_AFTER_FAILURE_S)
        self._freed_ns.append(monotonic_ns())

    def _close(self, workload: Workload, rng: random.Random) -> None:
        """Do the workload's final operations, which reports leave out like the preparations."""
        if not isinstance(workload, Closing):
            return
        measured = tuple(self.measured)
        stream = workload.closing(self.invocation, (done.row for done in measured))
        while self._stopped is None and (operation := next_operation(stream, None)) is not None:
            self.perform(operation, rng, warmup=True)

    def _has_come(self, instant_ns: int) -> bool:
        """Wait for an instant; return whether it came before the function gave up."""
        while (remaining_ns := min(instant_ns, self.deadline_ns) - monotonic_ns()) > 0:
            if remaining_ns > LOOK_NS:
                self.board.count(self.clock.now_ns())
            sleep(min(remaining_ns, LOOK_NS) / NS_PER_S)
            if remaining_ns > LOOK_NS and (self.is_over or self.is_stopped):
                return False
        if instant_ns > self.deadline_ns:
            self._stop(_DEADLINE)
        return self._stopped_ns is None or instant_ns < self._stopped_ns


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Collect garbage rarely: rows are many, live long, and form no cycles."""
    before = gc.get_threshold()
    gc.set_threshold(*_SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*before)


class Rounds:
    """The operations of a thread, round by round.

    Parameters
    ----------
    workload, invocation, thread
        Determine the operations.
    """

    def __init__(self, workload: Workload, invocation: InvocationSpec, thread: int) -> None:
        self._receives_results = Trait.RECEIVES_RESULTS in workload.traits
        self._rounds = rounds_of(workload, invocation, thread)
        self._stream: Stream | None = None

    def next(self, ok: bool | None, *, again: bool = False) -> OperationSpec | None:  # noqa: FBT001
        """Return the next operation of the round; None at its end, then continue with the next.

        Parameters
        ----------
        ok
            Whether the previous operation succeeded; None for the first of a round.
        again
            Whether to continue with the next round at once, unless it is empty.
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
        """Yield the remaining operations of the current round."""
        while (
            self._stream is not None
            and (operation := next_operation(self._stream, None)) is not None
        ):
            yield operation
