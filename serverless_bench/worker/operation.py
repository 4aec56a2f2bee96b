"""Perform an operation of any kind and measure its time, attempts and bytes.

All preparation happens before the first clock read, so that a latency covers the storage library
and the network but no work of sbench. Generating and comparing bytes cannot be moved out;
``payload_ns`` counts their time.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeVar

from serverless_bench.base.clock import EpochClock, http_date_s, monotonic_ns
from serverless_bench.base.errors import BadResponse, NotFound, OperationError
from serverless_bench.job.keys import declared_size
from serverless_bench.job.operations import OperationKind
from serverless_bench.job.target import Stat
from serverless_bench.rundir.record import (
    END_NS,
    ERROR,
    START_NS,
    Attempt,
    AttemptRow,
    BadRange,
    OperationRecord,
    OperationRow,
    Step,
    StepRow,
    Usage,
)
from serverless_bench.rundir.rows import Access, AccessRow, Rows
from serverless_bench.worker.meter import Meter, join_curves
from serverless_bench.worker.operation_context import DONE, OperationContext, OperationResult
from serverless_bench.worker.retry import MOVING, forget_frames
from serverless_bench.worker.transfer import get_object, put_object

N = TypeVar("N", BadRange, Usage)


# Not frozen: each operation makes an instance, and frozen ones take longer to create.
@dataclass(slots=True)
class MeasuredOperation:
    """One operation and its related rows, as the tuples that become rows of a record."""

    row: OperationRow
    attempt_rows: Sequence[AttemptRow]
    step_rows: Sequence[StepRow]
    bad_ranges: Sequence[BadRange] = ()
    usages: Sequence[Usage] = ()
    accesses: Sequence[AccessRow] = ()
    bug: str | None = None
    """An exception that a client must not raise; None if there was none."""
    shown: tuple[int, int] | None = None
    """Bytes and nanoseconds of its attempts already shown live; None for most operations."""

    @property
    def start_ns(self) -> int:
        """Start of the operation."""
        return self.row[START_NS]

    @property
    def end_ns(self) -> int:
        """End of the operation."""
        return self.row[END_NS]

    @property
    def error(self) -> str | None:
        """Error code, as in ``OperationRecord``."""
        return self.row[ERROR]

    @property
    def operation(self) -> OperationRecord:
        """The operation as a record, with number 0."""
        return Rows.numbered(OperationRecord, [(self.row,)])[0]

    @property
    def attempts(self) -> Sequence[Attempt]:
        """The attempts of the operation."""
        return Rows.numbered(Attempt, [self.attempt_rows])


def to_tables(measured: Sequence[MeasuredOperation]) -> dict[str, Sequence[Any]]:
    """Return the tables of a record that hold these operations, numbered from 0."""
    return {
        "operations": Rows.numbered(OperationRecord, [(done.row,) for done in measured]),
        "attempts": Rows.numbered(Attempt, [done.attempt_rows for done in measured]),
        "steps": Rows.numbered(Step, [done.step_rows for done in measured]),
        "bad_ranges": _numbered([done.bad_ranges for done in measured]),
        "usages": _numbered([done.usages for done in measured]),
        "accesses": Rows.numbered(Access, [done.accesses for done in measured]),
    }


def _numbered(groups: Sequence[Sequence[N]]) -> tuple[N, ...]:
    """Return the rows of all groups, with the number of their group; only for short tables."""
    return tuple(replace(row, operation=n) for n, rows in enumerate(groups) for row in rows)


def measure(
    context: OperationContext, clock: EpochClock
) -> tuple[MeasuredOperation, OperationResult]:
    """Perform an operation; a failure is a measurement too.

    Parameters
    ----------
    context
        The operation, and everything it needs.
    clock
        Converts monotonic instants to time since the epoch.

    Returns
    -------
    MeasuredOperation, OperationResult
        The measurement, and the operation's result; ``DONE`` if it failed.
    """
    result = DONE
    error: str | None = None
    bug: str | None = None
    if (performer := context.invocation.performer) is not None:
        performer.prepare(context)
    # Timing: only the transfer runs between these two clock reads.
    start_ns = monotonic_ns()
    try:
        result = perform(context)
    except OperationError as exc:
        error = exc.code
        forget_frames(exc)
    except Exception as exc:  # noqa: BLE001 - existing attempts must reach the driver
        error, bug = "bug", describe(exc)
    end_ns = monotonic_ns()
    if performer is not None and error is None:
        try:
            performer.compare(context)
        except OperationError as exc:
            error = exc.code
    origin_ns, spec, bad, usage = clock.origin_ns, context.spec, context.bad, context.usage
    attempts, done, curves, live_totals = [], [], [], None
    for meter, failure in context.retrier.done:
        # It was raised again after it was noted.
        forget_frames(failure)
        attempts.append(_attempt(meter, failure, origin_ns))
        if meter.shown_ns:
            sooner_bytes, sooner_ns = live_totals or (0, 0)
            live_totals = sooner_bytes + meter.shown_bytes, sooner_ns + meter.shown_ns
        if failure is None and meter.request in MOVING:
            done.append(meter)
            curves.append(meter.curve)
    measured = MeasuredOperation(
        _operation(context, done, error, result.count, start_ns, end_ns, origin_ns),
        attempts,
        join_curves(curves, start_ns),
        [replace(row, key=spec.key) for row in bad.listed] if bad.listed else (),
        () if usage is None else (usage,),
        [_placed(row, origin_ns) for row in context.accesses] if context.accesses else (),
        bug,
        live_totals,
    )
    return measured, result


def _operation(
    context: OperationContext,
    done: Sequence[Meter],
    error: str | None,
    count: int,
    start_ns: int,
    end_ns: int,
    origin_ns: int,
) -> OperationRow:
    spec = context.spec
    if spec.is_missing:
        error = None if error == NotFound.code else error or BadResponse.code
    put = spec.kind is OperationKind.PUT
    moved, edge_ns, is_known = 0, None, True
    for meter in done:
        moved += meter.bytes
        instant_ns = meter.last_byte_sent_ns if put else meter.first_byte_ns
        if instant_ns is None:
            # If a part's time is unknown, that part may have been the last.
            is_known = is_known and not put
        elif edge_ns is None or (instant_ns > edge_ns) is put:
            edge_ns = instant_ns
    edge_ns = edge_ns + origin_ns if edge_ns is not None and is_known else None
    intended_ns = context.intended_ns
    return (
        spec.kind,
        spec.key,
        spec.size,
        origin_ns + start_ns,
        origin_ns + end_ns,
        None if put else edge_ns,
        edge_ns if put else None,
        moved,
        context.verified_bytes,
        context.bad.bytes,
        context.bad.count,
        context.payload_ns,
        error,
        context.warmup,
        spec.offset,
        spec.generation,
        count,
        None if intended_ns is None else origin_ns + intended_ns,
    )


def _placed(row: AccessRow, origin_ns: int) -> AccessRow:
    """Return a row with instants since the epoch."""
    key, act, version, base, start_ns, end_ns, ending = row
    return key, act, version, base, origin_ns + start_ns, origin_ns + end_ns, ending


def _attempt(meter: Meter, failure: OperationError | None, origin_ns: int) -> AttemptRow:
    answered_ns, date = meter.answered_ns, meter.date
    return (
        meter.request,
        meter.part,
        meter.number,
        origin_ns + meter.start_ns,
        origin_ns + meter.end_ns,
        meter.wait_ns,
        meter.status if meter.status or failure is None else failure.status,
        None if failure is None else failure.code,
        None if failure is None else plain(str(failure)),
        meter.request_id,
        meter.host_id,
        meter.remote,
        meter.reused,
        meter.bytes,
        None if answered_ns is None else origin_ns + answered_ns,
        None if date is None else http_date_s(date),
    )


def describe(exc: Exception) -> str:
    """Return an exception as a short line."""
    return plain(f"{type(exc).__name__}: {exc}")


def plain(text: str) -> str:
    """Return text as short, valid UTF-8; names of files may contain anything."""
    return text[:500].encode(errors="replace").decode()


def perform(context: OperationContext) -> OperationResult:
    """Perform the context's operation.

    Raises
    ------
    OperationError
        If it failed.
    """
    return _PERFORM.get(context.spec.kind, _special)(context)


def _get(context: OperationContext) -> OperationResult:
    if context.transfer.stat is Stat.EACH:
        _head(context)
    return get_object(context)


def _head(context: OperationContext) -> OperationResult:
    key, retrier = context.spec.key, context.retrier
    size = retrier.run("head", partial(retrier.client.head, key))
    context.invocation.sizes[key] = size
    declared = declared_size(key)
    if declared is not None and declared != size:
        raise BadResponse(
            f"the store reports {size} bytes for {key}, but the key declares {declared}"
        )
    return OperationResult(size=size)


def _list(context: OperationContext) -> OperationResult:
    retrier = context.retrier
    call = partial(retrier.client.list_keys, context.spec.key, context.list_after)
    keys, has_more = retrier.run("list", call)
    return OperationResult(count=len(keys), keys=keys, more=has_more)


def _delete(context: OperationContext) -> OperationResult:
    retrier = context.retrier
    retrier.run("delete", partial(retrier.client.delete, context.spec.key))
    return DONE


def _delete_many(context: OperationContext) -> OperationResult:
    retrier, keys = context.retrier, context.spec.keys
    retrier.run("delete_many", partial(retrier.client.delete_many, keys))
    return OperationResult(count=len(keys))


def _copy(context: OperationContext) -> OperationResult:
    retrier = context.retrier
    (source,) = context.spec.keys
    retrier.run("copy", partial(retrier.client.copy, source, context.spec.key))
    return DONE


def _special(context: OperationContext) -> OperationResult:
    performer = context.invocation.performer
    if performer is None:
        raise ValueError(f"the workload of this job cannot perform {context.spec.kind}")
    return performer.perform(context)


_PERFORM: Final[Mapping[OperationKind, Callable[[OperationContext], OperationResult]]] = {
    OperationKind.PUT: put_object,
    OperationKind.GET: _get,
    OperationKind.GET_RANGE: _get,
    OperationKind.HEAD: _head,
    OperationKind.LIST: _list,
    OperationKind.DELETE: _delete,
    OperationKind.DELETE_MANY: _delete_many,
    OperationKind.COPY: _copy,
}
