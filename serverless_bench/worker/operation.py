"""Measure one operation: what it took, every attempt, and what became of its bytes.

Everything an operation needs is made before its first clock read, so that a latency
holds the storage library and the network and nothing of ours; what cannot be made
before, bytes and their comparison, is counted in ``payload_ns``.
"""

from dataclasses import dataclass, replace

from serverless_bench.clock import EpochClock, http_date_s, monotonic_ns
from serverless_bench.errors import OperationError
from serverless_bench.job.spec import OperationKind, OperationSpec, Transfer
from serverless_bench.rundir.record import Attempt, BadRange, OperationRecord, Step, Usage
from serverless_bench.worker.meter import Meter, join_curves
from serverless_bench.worker.operations import Known, perform, prepare
from serverless_bench.worker.retry import Retrier
from serverless_bench.worker.transfer import Checks


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One operation and the rows that belong to it."""

    operation: OperationRecord
    attempts: tuple[Attempt, ...]
    steps: tuple[Step, ...]
    bad_ranges: tuple[BadRange, ...]
    usages: tuple[Usage, ...]
    bug: str | None
    """An exception that no client may raise; None as a rule."""

    def numbered(self, index: int) -> "Measured":
        """Return the same with another number for the operation."""
        if self.operation.index == index:
            return self
        return replace(
            self,
            operation=replace(self.operation, index=index),
            attempts=tuple(replace(row, operation=index) for row in self.attempts),
            steps=tuple(replace(row, operation=index) for row in self.steps),
            bad_ranges=tuple(replace(row, operation=index) for row in self.bad_ranges),
            usages=tuple(replace(row, operation=index) for row in self.usages),
        )


def measure(
    operation: OperationSpec,
    transfer: Transfer,
    retrier: Retrier,
    clock: EpochClock,
    *,
    warmup: bool = False,
    intended_ns: int | None = None,
    known: Known | None = None,
) -> Measured:
    """Perform one operation; a failure is a measurement too.

    Parameters
    ----------
    operation, transfer
        What to do, and how objects are moved.
    retrier
        Makes the requests; of this operation alone.
    clock
        Places monotonic instants.
    warmup
        As in ``OperationRecord``.
    intended_ns
        Monotonic instant at which it should have begun, in an open loop.
    known
        What the invocation knows about objects.
    """
    checks, known, count = Checks(), known or Known(), 1
    error: str | None = None
    bug: str | None = None
    prepare(operation, transfer, known)
    # Timing: nothing but the transfer between these two clock reads.
    start_ns = monotonic_ns()
    try:
        count = perform(operation, transfer, retrier, checks, known)
    except OperationError as exc:
        error = exc.code
    except Exception as exc:  # noqa: BLE001 - the attempts made so far must reach the driver
        error, bug = "bug", describe(exc)
    end_ns = monotonic_ns()
    if checks.after is not None and error is None:
        try:
            checks.after()
        except OperationError as exc:
            error = exc.code
    origin_ns = clock.origin_ns
    done = retrier.succeeded()
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
            offset=operation.offset,
            generation=operation.generation,
            count=count,
            intended_ns=None if intended_ns is None else origin_ns + intended_ns,
        ),
        attempts=tuple(_attempt(operation.index, m, e, origin_ns) for m, e in retrier.done),
        steps=tuple(
            Step(operation=operation.index, step_ns=step_ns, step_bytes=step_bytes)
            for step_ns, step_bytes in join_curves(retrier.curves(), start_ns)
        ),
        bad_ranges=tuple(
            replace(bad, operation=operation.index, key=operation.key) for bad in checks.bad.listed
        ),
        usages=() if checks.usage is None else (replace(checks.usage, operation=operation.index),),
        bug=bug,
    )


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
        detail=None if failure is None else plain(str(failure)),
        request_id=meter.request_id,
        host_id=meter.host_id,
        remote=meter.remote,
        reused=meter.reused,
        bytes=meter.bytes,
        answered_ns=None if meter.answered_ns is None else origin_ns + meter.answered_ns,
        date_s=http_date_s(meter.date),
    )


def describe(exc: Exception) -> str:
    """Return an exception as a short line."""
    return plain(f"{type(exc).__name__}: {exc}")


def plain(text: str) -> str:
    """Return text that is valid UTF-8 and short; names of files need not be."""
    return text[:500].encode(errors="replace").decode()
