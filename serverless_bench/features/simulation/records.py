"""Conversion of an engine's result into the records of workers, column by column."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from serverless_bench.base.units import GIB, MIB, NS_PER_S
from serverless_bench.features.cost.limits import VCPU_MIB, CostConditions
from serverless_bench.features.cost.model import Model
from serverless_bench.features.simulation.demand import Demand
from serverless_bench.features.simulation.state import COMPLETE, CREATE, SimulationState
from serverless_bench.job.operations import OperationKind
from serverless_bench.rundir.record import (
    Attempt,
    InvocationRecord,
    OperationRecord,
    Outcome,
    Step,
)
from serverless_bench.rundir.rows import Rows
from serverless_bench.rundir.tables import Floats, Ints, Mask
from serverless_bench.version import __version__

_THROTTLED: Final = "throttled"
_DEADLINE: Final = "deadline: stopped before the last operation"
_REQUESTS: Final = np.array(["put", "create_multipart", "complete_multipart"], dtype=object)
_USER_SHARE: Final = 0.5
"""Fraction of the CPU time that is the user's; the rest is the kernel's. Nothing uses it."""
_RSS_BYTES: Final = 60 * MIB
_MACHINES: Final = {"arm64": "aarch64", "x86_64": "x86_64"}
CREATED_NS: Final = 1_767_225_600 * NS_PER_S
"""Start of all simulated runs: 2026-01-01. The same job has to give the same bytes."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Table:
    """Columns with the rows of each function in sequence."""

    kind: type
    columns: dict[str, Any]
    """Arrays, or a value that is the same in all rows."""
    first: Ints
    """First row of each function, and one past the last."""

    def rows_of(self, function: int) -> Rows[Any]:
        """Return the rows of a function."""
        begin, end = self.first[function], self.first[function + 1]
        columns = {
            name: column[begin:end].tolist()
            if isinstance(column, np.ndarray)
            else [column] * int(end - begin)
            for name, column in self.columns.items()
        }
        return Rows(self.kind, columns)


def outcomes(
    demand: Demand,
    simulated: SimulationState,
    run_id: str,
    model: Model,
    deployed: CostConditions,
    core_s_per_gib: float,
) -> Iterator[Outcome]:
    """Yield the driver's results, in the order in which it would receive them."""
    on_lambda, memory = model.function.on_lambda, deployed.memory_mib
    order, number, of_operation = _order(demand, simulated)
    operations = _operations(demand, simulated, order, of_operation)
    attempts = _attempts(demand, simulated, number, of_operation)
    steps = _steps(demand, simulated, number, of_operation)
    moved = np.zeros(demand.functions, dtype=np.int64)
    np.add.at(moved, of_operation[order], operations.columns["bytes"])
    launcher = simulated.launcher
    submitted, start, end = map(_instant, (launcher.submitted_s, launcher.start_s, simulated.end_s))
    collected = _instant(simulated.end_s + model.launch.collect_s)
    for index in np.argsort(collected, kind="stable").tolist():
        cpu_s = int(moved[index]) / GIB * core_s_per_gib
        record = InvocationRecord(
            run_id=run_id,
            index=index,
            launch=0,
            worker_id=f"simulated/{launcher.environment[index]}",
            cold_start=bool(launcher.is_cold[index]),
            version=__version__,
            python="",
            start_ns=int(start[index]),
            end_ns=int(end[index]),
            wall_start_ns=int(start[index]),
            wall_end_ns=int(end[index]),
            cpu_user_s=cpu_s * _USER_SHARE,
            cpu_sys_s=cpu_s * (1 - _USER_SHARE),
            max_rss_bytes=_RSS_BYTES,
            operations=operations.rows_of(index),
            attempts=attempts.rows_of(index),
            steps=steps.rows_of(index),
            error=_DEADLINE if simulated.stopped[index] else None,
            run_wait_ns=0,
            cpus=max(1, math.ceil(memory / VCPU_MIB)) if on_lambda else 1,
            memory_mib=memory if on_lambda else None,
            # The model has no interpreter, hence no lock.
            interpreter_ns=0,
            measured_cpu_ns=round(cpu_s * NS_PER_S),
            machine=_MACHINES[deployed.architecture] if on_lambda else None,
        )
        yield Outcome(
            submitted_ns=int(submitted[index]), collected_ns=int(collected[index]), result=record
        )


def _instant(seconds: Floats) -> Ints:
    return CREATED_NS + np.rint(seconds * NS_PER_S).astype(np.int64)


def _order(demand: Demand, simulated: SimulationState) -> tuple[Ints, Ints, Ints]:
    """Return the started operations, in order, and the number and function of each operation."""
    count = np.diff(demand.first)
    function = np.repeat(np.arange(len(count)), count) // demand.threads
    order = np.lexsort((simulated.done.start_s, function))
    # Operations that were not started have no start, and sort last in their function.
    order = order[~np.isnan(simulated.done.start_s[order])]
    first = np.searchsorted(function[order], np.arange(demand.functions))
    number = np.full(len(function), -1)
    number[order] = np.arange(len(order)) - first[function[order]]
    return order, number, function


def _first(functions: Ints, count: int) -> Ints:
    return np.searchsorted(functions, np.arange(count + 1))


def _operations(
    demand: Demand,
    simulated: SimulationState,
    order: Ints,
    function: Ints,
) -> _Table:
    count, done, put = len(demand.size), simulated.done, demand.kind is OperationKind.PUT
    bytes_, first_s, last_s = np.zeros(count), np.full(count, np.inf), np.full(count, -np.inf)
    operation, answered, moved, refused = (simulated.attempts[place] for place in (1, 8, 9, 10))
    body = (moved > 0) & (refused == 0)
    at = operation[body].astype(np.int64)
    np.add.at(bytes_, at, moved[body])
    np.minimum.at(first_s, at, answered[body])
    np.maximum.at(last_s, simulated.pieces[1].astype(np.int64), simulated.pieces[3])
    seen_s = (last_s if put else first_s)[order]
    is_known = np.isfinite(seen_s)
    moments = _instant(np.where(is_known, seen_s, 0.0)).astype(object)
    moments[~is_known] = None
    keys = np.empty(count, dtype=object)
    keys[:] = demand.keys
    failed = done.failed[order]
    columns = {
        "index": _numbered(function[order], demand.functions),
        "kind": str(demand.kind),
        "key": keys[order],
        "size": demand.size[order],
        "start_ns": _instant(done.start_s[order]),
        "end_ns": _instant(done.end_s[order]),
        "first_byte_ns": None if put else moments,
        "last_byte_sent_ns": moments if put else None,
        "bytes": np.rint(bytes_[order]).astype(np.int64),
        **dict.fromkeys(("verified_bytes", "bad_bytes", "bad_ranges", "payload_ns"), 0),
        "error": _where(failed, _THROTTLED),
        "warmup": False,
        **dict.fromkeys(("offset", "generation"), 0),
        "count": 1,
        "intended_ns": None,
    }
    return _Table(
        kind=OperationRecord,
        columns=columns,
        first=_first(function[order], demand.functions),
    )


def _where(mask: Mask, text: str) -> NDArray[Any]:
    """Return a column with a text in some rows, and None in the others."""
    column = np.full(len(mask), None, dtype=object)
    column[mask] = text
    return column


def _numbered(functions: Ints, count: int) -> Ints:
    first = _first(functions, count)
    return np.asarray(np.arange(len(functions)) - first[functions])


def _attempts(
    demand: Demand,
    simulated: SimulationState,
    number: Ints,
    function: Ints,
) -> _Table:
    operation = simulated.attempts[1].astype(np.int64)
    order = np.lexsort((simulated.attempts[6], function[operation]))
    lane, _, doing, part, attempt_number, begin, end, wait, answered, moved, refused = (
        column[order] for column in simulated.attempts
    )
    operation = operation[order]
    is_multipart = demand.parts[operation] > 1
    request = _requests(demand, doing.astype(np.int64), is_multipart)
    is_refused = refused > 0
    # The first request of a lane opens its connection.
    used: NDArray[Any] = np.ones(len(lane), dtype=np.bool_)
    used[np.unique(lane, return_index=True)[1]] = False
    is_part = is_multipart & (doing == 0)
    columns = {
        "operation": number[operation],
        "request": request,
        "part": np.where(is_part, part.astype(np.int64) + 1, 0),
        "number": attempt_number.astype(np.int64),
        "start_ns": _instant(begin),
        "end_ns": _instant(end),
        "wait_ns": np.rint(wait * NS_PER_S).astype(np.int64),
        "status": np.where(is_refused, 503, 200),
        "error": _where(is_refused, _THROTTLED),
        "detail": _where(is_refused, "simulated"),
        **dict.fromkeys(("request_id", "host_id", "remote")),
        "reused": used,
        "bytes": np.rint(moved).astype(np.int64),
        "answered_ns": _instant(answered),
        "date_s": None,
    }
    return _Table(
        kind=Attempt,
        columns=columns,
        first=_first(function[operation], demand.functions),
    )


def _requests(demand: Demand, doing: Ints, is_multipart: NDArray[np.bool_]) -> NDArray[Any]:
    if demand.kind is OperationKind.GET:
        return np.full(len(doing), "get", dtype=object)
    names = _REQUESTS[np.choose(doing, [0, 1, 2])]
    names[is_multipart & (doing != CREATE) & (doing != COMPLETE)] = "upload_part"
    return np.asarray(names)


def _steps(
    demand: Demand,
    simulated: SimulationState,
    number: Ints,
    function: Ints,
) -> _Table:
    """Return curves; the rates of simultaneous pieces of an operation add up."""
    operation = simulated.pieces[1].astype(np.int64)
    begin, end = _instant(simulated.pieces[2]), _instant(simulated.pieces[3])
    end = np.maximum(end, begin + 1)
    rate = simulated.pieces[4] / (end - begin)
    begun = np.flatnonzero(~np.isnan(simulated.done.start_s))
    # Add an event at the start of each operation, so that the curve starts there.
    events = np.concatenate((begun, operation, operation))
    at = np.concatenate((_instant(simulated.done.start_s[begun]), begin, end))
    change = np.concatenate((np.zeros(len(begun)), rate, -rate))
    order = np.lexsort((at, number[events], function[events]))
    events, at, change = events[order], at[order], np.cumsum(change[order])
    length = np.diff(at, append=0)
    kept = np.append(events[1:] == events[:-1], [False]) & (length > 0)
    events, length, rate = events[kept], length[kept], np.maximum(change[kept], 0)
    columns = {
        "operation": number[events],
        "step_ns": length,
        "step_bytes": _whole_bytes(events, rate * length, demand, operation, simulated.pieces[4]),
    }
    return _Table(kind=Step, columns=columns, first=_first(function[events], demand.functions))


def _whole_bytes(
    events: Ints, moved: Floats, demand: Demand, operation: Ints, pieces: Floats
) -> Ints:
    """Return integer bytes of steps; those of an operation add up to the bytes it transferred."""
    count = len(demand.size)
    exact = np.rint(np.bincount(operation, weights=pieces, minlength=count))
    rough = np.bincount(events, weights=moved, minlength=count)
    scale = np.divide(exact, rough, out=np.zeros(count), where=rough > 0)
    running = np.cumsum(moved * scale[events])
    last = np.append(events[1:] != events[:-1], [True])[: len(events)]
    # The sums are integers apart from rounding, which is corrected at the end of each operation.
    ends = np.flatnonzero(last)
    running[ends] = np.cumsum(exact[events[ends]])
    return np.maximum(np.diff(np.rint(running), prepend=0), 0).astype(np.int64)
