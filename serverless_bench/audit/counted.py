"""Requests against the bill, the driver's looks at the clock, and what is still there."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from serverless_bench.audit.claims import Claims
from serverless_bench.audit.differences import Difference, Differences
from serverless_bench.audit.scope import MARGIN_NS, Scope
from serverless_bench.audit.witness import Seen

_FREE: Final = frozenset({"abort_multipart", "delete", "delete_objects"})
_NAMES: Final = {"list_objects": "list", "list_uploads": "list", "head_bucket": "head"}
_UPLOADS: Final = {"create_multipart": 1, "complete_multipart": -1, "abort_multipart": -1}
_MADE: Final = frozenset({"put", "complete_multipart"})
_GONE: Final = frozenset({"delete", "delete_objects"})
_GET_CLASS: Final = frozenset({"get", "head"})
_AROUND: Final = ("control", "gate", "probes")


def billed(requests: Sequence[Seen]) -> Counter[str]:
    """Return how many requests cost something, by the words of the bill.

    Deletions and aborts are free, and so are answers with 5xx.
    """
    return Counter(
        _NAMES.get(one.operation or "", one.operation or "copy")
        for one in requests
        if one.operation not in _FREE and (one.status is None or one.status < 500)
    )


def bill(claims: Claims, found: Scope, said: Mapping[str, int], *, exact: bool) -> Differences:
    """Yield kinds of requests of which the bill has others than the store saw.

    Parameters
    ----------
    claims, found
        The run, and its requests.
    said
        The bill's requests, by kind, and as ``control``, ``gate`` and ``probes``.
    exact
        Whether the bill says that these are all of them.
    """
    # What left no record is in no bill.
    exact = exact and not (claims.lost or claims.again)
    around = {name: sum(billed(getattr(found, name)).values()) for name in _AROUND}
    # A try without an answer is billed: it may have been refused, or never have come.
    unsure = Counter(
        attempt["request"]
        for function in claims.functions
        for attempts in function.attempts.values()
        for attempt in attempts
        if attempt["status"] is None
    )
    data = Counter({kind: count for kind, count in said.items() if kind not in _AROUND})
    there = billed(found.data)
    if not claims.exact:
        # A library puts in parts what it was to put; what each costs is the same.
        data, there, unsure = _classes(data), _classes(there), _classes(unsure)
    for kind in sorted({*there, *data}):
        told, saw = data[kind], there[kind]
        if told - unsure[kind] > saw or (exact and told < saw):
            yield Difference("bill", f"{told} {kind} are billed, the store saw {saw}")
    for name, saw in around.items():
        told = said.get(name, 0)
        if told > saw or (exact and told < saw):
            yield Difference("bill", f"{told} requests are billed for {name}, the store saw {saw}")


def _classes(kinds: Mapping[str, int]) -> Counter[str]:
    found: Counter[str] = Counter()
    for kind, count in kinds.items():
        found["of the GET class" if kind in _GET_CLASS else "of the PUT class"] += count
    return found


def probes(claims: Claims, found: Scope) -> Differences:
    """Yield looks at the store's clock that the store did not have."""
    free = sorted(one.head_ns for one in found.probes if one.ok)
    for sent_ns, received_ns, *_ in claims.probes:
        inside = [ns for ns in free if sent_ns - MARGIN_NS <= ns <= received_ns + MARGIN_NS]
        if inside:
            free.remove(inside[0])
        else:
            yield Difference("requests", "the driver's look at the clock was not seen")


def left(claims: Claims, seen: Sequence[Seen]) -> list[str]:
    """Return what the run made and nobody deleted: keys, and keys of open uploads."""
    target, control = claims.job["target"], claims.job.get("control")
    folders = [(target["bucket"], f"{target['prefix']}{claims.run_id}/gate/")]
    if control is not None:
        folders.append((control["bucket"], f"{control['prefix']}{claims.run_id}/"))
    there: dict[tuple[str, str], int] = {}
    uploads: Counter[str] = Counter()
    for one in seen:
        place = (one.bucket, one.key)
        mine = one.bucket == target["bucket"] and one.key in claims.ledger
        if not one.ok:
            continue
        if mine or any(one.bucket == b and one.key.startswith(f) for b, f in folders):
            uploads[one.key] += _UPLOADS.get(one.operation or "", 0)
            if one.operation in _MADE:
                there[place] = one.request
        for key in (one.key, *one.keys) if one.operation in _GONE else ():
            there.pop((one.bucket, key), None)
    return [*(key for _, key in there), *(key for key, count in uploads.items() if count > 0)]
