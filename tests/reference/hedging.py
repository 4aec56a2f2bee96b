"""What a report should say of second requests, from the rows."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import floor
from typing import Any

from tests.reference.rows import Row, S, Saved


def hedging(
    run: Saved, bill: Row | None, quantile: Callable[[Sequence[Any], Fraction], Any]
) -> Row | None:
    hedge = run.job.get("hedge")
    if hedge is None:
        return None
    gets = [(op, t) for op in run.measured for t in op["attempts"] if t["request"] == "get"]
    before = {id(tried): _before(op, tried) for op, tried in gets}
    seconds = [tried for _, tried in gets if before[id(tried)] is not None]
    won = [tried for tried in seconds if tried["error"] is None]
    given_up = [tried for _, tried in gets if tried["error"] == "hedged"]
    failed = [t for t in seconds if t["error"] is not None and t["error"] != "hedged"]
    reads = [op for op in run.good if op["kind"] in {"get", "get_range"}]
    least, earlier, later = list[int](), list[int](), list[int]()
    first = min((tried["start_ns"] for tried in seconds), default=0)
    for op in reads:
        ends = [before[id(t)]["end_ns"] for t in op["attempts"] if any(t is one for one in won)]
        least.append(max(ends, default=op["end_ns"]) - op["start_ns"])
        (earlier if op["start_ns"] < first else later).append(least[-1])
    took = [op["end_ns"] - op["start_ns"] for op in reads]
    one_in_a_hundred = Fraction(99, 100)
    displaced = _displaced([tried for _, tried in gets])
    share = Fraction(len(seconds), len(gets) - len(seconds)) if gets else None
    displaces = displaced > len(won) and 100 * displaced > len(gets) - len(seconds)
    in_vain = share is not None and share > Fraction(1, 10) and 5 * len(won) < len(seconds)
    slowed = in_vain and len(earlier) >= 4 and later != []
    slowed = slowed and 4 * quantile(later, Fraction(1, 2)) > 5 * max(earlier)
    return {
        "after": str(hedge),
        "requests": len(gets) - len(seconds),
        "hedges": len(seconds),
        "share": share,
        "won": len(won),
        "failed": len(failed),
        "wasted_bytes": sum(tried["bytes"] for tried in given_up),
        "cost": None if bill is None else _cost(bill, seconds),
        "p99_s": Fraction(quantile(took, one_in_a_hundred), S) if took else None,
        "p99_without_s": Fraction(quantile(least, one_in_a_hundred), S) if took else None,
        "displaced": displaced,
        "made_worse": True if displaces or slowed else None,
    }


def _before(op: Row, tried: Row) -> Any:
    """Return the request of which this one is the second; None if it is the first."""
    alike = [
        (other["start_ns"], number, other)
        for number, other in enumerate(op["attempts"])
        if all(other[name] == tried[name] for name in ("request", "part", "number"))
    ]
    alike.sort(key=lambda one: one[:2])
    place = next(n for n, one in enumerate(alike) if one[2] is tried)
    return alike[place - 1][2] if place else None


def _displaced(gets: Sequence[Row]) -> int:
    if not _is_limited(gets):
        return 0
    first, found = min((tried["end_ns"] for tried in gets), default=0), 0
    for second in {(tried["end_ns"] - first) // S for tried in gets}:
        mine = [tried["error"] for tried in gets if (tried["end_ns"] - first) // S == second]
        refused, admitted = mine.count("throttled"), mine.count(None)
        share = Fraction(admitted, refused + admitted) if refused + admitted else Fraction(0)
        found += min(refused, floor(mine.count("hedged") * share))
    return found


def _is_limited(gets: Sequence[Row]) -> bool:
    """Compare the time since the fourth request before: of throttled requests, and of others."""
    starts = sorted(tried["start_ns"] for tried in gets)
    refused, others = list[int](), list[int]()
    first = min((t["start_ns"] for t in gets if t["error"] == "throttled"), default=0)
    for tried in gets:
        place = starts.index(tried["start_ns"])
        if place >= 4 and tried["start_ns"] > first and tried["error"] in {"throttled", None}:
            since = tried["start_ns"] - starts[place - 4]
            (others if tried["error"] is None else refused).append(since)
    pairs = len(refused) * len(others)
    longer = sum(one > other for one in others for other in refused)
    above = Fraction(longer) - Fraction(pairs, 2)
    variance = Fraction(pairs * (len(refused) + len(others) + 1), 12)
    return above > 0 and above**2 > 16 * variance


def _cost(bill: Row, seconds: Sequence[Row]) -> Fraction:
    """Return the price of these requests: each costs what any GET of the bill does."""
    paid = [tried for tried in seconds if tried["status"] is None or tried["status"] < 500]
    parts = (
        bill["requests"],
        bill["overhead"].get("barrier", {}),
        bill["overhead"].get("probes", {}),
    )
    gets = sum(part.get("get", 0) + part.get("head", 0) for part in parts)
    return Fraction(bill["dollars"]["gets"]) * len(paid) / gets if gets else Fraction(0)
