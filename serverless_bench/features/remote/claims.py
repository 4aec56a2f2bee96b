"""The control prefix: where workers claim launches and store their records.

A cloud queue delivers an event at least once, late, or not at all, so only the store is trusted.
These keys are below ``PREFIX RUN/``::

    claims/INDEX/LAUNCH             the worker that runs this launch; written only if absent
    records/INDEX/LAUNCH/DELIVERY   result of one delivery of the event, or why it could not claim
    claims/stop                     the last launch that has to stop, if any (``looks``)
    claims/progress/INDEX/LAUNCH    what a function has done so far (``sample``)

The claim is made before the first byte moves, either by a worker that starts or by the driver that
cancels the launch. Only the first of them succeeds, so a launch runs once or never. Indexes have
eight digits, so that listings are sorted by index.

Polling workers find their work below the same prefix, in one folder for all runs::

    events/RUN/INDEX/LAUNCH         an event; deleted by any worker that sees its claim
"""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from types import NoneType
from typing import Any, Final

from serverless_bench.base.errors import NotFound, OperationError, one_line
from serverless_bench.base.units import KIB
from serverless_bench.job.target import Target
from serverless_bench.worker.in_memory import TooLong
from serverless_bench.worker.object_io import ObjectIO

PROBE: Final = "probe"
"""Key of a probe's event; it takes the place of an invocation."""
PROBE_CLAIM: Final = "claims/probe-"
PROBE_RECORD: Final = "records/probe-"
"""Prefixes of the names that ``probe`` writes: not a claim or record of any launch."""
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
    """Parts of a record's key."""

    index: int
    launch: int
    delivery: str


def for_run(control: Target, run_id: str) -> Target:
    """Return the control target of one run, with the run's prefix."""
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
    """Parse a key after ``records/``; return None if no worker wrote it."""
    match = _RECORD.fullmatch(name)
    return RecordKey(int(match[1]), int(match[2]), match[3]) if match else None


def before(index: int) -> str:
    """Return the name in ``records/`` to list after, to get the records from an index on.

    The index itself does not work: SeaweedFS takes it for a folder and skips its contents.
    """
    return f"{index - 1:0{_DIGITS}}/~" if index else ""


def parse_claim(name: str) -> tuple[int, int] | None:
    """Return index and launch from a claim's key after ``claims/`` or an event's, or None."""
    match = _CLAIM.fullmatch(name)
    return (int(match[1]), int(match[2])) if match else None


def is_of_probe(name: str) -> bool:
    """Return whether ``features.remote.probe`` wrote the object with this name."""
    return name.startswith((PROBE_CLAIM, PROBE_RECORD))


def claim(
    store: ObjectIO, name: str, data: Mapping[str, Any], *, timeout_s: float
) -> Mapping[str, Any]:
    """Write a claim unless it exists, and return the claim that is then in the store.

    Raises
    ------
    OperationError
        If the store neither accepted nor rejected it within ``timeout_s``.
    """
    try:
        store.put(name, json.dumps(data).encode(), if_absent=True, timeout_s=timeout_s)
    except OperationError as exc:
        if exc.status != _CONFLICT:
            raise
        # It may be from an earlier attempt of this worker that got no response.
        return _read(store, name, timeout_s)
    return data


def get_claim(
    store: ObjectIO, index: int, launch: int, *, timeout_s: float
) -> Mapping[str, Any] | None:
    """Return a claim; None if it does not exist."""
    try:
        return _read(store, claim_name(index, launch), timeout_s)
    except NotFound:
        return None


def leave_refusal(store: ObjectIO, run_id: str, key: RecordKey, reason: str) -> None:
    """If permitted, write a reason for not claiming a launch in place of its record."""
    refusal = json.dumps({"run_id": run_id, "refused": reason}).encode()
    with suppress(OperationError):
        store.put(record_name(key), refusal, timeout_s=_REFUSAL_S)


def read_refusal(data: bytes) -> str:
    """Return the reason written by ``leave_refusal``; empty if there is none."""
    try:
        refusal = json.loads(data)
    except (RecursionError, ValueError):
        return ""
    reason = refusal.get("refused") if isinstance(refusal, dict) else None
    return one_line(reason) if isinstance(reason, str) else ""


def _read(store: ObjectIO, name: str, timeout_s: float) -> Mapping[str, Any]:
    """Return a claim as a mapping; empty if the object is not a valid claim."""
    try:
        data = json.loads(store.get(name, most=_CLAIM_BYTES, timeout_s=timeout_s))
    except (RecursionError, TooLong, ValueError):
        return {}
    return data if isinstance(data, dict) and _is_claim(data) else {}


def _is_claim(data: Mapping[str, Any]) -> bool:
    """Return whether the holder in a claim is plausible: others may write to this prefix too."""
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
