"""Requests against the bill, the driver's looks at the clock, and what is still there."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from serverless_bench.audit.claims import Claims
from serverless_bench.audit.differences import Difference, Differences
from serverless_bench.audit.pairs import Pairs
from serverless_bench.audit.scope import MARGIN_NS, Scope
from serverless_bench.audit.witness import Seen

_FREE: Final = frozenset({"abort_multipart", "delete", "delete_objects"})
_NAMES: Final = {"list_objects": "list", "list_uploads": "list", "head_bucket": "head"}
_UPLOADS: Final = {"create_multipart": 1, "complete_multipart": -1, "abort_multipart": -1}
_MADE: Final = frozenset({"put", "complete_multipart"})
_GONE: Final = frozenset({"delete", "delete_objects"})
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


def bill(found: Scope, pairs: Pairs, said: Mapping[str, int], *, exact: bool) -> Differences:
    """Yield kinds of requests of which the bill has others than the store saw.

    Parameters
    ----------
    found, pairs
        The run's requests, and its tries.
    said
        The bill's requests, by kind, and as ``control``, ``gate`` and ``probes``.
    exact
        Whether the bill says that these are all of them.
    """
    there = billed(found.data)
    around = {name: sum(billed(getattr(found, name)).values()) for name in _AROUND}
    # A try without an answer is billed, and may never have come to the store.
    unsure = Counter(attempt["request"] for _, _, attempt in pairs.alone)
    for kind in sorted({*there, *said} - {*_AROUND}):
        told, saw = said.get(kind, 0), there[kind]
        over, under = told - unsure[kind] > saw, told < saw
        if over or (exact and under):
            yield Difference("bill", f"{told} {kind} are billed, the store saw {saw}")
    for name, saw in around.items():
        told = said.get(name, 0)
        if told > saw or (exact and told < saw):
            yield Difference("bill", f"{told} requests are billed for {name}, the store saw {saw}")


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
