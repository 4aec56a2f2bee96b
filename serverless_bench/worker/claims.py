"""The control prefix: where workers claim their work and leave their records.

A cloud queue delivers an event at least once, late, or not at all, so nothing but the
store is believed. Below ``PREFIX RUN/`` stand::

    claims/INDEX/LAUNCH             which worker runs this launch; written only if absent
    records/INDEX/LAUNCH/DELIVERY   what one delivery of the event measured, or why it may not claim

The claim is made before the first byte, by a worker that begins or by the driver that
takes the launch back: one of them is first, so a launch runs once or never. Indexes
have eight digits, so that a listing is in their order.

Workers that nobody invokes find their work below the same prefix, of all runs in one folder::

    events/RUN/INDEX/LAUNCH         an event; deleted by whoever knows of its claim
"""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from types import NoneType
from typing import Any, Final

from serverless_bench.errors import NotFound, OperationError, one_line
from serverless_bench.job.target import Target
from serverless_bench.units import KIB
from serverless_bench.worker.in_memory import TooLong
from serverless_bench.worker.object_io import ObjectIO

PROBE: Final = "probe"
"""What an event of the probe has in place of an invocation."""
PROBE_CLAIM: Final = "claims/probe-"
PROBE_RECORD: Final = "records/probe-"
"""How the names begin that ``worker.probe`` writes: no claim and no record of any launch."""
_DIGITS: Final = 8
_DELIVERY: Final = re.compile(r"[0-9a-f]{32}")
_RECORD: Final = re.compile(r"([0-9]{8,12})/([0-9]{1,9})/([0-9a-f]{32})")
_CLAIM: Final = re.compile(r"([0-9]{8,12})/([0-9]{1,9})")
_CLAIM_BYTES: Final = 64 * KIB
_REFUSAL_S: Final = 5.0
_MOST_HELD_S: Final = 10**7
_MOST_NS: Final = 1 << 63
_CONFLICT: Final = 412


@dataclass(frozen=True, slots=True, order=True)
class RecordKey:
    """What stands in the key of a record."""

    index: int
    launch: int
    delivery: str


def for_run(control: Target, run_id: str) -> Target:
    """Return the control target of one run; its prefix is the run's own."""
    return replace(control, client="", prefix=f"{control.prefix}{run_id}/")


def claim_name(index: int, launch: int) -> str:
    """Return the key of a claim, without the run's prefix."""
    return f"claims/{index:0{_DIGITS}}/{launch}"


def record_name(key: RecordKey) -> str:
    """Return the key of a record, without the run's prefix."""
    return f"records/{key.index:0{_DIGITS}}/{key.launch}/{key.delivery}"


def for_events(control: Target) -> Target:
    """Return the control target of all runs' events."""
    return replace(control, client="", prefix=f"{control.prefix}events/")


def event_name(run_id: str, index: int, launch: int) -> str:
    """Return the key of an event, without the prefix of all events."""
    return f"{run_id}/{index:0{_DIGITS}}/{launch}"


def parse_record(name: str) -> RecordKey | None:
    """Return what stands in a key after ``records/``; None if no worker wrote it."""
    match = _RECORD.fullmatch(name)
    return RecordKey(int(match[1]), int(match[2]), match[3]) if match else None


def before(index: int) -> str:
    """Return the name in ``records/`` after which the records of an index begin.

    Not the index itself: SeaweedFS takes that for a folder, and skips what is in it.
    """
    return f"{index - 1:0{_DIGITS}}/~" if index else ""


def parse_claim(name: str) -> tuple[int, int] | None:
    """Return index and launch of a claim's key after ``claims/``, or an event's; else None."""
    match = _CLAIM.fullmatch(name)
    return (int(match[1]), int(match[2])) if match else None


def is_of_probe(name: str) -> bool:
    """Tell whether ``worker.probe`` wrote what has a name."""
    return name.startswith((PROBE_CLAIM, PROBE_RECORD))


def claim(
    store: ObjectIO, name: str, data: Mapping[str, Any], *, timeout_s: float
) -> Mapping[str, Any]:
    """Write a claim unless it is there, and return the one that is there then.

    Raises
    ------
    OperationError
        If the store did neither accept nor refuse it within ``timeout_s``.
    """
    try:
        store.put(name, json.dumps(data).encode(), if_absent=True, timeout_s=timeout_s)
    except OperationError as exc:
        if exc.status != _CONFLICT:
            raise
        # It may be our own, from an attempt whose response was lost.
        return _read(store, name, timeout_s)
    return data


def get_claim(
    store: ObjectIO, index: int, launch: int, *, timeout_s: float
) -> Mapping[str, Any] | None:
    """Return a claim; None if there is none."""
    try:
        return _read(store, claim_name(index, launch), timeout_s)
    except NotFound:
        return None


def leave_refusal(store: ObjectIO, run_id: str, key: RecordKey, reason: str) -> None:
    """Write in place of a record why its launch could not be claimed, if that is allowed."""
    left = json.dumps({"run_id": run_id, "refused": reason}).encode()
    with suppress(OperationError):
        store.put(record_name(key), left, timeout_s=_REFUSAL_S)


def read_refusal(data: bytes) -> str:
    """Return what ``leave_refusal`` wrote; empty if it did not."""
    try:
        left = json.loads(data)
    except (RecursionError, ValueError):
        return ""
    reason = left.get("refused") if isinstance(left, dict) else None
    return one_line(reason) if isinstance(reason, str) else ""


def _read(store: ObjectIO, name: str, timeout_s: float) -> Mapping[str, Any]:
    """Return an object that is a claim; empty if it is anything else."""
    try:
        data = json.loads(store.get(name, most=_CLAIM_BYTES, timeout_s=timeout_s))
    except (RecursionError, TooLong, ValueError):
        return {}
    return data if isinstance(data, dict) and _is_claim(data) else {}


def _is_claim(data: Mapping[str, Any]) -> bool:
    """Tell whether what a claim says of its holder can be: others write there, too."""
    delivery, held_s, until_ns = (data.get(n) for n in ("delivery", "held_s", "until_ns"))
    if delivery is None:
        return True
    return (
        isinstance(delivery, str)
        and _DELIVERY.fullmatch(delivery) is not None
        and type(held_s) in {int, float, NoneType}
        and 0 <= (held_s or 0) <= _MOST_HELD_S
        and type(until_ns) in {int, NoneType}
        and 0 <= (until_ns or 0) < _MOST_NS
    )
