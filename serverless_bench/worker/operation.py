"""Measure one operation: what it took, every attempt, and what became of its bytes.

Everything an operation needs is made before its first clock read, so that a latency
holds the storage library and the network and nothing of ours; what cannot be made
before, bytes and their comparison, is counted in ``payload_ns``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from serverless_bench.clock import EpochClock, http_date_s, monotonic_ns
from serverless_bench.errors import OperationError
from serverless_bench.job.operations import OperationKind
from serverless_bench.rundir.record import Attempt, BadRange, OperationRecord, Step, Usage
from serverless_bench.worker.meter import Meter, join_curves
from serverless_bench.worker.operation_context import DONE, OperationContext, OperationResult
from serverless_bench.worker.operations import perform, prepare


# Not frozen: one is made of every operation, and frozen ones take longer to make.
@dataclass(slots=True, kw_only=True)
class MeasuredOperation:
    """One operation and the rows that belong to it; their number comes when all are through."""

    operation: OperationRecord
    attempts: tuple[Attempt, ...]
    steps: tuple[Step, ...]
    bad_ranges: tuple[BadRange, ...]
    usages: tuple[Usage, ...]
    bug: str | None
    """An exception that no client may raise; None as a rule."""

    def number(self, index: int) -> None:
        """Give the operation this number, and the rows that belong to it."""
        self.operation.index = index
        for attempt in self.attempts:
            attempt.operation = index
        for step in self.steps:
            step.operation = index
        self.bad_ranges = tuple(replace(row, operation=index) for row in self.bad_ranges)
        self.usages = tuple(replace(row, operation=index) for row in self.usages)


def measure(
    context: OperationContext, clock: EpochClock
) -> tuple[MeasuredOperation, OperationResult]:
    """Perform one operation; a failure is a measurement too.

    Parameters
    ----------
    context
        What to do, and with what.
    clock
        Places monotonic instants.

    Returns
    -------
    MeasuredOperation, OperationResult
        What is kept of it, and what it returned; if it failed, ``DONE``.
    """
    result = DONE
    error: str | None = None
    bug: str | None = None
    prepare(context)
    # Timing: nothing but the transfer between these two clock reads.
    start_ns = monotonic_ns()
    try:
        result = perform(context)
    except OperationError as exc:
        error = exc.code
    except Exception as exc:  # noqa: BLE001 - the attempts made so far must reach the driver
        error, bug = "bug", describe(exc)
    end_ns = monotonic_ns()
    if context.task is not None and error is None:
        try:
            context.task.compare(context)
        except OperationError as exc:
            error = exc.code
    origin_ns, done = clock.origin_ns, context.retrier.succeeded()
    measured = MeasuredOperation(
        operation=_record(context, done, error, result.count, (start_ns, end_ns), origin_ns),
        attempts=tuple([_attempt(m, e, origin_ns) for m, e in context.retrier.done]),
        steps=tuple(
            [
                Step(operation=0, step_ns=step_ns, step_bytes=step_bytes)
                for step_ns, step_bytes in join_curves([m.curve for m in done], start_ns)
            ]
        ),
        bad_ranges=tuple([replace(bad, key=context.spec.key) for bad in context.bad.listed]),
        usages=() if context.usage is None else (context.usage,),
        bug=bug,
    )
    return measured, result


def _record(
    context: OperationContext,
    done: Sequence[Meter],
    error: str | None,
    count: int,
    period_ns: tuple[int, int],
    origin_ns: int,
) -> OperationRecord:
    operation = context.spec
    start_ns, end_ns = period_ns
    first = min([m.first_byte_ns for m in done if m.first_byte_ns], default=None)
    last = max([m.last_byte_sent_ns for m in done if m.last_byte_sent_ns], default=None)
    put = operation.kind is OperationKind.PUT
    return OperationRecord(
        index=0,
        kind=operation.kind,
        key=operation.key,
        size=operation.size,
        start_ns=origin_ns + start_ns,
        end_ns=origin_ns + end_ns,
        first_byte_ns=None if put or first is None else origin_ns + first,
        last_byte_sent_ns=origin_ns + last if put and last is not None else None,
        bytes=sum([meter.bytes for meter in done]),
        verified_bytes=context.verified_bytes,
        bad_bytes=context.bad.bytes,
        bad_ranges=context.bad.count,
        payload_ns=context.payload_ns,
        error=error,
        warmup=context.warmup,
        offset=operation.offset,
        generation=operation.generation,
        count=count,
        intended_ns=None if context.intended_ns is None else origin_ns + context.intended_ns,
    )


def _attempt(meter: Meter, failure: OperationError | None, origin_ns: int) -> Attempt:
    return Attempt(
        operation=0,
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
