"""What one invocation does: its threads, their rounds, and when each operation begins."""

import random
import resource
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Final

from serverless_bench.clients import open_client
from serverless_bench.clients.base import Client
from serverless_bench.clock import EpochClock, monotonic_ns, sleep
from serverless_bench.gate import Passed, pass_gate
from serverless_bench.measure import Measured, measure
from serverless_bench.operations import Known
from serverless_bench.spec import OWN_FUNCTION, InvocationSpec, OperationSpec, Target, Transfer
from serverless_bench.tries import Tries
from serverless_bench.units import NS_PER_S
from serverless_bench.workloads import Stream, Workload, open_workload

OnMoved = Callable[[int], None]
"""Told how many more bytes moved, several times a second: live progress."""

_AFTER_FAILURE_S: Final = 0.1
_warm_clients: dict[tuple[Target, Transfer], Client] = {}
"""A worker that serves several invocations keeps its connections, as on Lambda."""


def forget_clients() -> None:
    """Close every connection that this process keeps for its next invocation."""
    while _warm_clients:
        _warm_clients.popitem()[1].close()


def _client_for(invocation: InvocationSpec) -> Client:
    asked = (invocation.target, invocation.transfer)
    if asked not in _warm_clients:
        forget_clients()
        _warm_clients[asked] = open_client(*asked)
    return _warm_clients[asked]


@dataclass(slots=True, kw_only=True)
class Work:
    """What one invocation does, and what has come of it so far."""

    invocation: InvocationSpec
    clock: EpochClock
    on_moved: OnMoved
    measured: list[Measured] = field(default_factory=list)
    """In the order in which they ended; appending is atomic, so threads share it."""
    gate: Passed | None = None
    known: Known = field(init=False)
    _give_up_ns: int = 0
    _stopped: str | None = None
    """Why all threads are to stop; None while they may go on."""
    _used_before_ns: int | None = None

    def __post_init__(self) -> None:
        invocation = self.invocation
        self.known = Known(array=invocation.load.array, target=invocation.target)

    def measure_all(self) -> str | None:
        """Do everything; return why it stopped early, if it did."""
        invocation = self.invocation
        self._give_up_ns = monotonic_ns() + round(invocation.deadline_s * NS_PER_S)
        workload = open_workload(invocation.workload)
        self._in_threads(lambda thread: self._prepare(workload, thread))
        if invocation.gate_poll_s is not None:
            self.gate = pass_gate(invocation, _client_for(invocation), self._draw(0))
        if self._stopped is None and invocation.workload == OWN_FUNCTION:
            # Only who brings a function pays for what it takes to load it.
            from serverless_bench.own_code import run_function  # noqa: PLC0415

            return run_function(self)
        if self._stopped is None:
            begin_ns = monotonic_ns()
            self._in_threads(lambda thread: self._measure(workload, thread, begin_ns))
        return self._stopped

    @property
    def give_up_ns(self) -> int:
        """Monotonic instant after which nothing is begun any more."""
        return self._give_up_ns

    def client(self) -> Client:
        """Return the client of the job."""
        return _client_for(self.invocation)

    def keep(self, done: Measured) -> None:
        """Keep what was measured elsewhere; threads may call it at once."""
        self.measured.append(done)

    def begin_measuring(self) -> None:
        """Note, once, that what is used from now on is used for measured operations."""
        if self._used_before_ns is None:
            self._used_before_ns = _cpu_ns()

    def measured_cpu_ns(self) -> int:
        """Return the processor time used since the first measured operation began."""
        return 0 if self._used_before_ns is None else _cpu_ns() - self._used_before_ns

    def results(self) -> list[Measured]:
        """Return what was measured, in order of start, and numbered from 0."""
        if self.invocation.load.threads > 1:
            self.measured.sort(key=lambda done: done.operation.start_ns)
        return [done.numbered(index) for index, done in enumerate(self.measured)]

    def perform(
        self,
        operation: OperationSpec,
        draw: random.Random,
        *,
        warmup: bool = False,
        intended_ns: int | None = None,
        client: Client | None = None,
    ) -> Measured:
        """Perform one operation and keep what was measured."""
        if not warmup:
            self.begin_measuring()
        invocation = self.invocation
        client, transfer = client or _client_for(invocation), invocation.transfer
        tries = Tries(client, transfer.retries, self._give_up_ns, draw, self.on_moved)
        done = measure(
            operation,
            transfer,
            tries,
            self.clock,
            warmup=warmup,
            intended_ns=intended_ns,
            known=self.known,
        )
        self.measured.append(done)
        if done.bug:
            self._stopped = self._stopped or done.bug
        elif monotonic_ns() > self._give_up_ns:
            self._stopped = self._stopped or "deadline: stopped before the last operation"
        return done

    def _in_threads(self, do: Callable[[int], None]) -> None:
        threads = self.invocation.load.threads
        if threads == 1:
            do(0)
            return
        # Connections are made by whoever needs one; the library is opened once, here.
        _client_for(self.invocation)
        with ThreadPoolExecutor(threads) as pool:
            futures = [pool.submit(do, thread) for thread in range(threads)]
            try:
                for future in as_completed(futures):
                    future.result()
            except BaseException:
                # A bug in one thread, or Ctrl-C: the others would go on to their ends.
                self._stopped = self._stopped or "another thread failed"
                raise

    def _draw(self, thread: int) -> random.Random:
        seed = self.invocation.seed
        return random.Random(seed if not thread else f"{seed}/{thread}")  # noqa: S311 - jitter

    def _prepare(self, workload: Workload, thread: int) -> None:
        draw, ok = self._draw(thread), None
        stream = workload.prepare(self.invocation, thread)
        while self._stopped is None and (operation := next_operation(stream, ok)) is not None:
            operation = replace(operation, index=len(self.measured))
            done = self.perform(operation, draw, warmup=True).operation
            ok = done.error is None if workload.hears else None
            if done.error is not None and self._stopped is None:
                # What follows relies on it.
                self._stopped = f"prepare: {done.kind} of {done.key} failed: {done.error}"

    def _measure(self, workload: Workload, thread: int, begin_ns: int) -> None:
        invocation, draw = self.invocation, self._draw(thread)
        pace = _pace(invocation, draw, thread, begin_ns)
        turns = Rounds(workload, invocation, thread)
        ok: bool | None = None
        while self._stopped is None and (due := turns.next(ok)) is not None:
            operation, warmup = due
            intended_ns = None
            if pace is not None and not warmup:
                intended_ns = next(pace)
                if turns.stop_ns is not None and intended_ns >= turns.stop_ns:
                    return
                self._await(intended_ns)
            done = self.perform(operation, draw, warmup=warmup, intended_ns=intended_ns)
            ok = done.operation.error is None
            if not ok and pace is None and invocation.duration_s is not None:
                # Against a store that refuses at once the loop would only measure itself.
                sleep(_AFTER_FAILURE_S)

    def _await(self, instant_ns: int) -> None:
        left_ns = min(instant_ns, self._give_up_ns) - monotonic_ns()
        if left_ns > 0:
            sleep(left_ns / NS_PER_S)


def _cpu_ns() -> int:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return round((used.ru_utime + used.ru_stime) * NS_PER_S)


def next_operation(stream: Stream, ok: bool | None) -> OperationSpec | None:  # noqa: FBT001 - what came of it
    """Tell a stream what came of its last operation, and return its next one."""
    try:
        if ok is None or not isinstance(stream, Generator):
            return next(stream)
        return stream.send(ok)
    except StopIteration:
        return None


class Rounds:
    """The operations of one thread, and which of them are of the warm-up.

    Those of the warm-up come first; then all of them once, or until the duration is over.

    Parameters
    ----------
    workload, invocation, thread
        Whose operations.
    """

    def __init__(self, workload: Workload, invocation: InvocationSpec, thread: int) -> None:
        self._workload = workload
        self._invocation = invocation
        self._thread = thread
        self._stream: Stream | None = None
        self._turn = -1
        self._number = count()
        self._in_turn = 0
        self.stop_ns: int | None = None
        """When the duration is over, once it has begun."""

    def next(self, ok: bool | None) -> tuple[OperationSpec, bool] | None:  # noqa: FBT001
        """Return the next operation and whether it is a warm-up; None at the end.

        Parameters
        ----------
        ok
            What came of the last one; None for the first.
        """
        if not self._workload.hears:
            ok = None
        while True:
            if self._stream is None:
                self._begin_turn()
                ok = None
            if self.stop_ns is not None and monotonic_ns() >= self.stop_ns:
                return None
            operation = next_operation(self._stream, ok) if self._stream is not None else None
            if operation is not None:
                self._in_turn += 1
                return replace(operation, index=next(self._number)), self._is_warmup
            self._stream = None
            if not self._is_warmup and (self.stop_ns is None or not self._in_turn):
                return None

    @property
    def _is_warmup(self) -> bool:
        return self._turn < self._invocation.warmup

    def _begin_turn(self) -> None:
        self._turn += 1
        self._in_turn = 0
        self._stream = self._workload.operations(self._invocation, self._thread)
        duration_s = self._invocation.duration_s
        if not self._is_warmup and self.stop_ns is None and duration_s is not None:
            self.stop_ns = monotonic_ns() + round(duration_s * NS_PER_S)


def _pace(
    invocation: InvocationSpec, draw: random.Random, thread: int, begin_ns: int
) -> Iterator[int] | None:
    """Return when the operations of a thread are to begin; None in a closed loop.

    What is due does not wait for what is late: an operation that begins late because of
    the one before it has its own intended instant, and is measured from there.
    """
    load = invocation.load
    if load.rate_per_s is None:
        return None
    distance_ns = NS_PER_S * load.threads / load.rate_per_s
    if load.arrivals == "poisson":
        return _poisson(draw, begin_ns, distance_ns)
    # Functions know nothing of each other: a phase of its own keeps them from bursts.
    phase = (random.Random(invocation.seed).random() + thread) / load.threads  # noqa: S311
    return (begin_ns + round((n + phase) * distance_ns) for n in count())


def _poisson(draw: random.Random, begin_ns: int, distance_ns: float) -> Iterator[int]:
    instant_ns = float(begin_ns)
    while True:
        instant_ns += draw.expovariate(1 / distance_ns)
        yield round(instant_ns)
