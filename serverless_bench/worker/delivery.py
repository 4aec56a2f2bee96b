"""The worker's side of a queue: one delivery of one event.

Whatever the queue does, a launch moves its bytes at most once, and a delivery that
comes after its time touches nothing.
"""

import json
import os
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from serverless_bench.clock import monotonic_ns, wall_ns
from serverless_bench.errors import (
    OperationError,
    SbenchError,
    last_failure,
    one_line,
    without_secrets,
)
from serverless_bench.job.spec import InvocationSpec
from serverless_bench.rundir.record import InvocationRecord
from serverless_bench.units import NS_PER_S
from serverless_bench.worker.claims import (
    PROBE,
    RecordKey,
    claim,
    claim_name,
    for_run,
    leave_refusal,
    record_name,
)
from serverless_bench.worker.invocation import run_invocation
from serverless_bench.worker.kept import Kept, rest
from serverless_bench.worker.object_io import ObjectIO

RECORD_S: Final = 5.0
"""What an invocation keeps of its time for writing its record."""
_CLAIM_S: Final = 30.0

_stores: Final = Kept()


def deliver(
    event: Mapping[str, Any],
    *,
    remaining_s: float | None = None,
    withdraw: Callable[[], object] | None = None,
) -> tuple[InvocationRecord | None, str]:
    """Run one delivery of an event: claim the launch, run it, write the record.

    Parameters
    ----------
    event
        ``asdict`` of an ``InvocationSpec`` that has a control target.
    remaining_s
        How long this process may still live; None for as long as it likes.
    withdraw
        Takes the event from where other workers find it, too; called once its launch is
        claimed, by whomever. One that another worker was quicker to claim is no duplicate
        then, because nobody sent it twice.

    Returns
    -------
    InvocationRecord or None, str
        What was written, or None and why nothing was done.

    Raises
    ------
    OperationError
        If the launch could not be claimed, or the record not be written.
    """
    began_ns = monotonic_ns()
    invocation = InvocationSpec.from_json(event)
    control = invocation.control
    if control is None:
        raise ValueError("this invocation has no control target")
    if wall_ns() > invocation.not_after_ns:
        return None, "expired: delivered after the run had given it up"
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
        return None, "taken back: the driver has given this launch up"
    if withdraw is not None and holder["delivery"] != delivery:
        return None, "taken: another worker was quicker"
    # What the claim took is of the invocation's time: it is paid for, too.
    invocation = _within(invocation, invocation.deadline - _since_s(began_ns))
    other = holder["delivery"]
    refused = None if other == delivery else f"duplicate: delivery {other} has this launch"
    record = _run(invocation, delivery, refused, store.requests - before)
    # Not for longer than the claim says: the driver and `sbench clean` rely on that.
    limit_s = held_s if remaining_s is None else min(held_s, remaining_s - RECORD_S / 10)
    name = record_name(RecordKey(record.index, record.launch, delivery))
    data = json.dumps(record.to_json(), separators=(",", ":")).encode()
    store.put(name, data, timeout_s=max(1.0, limit_s - _since_s(began_ns)))
    return record, refused or ""


def _since_s(began_ns: int) -> float:
    return (monotonic_ns() - began_ns) / NS_PER_S


def _within(invocation: InvocationSpec, left_s: float) -> InvocationSpec:
    """Return an invocation that ends in the time that is left."""
    return replace(invocation, deadline=min(invocation.deadline, max(0.1, left_s)))


def _run(
    invocation: InvocationSpec, delivery: str, refused: str | None, requests: Counter[str]
) -> InvocationRecord:
    """Run an invocation, and return its record with what its delivery took."""
    return replace(
        run_invocation(invocation, refused=refused),
        delivery=delivery,
        duplicate=refused is not None,
        control_puts=requests["put"] + 1,
        control_gets=requests["get"],
    )


def _claim(
    store: ObjectIO, invocation: InvocationSpec, delivery: str, held_s: float
) -> Mapping[str, Any]:
    """Claim a launch for a delivery, and return the claim that is there then."""
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
    """Run one delivery as ``deliver`` does, and return a short summary for its caller.

    An event of the probe is answered with what ``worker.probe`` finds.
    """
    if PROBE in event:
        # No other cold start is to pay for it.
        from serverless_bench.worker.probe import run_probe  # noqa: PLC0415

        return run_probe(event)
    try:
        record, refused = deliver(event, remaining_s=remaining_s)
    finally:
        rest()
    if record is None:
        return {"refused": refused}
    return {"delivery": record.delivery, "ok": record.ok, "error": record.error}


def answer_delivery(event: Mapping[str, Any], remaining_s: float | None = None) -> str:
    """Run one delivery as ``handle_delivery`` does, and return its answer as JSON, errors too.

    An event that was not run has ``refused``, the reason, and ``permanent``: whether the next
    launch would be refused, too.
    """
    try:
        return json.dumps(handle_delivery(event, remaining_s=remaining_s))
    except Exception as exc:  # noqa: BLE001 - it is what becomes of this event
        reason, permanent = why_refused(exc)
        return json.dumps({"refused": reason, "permanent": permanent})


def why_refused(error: Exception) -> tuple[str, bool]:
    """Return why an event was not run, and whether the next launch would be refused, too."""
    failure = last_failure(error)
    name, text = type(failure).__name__, str(failure)
    reason = one_line(without_secrets(text if text.startswith(name) else f"{name}: {text}"))
    return reason, isinstance(failure, SbenchError) and not getattr(failure, "retryable", False)


forget_stores: Final = _stores.forget
"""Closes every connection that this process keeps for its next delivery."""
