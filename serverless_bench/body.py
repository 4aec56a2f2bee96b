"""The function body: the code that runs on the worker.

Everything an operation needs is made before its first clock read, so that a latency
holds the storage library and the network and nothing of ours; what cannot be made
before, bytes and their comparison, is counted in ``payload_ns``.

The body stays light: it and what it imports never load NumPy, pandas, matplotlib,
Lithops or cloudpickle, because a cold start is billed time.
"""

import os
import platform
import random
import resource
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Final, assert_never

from serverless_bench import __version__
from serverless_bench.clients import open_client
from serverless_bench.clients.base import Client
from serverless_bench.clock import EpochClock, http_date_s, monotonic_ns, sleep, wall_ns
from serverless_bench.errors import OperationError
from serverless_bench.gate import Passed, pass_gate
from serverless_bench.keystream import Keystream
from serverless_bench.meter import Meter, join_curves
from serverless_bench.record import Attempt, BadRange, InvocationRecord, OperationRecord, Step
from serverless_bench.spec import InvocationSpec, OperationKind, OperationSpec, Target, Transfer
from serverless_bench.transfer import Checks, get_object, put_object
from serverless_bench.tries import Tries
from serverless_bench.units import MIB, NS_PER_S
from serverless_bench.worker import (
    birth,
    cpus,
    memory_mib,
    peak_rss_bytes,
    run_wait_ns,
    worker_id,
)
from serverless_bench.workloads import open_workload

OnMoved = Callable[[int], None]
"""Told how many more bytes moved, several times a second: live progress."""

_warm_clients: dict[tuple[Target, Transfer], Client] = {}
"""A worker that serves several invocations keeps its connections, as on Lambda."""
_generators: dict[int, int] = {}
"""How fast this process, by its id, makes bytes; a fork begins cold."""
_SPEED_BYTES: Final = 4 * MIB
_AFTER_FAILURE_S: Final = 0.1


def handle(event: Mapping[str, Any]) -> dict[str, Any]:
    """Run one invocation, JSON in and JSON out: what executors call far away.

    Parameters
    ----------
    event
        ``asdict`` of an ``InvocationSpec``.

    Returns
    -------
    dict
        ``InvocationRecord.to_json()``. Whatever fails inside is in the record.
    """
    return run_invocation(InvocationSpec.from_json(event)).to_json()


def run_invocation(
    invocation: InvocationSpec,
    *,
    on_moved: OnMoved = lambda _: None,
    refused: str | None = None,
) -> InvocationRecord:
    """Perform every operation of one invocation and return what was measured.

    Parameters
    ----------
    invocation
        What to do.
    on_moved
        Live progress, where the executor can show it.
    refused
        Why nothing is to be done; None to do it.
    """
    clock = EpochClock()
    wall_start_ns, start_ns = wall_ns(), clock.now_ns()
    usage, waited_ns = resource.getrusage(resource.RUSAGE_SELF), run_wait_ns()
    pid = os.getpid()
    cold_start = pid not in _generators
    if cold_start:
        _generators[pid] = generator_bytes_per_s()
    work = _Work(invocation=invocation, clock=clock, on_moved=on_moved)
    error: str | None = refused
    try:
        if refused:
            pass
        elif wall_start_ns > invocation.not_after_ns:
            error = "expired: this invocation was delivered after the run had ended"
        else:
            error = work.measure_all()
    except Exception as exc:  # noqa: BLE001 - the records made so far must reach the driver
        error = _describe(exc)
    used, waits_ns = resource.getrusage(resource.RUSAGE_SELF), run_wait_ns()
    measured, gate = work.measured, work.gate
    born_ns, import_ns = birth() if cold_start else (None, None)
    return InvocationRecord(
        run_id=invocation.run_id,
        index=invocation.index,
        attempt=invocation.attempt,
        worker_id=worker_id(),
        cold_start=cold_start,
        version=__version__,
        python=platform.python_version(),
        start_ns=start_ns,
        end_ns=clock.now_ns(),
        wall_start_ns=wall_start_ns,
        wall_end_ns=wall_ns(),
        cpu_user_s=round(used.ru_utime - usage.ru_utime, 6),
        cpu_sys_s=round(used.ru_stime - usage.ru_stime, 6),
        max_rss_bytes=peak_rss_bytes(),
        operations=tuple(m.operation for m in measured),
        attempts=tuple(row for m in measured for row in m.attempts),
        steps=tuple(row for m in measured for row in m.steps),
        bad_ranges=tuple(row for m in measured for row in m.bad_ranges),
        error=error,
        run_wait_ns=None if waited_ns is None or waits_ns is None else waits_ns - waited_ns,
        cpus=cpus(),
        memory_mib=memory_mib(),
        generator_bytes_per_s=_generators[pid],
        gate_wait_ns=None if gate is None else gate.wait_ns,
        gate_late=gate is not None and gate.late,
        born_ns=born_ns,
        import_ns=import_ns,
        machine=platform.machine(),
    )


def generator_bytes_per_s() -> int:
    """Return how fast this worker makes the bytes of an object: no client can be faster."""
    room = bytearray(MIB)
    start_ns = monotonic_ns()
    for offset in range(0, _SPEED_BYTES, len(room)):
        Keystream("speed").readinto_at(offset, room)
    return _SPEED_BYTES * NS_PER_S // max(monotonic_ns() - start_ns, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One operation and the rows that belong to it."""

    operation: OperationRecord
    attempts: tuple[Attempt, ...]
    steps: tuple[Step, ...]
    bad_ranges: tuple[BadRange, ...]
    bug: str | None
    """An exception that no client may raise; None as a rule."""


@dataclass(slots=True, kw_only=True)
class _Work:
    """What one invocation does, and what has come of it so far."""

    invocation: InvocationSpec
    clock: EpochClock
    on_moved: OnMoved
    measured: list[Measured] = field(default_factory=list)
    gate: Passed | None = None

    def measure_all(self) -> str | None:
        """Do everything; return why it stopped early, if it did."""
        invocation = self.invocation
        give_up_ns = monotonic_ns() + round(invocation.deadline_s * NS_PER_S)
        draw = random.Random(invocation.seed)  # noqa: S311 - jitter is no secret
        if invocation.gate_poll_s is not None:
            self.gate = pass_gate(invocation, _client_for(invocation), draw)
        for operation, warmup in rounds(invocation):
            client = _client_for(invocation)
            tries = Tries(client, invocation.transfer.retries, give_up_ns, draw, self.on_moved)
            done = measure(operation, invocation.transfer, tries, self.clock, warmup=warmup)
            self.measured.append(done)
            if done.bug:
                return done.bug
            if monotonic_ns() > give_up_ns:
                return "deadline: stopped before the last operation"
            if done.operation.error and invocation.duration_s is not None:
                # Against a store that refuses at once the loop would only measure itself.
                sleep(_AFTER_FAILURE_S)
        return None


def rounds(invocation: InvocationSpec) -> Iterator[tuple[OperationSpec, bool]]:
    """Yield every operation of an invocation, and whether it is one of the warm-up.

    Those of the warm-up come first; then all of them once, or until the duration is over.
    """
    workload = open_workload(invocation.workload)
    number, stop_ns = 0, None
    for turn in count():
        warmup = turn < invocation.warmup
        if not warmup and stop_ns is None and invocation.duration_s is not None:
            stop_ns = monotonic_ns() + round(invocation.duration_s * NS_PER_S)
        before = number
        for operation in workload.operations(invocation):
            if stop_ns is not None and monotonic_ns() >= stop_ns:
                return
            yield replace(operation, index=number), warmup
            number += 1
        if not warmup and (stop_ns is None or number == before):
            return


def _client_for(invocation: InvocationSpec) -> Client:
    asked = (invocation.target, invocation.transfer)
    if asked not in _warm_clients:
        forget_clients()
        _warm_clients[asked] = open_client(*asked)
    return _warm_clients[asked]


def forget_clients() -> None:
    """Close every connection that this process keeps for its next invocation."""
    while _warm_clients:
        _warm_clients.popitem()[1].close()


def measure(
    operation: OperationSpec,
    transfer: Transfer,
    tries: Tries,
    clock: EpochClock,
    *,
    warmup: bool = False,
) -> Measured:
    """Perform one operation; a failure is a measurement too."""
    checks = Checks()
    error: str | None = None
    bug: str | None = None
    # Timing: nothing but the transfer between these two clock reads.
    start_ns = monotonic_ns()
    try:
        perform(operation, transfer, tries, checks)
    except OperationError as exc:
        error = exc.code
    except Exception as exc:  # noqa: BLE001 - the tries made so far must reach the driver
        error, bug = "bug", _describe(exc)
    end_ns = monotonic_ns()
    origin_ns = clock.origin_ns
    done = tries.succeeded()
    first = min((m.first_byte_ns for m in done if m.first_byte_ns), default=None)
    last = max((m.last_byte_sent_ns for m in done if m.last_byte_sent_ns), default=None)
    put = operation.kind is OperationKind.PUT
    return Measured(
        operation=OperationRecord(
            index=operation.index,
            kind=operation.kind,
            key=operation.key,
            size=operation.size,
            start_ns=origin_ns + start_ns,
            end_ns=origin_ns + end_ns,
            first_byte_ns=None if put or first is None else origin_ns + first,
            last_byte_sent_ns=origin_ns + last if put and last is not None else None,
            bytes=sum(meter.bytes for meter in done),
            verified_bytes=checks.verified_bytes,
            bad_bytes=checks.bad.bytes,
            bad_ranges=checks.bad.count,
            payload_ns=checks.payload_ns,
            error=error,
            warmup=warmup,
        ),
        attempts=tuple(_attempt(operation.index, m, e, origin_ns) for m, e in tries.done),
        steps=tuple(
            Step(operation=operation.index, step_ns=step_ns, step_bytes=step_bytes)
            for step_ns, step_bytes in join_curves(tries.curves(), start_ns)
        ),
        bad_ranges=tuple(
            replace(bad, operation=operation.index, key=operation.key) for bad in checks.bad.listed
        ),
        bug=bug,
    )


def perform(operation: OperationSpec, transfer: Transfer, tries: Tries, checks: Checks) -> None:
    """Do what the operation says."""
    match operation.kind:
        case OperationKind.PUT:
            put_object(operation, transfer, tries, checks)
        case OperationKind.GET:
            get_object(operation, transfer, tries, checks)
        case other:
            assert_never(other)


def _attempt(
    operation: int, meter: Meter, failure: OperationError | None, origin_ns: int
) -> Attempt:
    return Attempt(
        operation=operation,
        request=meter.request,
        part=meter.part,
        number=meter.number,
        start_ns=origin_ns + meter.start_ns,
        end_ns=origin_ns + meter.end_ns,
        wait_ns=meter.wait_ns,
        status=meter.status if meter.status or failure is None else failure.status,
        error=None if failure is None else failure.code,
        detail=None if failure is None else _plain(str(failure)),
        request_id=meter.request_id,
        host_id=meter.host_id,
        remote=meter.remote,
        reused=meter.reused,
        bytes=meter.bytes,
        answered_ns=None if meter.answered_ns is None else origin_ns + meter.answered_ns,
        date_s=http_date_s(meter.date),
    )


def _describe(exc: Exception) -> str:
    return _plain(f"{type(exc).__name__}: {exc}")


def _plain(text: str) -> str:
    """Return text that is valid UTF-8 and short; names of files need not be."""
    return text[:500].encode(errors="replace").decode()
