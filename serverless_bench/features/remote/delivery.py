"""The worker's side of a queue: a delivery of an event.

However the queue behaves, a launch transfers its bytes at most once, and a delivery that arrives
too late does nothing.
"""

import json
import os
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from serverless_bench.base.clock import monotonic_ns, wall_ns
from serverless_bench.base.errors import (
    OperationError,
    SbenchError,
    last_failure,
    one_line,
    without_secrets,
)
from serverless_bench.base.process import Kept, rest
from serverless_bench.base.units import NS_PER_S
from serverless_bench.features.remote.claims import (
    PROBE,
    RecordKey,
    claim,
    claim_name,
    for_run,
    leave_refusal,
    record_name,
)
from serverless_bench.features.remote.looks import looking
from serverless_bench.job.spec import InvocationSpec
from serverless_bench.rundir.record import InvocationRecord
from serverless_bench.worker.invocation import run_invocation
from serverless_bench.worker.object_io import ObjectIO

RECORD_S: Final = 5.0
"""Time that an invocation reserves for writing its record."""
_CLAIM_S: Final = 30.0

_stores: Final = Kept()


def deliver(
    event: Mapping[str, Any],
    *,
    remaining_s: float | None = None,
    withdraw: Callable[[], object] | None = None,
) -> tuple[InvocationRecord | None, str]:
    """Run a delivery of an event: claim the launch, run it, write the record.

    Parameters
    ----------
    event
        ``asdict`` of an ``InvocationSpec`` that has a control target.
    remaining_s
        Time before this process is ended; None for no limit.
    withdraw
        Removes the event, so that other workers do not find it; called once the launch is claimed,
        by any worker. With it, a launch claimed by another worker is not a duplicate, because the
        event was sent only once.

    Returns
    -------
    InvocationRecord or None, str
        The record written and an empty text, or a reason; without a record, the reason why the
        launch did not run.

    Raises
    ------
    OperationError
        If the launch could not be claimed, or the record could not be written.
    """
    start_ns = monotonic_ns()
    invocation = InvocationSpec.from_json(event)
    control = invocation.control
    if control is None:
        raise ValueError("this invocation has no control target")
    if wall_ns() > invocation.not_after_ns:
        return None, "expired: delivered after the run had stopped waiting"
    if remaining_s is not None:
        invocation = _within(invocation, remaining_s - RECORD_S)
    delivery = os.urandom(16).hex()
    store = _stores.open(ObjectIO, for_run(control, invocation.run_id))
    before, held_s = store.requests.copy(), invocation.deadline + RECORD_S
    try:
        holder = _claim(store, invocation, delivery, held_s)
    except OperationError as exc:
        reason, permanent = why_refused(exc)
        if permanent:
            key = RecordKey(invocation.index, invocation.launch, delivery)
            leave_refusal(store, invocation.run_id, key, reason)
        raise
    if withdraw is not None:
        withdraw()
    if "delivery" not in holder:
        return None, "cancelled: the driver has cancelled this launch"
    if withdraw is not None and holder["delivery"] != delivery:
        return None, "taken: another worker claimed it first"
    # The time of the claim is part of the invocation's time: it is billed too.
    invocation = _within(invocation, invocation.deadline - _since_s(start_ns))
    other = holder["delivery"]
    refused = None if other == delivery else f"duplicate: delivery {other} already runs this launch"
    record = _run(invocation, delivery, refused, store, before)
    # Stop when the claim expires: the driver and `sbench clean` rely on that.
    limit_s = held_s if remaining_s is None else min(held_s, remaining_s - RECORD_S / 10)
    name = record_name(RecordKey(record.index, record.launch, delivery))
    data = json.dumps(record.to_json(), separators=(",", ":")).encode()
    store.put(name, data, timeout_s=max(1.0, limit_s - _since_s(start_ns)))
    return record, refused or ""


def _since_s(start_ns: int) -> float:
    return (monotonic_ns() - start_ns) / NS_PER_S


def _within(invocation: InvocationSpec, remaining_s: float) -> InvocationSpec:
    """Return an invocation limited to the remaining time."""
    return replace(invocation, deadline=min(invocation.deadline, max(0.1, remaining_s)))


def _run(
    invocation: InvocationSpec,
    delivery: str,
    refused: str | None,
    store: ObjectIO,
    before: Counter[str],
) -> InvocationRecord:
    """Run an invocation, and return its record with the requests of its delivery."""
    if refused is None:
        with looking(store, invocation) as board:
            record = run_invocation(invocation, board=board)
    else:
        record = run_invocation(invocation, refused=refused)
    requests = store.requests - before
    return replace(
        record,
        delivery=delivery,
        duplicate=refused is not None,
        control_puts=requests["put"] + 1,
        control_gets=requests["get"],
    )


def handle_here(event: Mapping[str, Any]) -> dict[str, Any]:
    """Run an invocation that was called directly, and return the record as JSON.

    With a control target it looks for a stop, like a delivered invocation.
    """
    invocation = InvocationSpec.from_json(event)
    if invocation.control is None:
        return run_invocation(invocation).to_json()
    store = _stores.open(ObjectIO, for_run(invocation.control, invocation.run_id))
    before = store.requests.copy()
    with looking(store, invocation) as board:
        record = run_invocation(invocation, board=board)
    requests = store.requests - before
    return replace(record, control_puts=requests["put"], control_gets=requests["get"]).to_json()


def _claim(
    store: ObjectIO, invocation: InvocationSpec, delivery: str, held_s: float
) -> Mapping[str, Any]:
    """Claim a launch for a delivery, and return the claim that is then in the store."""
    return claim(
        store,
        claim_name(invocation.index, invocation.launch),
        {
            "run_id": invocation.run_id,
            "delivery": delivery,
            "held_s": held_s,
            "until_ns": wall_ns() + round(held_s * NS_PER_S),
        },
        timeout_s=min(_CLAIM_S, invocation.deadline),
    )


def handle_delivery(event: Mapping[str, Any], remaining_s: float | None = None) -> dict[str, Any]:
    """Run a delivery as ``deliver`` does, and return a short summary for its caller.

    For a probe's event, return the findings of ``features.remote.probe``.
    """
    if PROBE in event:
        # Import it here, so that other cold starts do not pay for it.
        from serverless_bench.features.remote.probe import run_probe

        return run_probe(event)
    try:
        record, refused = deliver(event, remaining_s=remaining_s)
    finally:
        rest()
    if record is None:
        return {"refused": refused}
    return {"delivery": record.delivery, "ok": record.ok, "error": record.error}


def answer_delivery(event: Mapping[str, Any], remaining_s: float | None = None) -> str:
    """Run a delivery as ``handle_delivery`` does, and return its answer or error as JSON.

    For an event that was not run, the answer has ``refused``, the reason, and ``permanent``:
    whether the next launch would fail in the same way.
    """
    try:
        return json.dumps(handle_delivery(event, remaining_s=remaining_s))
    except Exception as exc:  # noqa: BLE001 - any error is the event's answer
        reason, permanent = why_refused(exc)
        return json.dumps({"refused": reason, "permanent": permanent})


def why_refused(error: Exception) -> tuple[str, bool]:
    """Return the reason for not running an event, and whether the next launch would fail too."""
    failure = last_failure(error)
    name, text = type(failure).__name__, str(failure)
    reason = one_line(without_secrets(text if text.startswith(name) else f"{name}: {text}"))
    return reason, isinstance(failure, SbenchError) and not getattr(failure, "retryable", False)


forget_stores: Final = _stores.forget
"""Close each connection that this process keeps for its next delivery."""
