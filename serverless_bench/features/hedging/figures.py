"""Compute the benefit and the cost of second requests. Pure functions.

The two requests of a pair have the same operation, part and number; the second started later. It is
not known how long the first would have taken if the second was answered before it, only that it
would have taken longer: times without hedging are lower bounds.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import Struct

from serverless_bench.base.errors import Hedged, Throttled
from serverless_bench.base.units import NS_PER_S
from serverless_bench.features.hedging.options import HedgingOptions
from serverless_bench.job.price_classes import FREE_STATUS, GET_CLASS
from serverless_bench.metrics.timeline import measured_operations
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import (
    LATEST,
    READS,
    Ints,
    Mask,
    at_percentiles,
    is_one_of,
    is_text,
)

if TYPE_CHECKING:
    from serverless_bench.features.cost.bill import Bill


_LEAST_SHARE: Final = 0.01
"""Share of the requests that must have given way before the report says so."""
_LEAST_LOAD: Final = 0.1
"""Share of second requests that may slow a store down noticeably."""
_MOST_WON: Final = 0.2
"""Share of second requests that win at most where they mostly wait behind the first."""
_SLOWER: Final = 1.25
_LEAST_EARLIER: Final = 4
"""Four operations are seldom all much faster than the median if nothing has changed."""
_BEFORE: Final = 4
"""Number of requests that tells how many a store got lately."""


class HedgingSummary(Struct, frozen=True, kw_only=True):
    """Second requests for slow objects; figures.toml defines each field."""

    after: str
    requests: int
    hedges: int
    share: float | None
    won: int
    failed: int
    wasted_bytes: int
    cost: float | None
    p99_s: float | None
    p99_without_s: float | None
    displaced: int
    made_worse: bool | None


def hedging_summary(run: Run, good: Mask, bill: "Bill | None") -> HedgingSummary | None:
    """Return the totals over second requests; None for a run without hedging.

    Parameters
    ----------
    run
        A saved run.
    good
        Mask of successful operations that count, shape ``(operations,)``.
    bill
        The bill of the run; None if it has none.
    """
    hedge = HedgingOptions.from_work(run.job).hedge
    if hedge is None:
        return None
    rows, operations = run.operation_rows(run.attempts), run.operations
    gets = np.flatnonzero(measured_operations(run)[rows] & is_text(run.attempts["request"], "get"))
    order = [run.attempts[name][gets] for name in ("start_ns", "number", "part")]
    gets = gets[np.lexsort([*order, rows[gets]])]
    names = ("start_ns", "number", "part", "end_ns", "bytes", "status", "error")
    attempts = {name: run.attempts[name][gets] for name in names} | {"row": rows[gets]}
    identity = np.stack([attempts[name] for name in ("row", "part", "number")])
    second = np.append(False, (identity[:, 1:] == identity[:, :-1]).all(axis=0))[: len(gets)]
    given_up, succeeded = (is_text(attempts["error"], code) for code in (Hedged.code, None))
    won = second & succeeded
    hedges, wins = int(second.sum()), int(won.sum())
    requests = len(gets) - hedges
    displaced = _displaced(attempts, succeeded, given_up)
    # Without the second request, an operation would not have ended before the first was given up.
    start, end = operations["start_ns"], operations["end_ns"]
    least, hedged = end.copy(), attempts["row"][won]
    least[hedged] = 0
    np.maximum.at(least, hedged, attempts["end_ns"][np.flatnonzero(won) - 1])
    reads = good & is_one_of(operations["kind"], READS)
    is_vain = hedges > _LEAST_LOAD * requests and wins < _MOST_WON * hedges
    return HedgingSummary(
        after=str(hedge),
        requests=requests,
        hedges=hedges,
        share=hedges / requests if requests else None,
        won=wins,
        failed=int((second & ~succeeded & ~given_up).sum()),
        wasted_bytes=int(attempts["bytes"][given_up].sum()),
        cost=_cost(bill, int((second & (attempts["status"] < FREE_STATUS)).sum())),
        p99_s=_p99_s((end - start)[reads]),
        p99_without_s=_p99_s((least - start)[reads]),
        displaced=displaced,
        made_worse=displaced > max(wins, _LEAST_SHARE * requests)
        or (is_vain and _slowed(start[reads], least[reads], attempts["start_ns"][second].min()))
        or None,
    )


def _p99_s(durations_ns: Ints) -> float | None:
    return float(at_percentiles(durations_ns, [99])[0]) / NS_PER_S if len(durations_ns) else None


def _slowed(start_ns: Ints, end_ns: Ints, since_ns: int) -> bool:
    """Return whether operations that start from an instant on took longer than any before it.

    In a queue, no second request is ahead of those that start before the first of them.
    """
    took_ns, is_later = end_ns - start_ns, start_ns >= since_ns
    earlier, later = took_ns[~is_later], took_ns[is_later]
    enough = len(earlier) >= _LEAST_EARLIER and len(later)
    return bool(enough and at_percentiles(later, [50])[0] > _SLOWER * earlier.max())


def _displaced(attempts: Mapping[str, Any], succeeded: Mask, given_up: Mask) -> int:
    """Return how many throttled requests had to give way to requests that were given up.

    Of those given up in a second, as many were admitted as of the rest in that second. A store
    that throttles at random lets none give way.
    """
    throttled = is_text(attempts["error"], Throttled.code)
    if not _is_limited(attempts["start_ns"], throttled, succeeded):
        return 0
    second = (attempts["end_ns"] - attempts["end_ns"].min()) // NS_PER_S
    masks = (throttled, given_up, succeeded)
    refused, vain, admitted = (np.bincount(second, mask) for mask in masks)
    vain_admitted = vain * admitted // np.maximum(refused + admitted, 1)
    return int(np.minimum(refused, vain_admitted).sum())


def _is_limited(start_ns: Ints, throttled: Mask, succeeded: Mask) -> bool:
    """Return whether requests were throttled because of those just before them.

    With a limit, less time has passed since the fourth request before a throttled request than
    before a successful request; with 503s at random, as much. It is the rank-sum test of Mann and
    Whitney, at 4 standard deviations, from the first throttled request on.
    """
    ordered_ns = np.sort(start_ns)
    place = np.searchsorted(ordered_ns, start_ns)
    since_ns = start_ns - ordered_ns[np.maximum(place - _BEFORE, 0)]
    is_later = (place >= _BEFORE) & (start_ns > start_ns[throttled].min(initial=LATEST))
    refused_ns, others_ns = since_ns[is_later & throttled], since_ns[is_later & succeeded]
    n, m = len(refused_ns), len(others_ns)
    shorter = int(np.searchsorted(np.sort(others_ns), refused_ns, side="right").sum())
    excess = n * m - 2 * shorter
    return excess > 0 and 3 * excess**2 > 16 * n * m * (n + m + 1)


def _cost(bill: "Bill | None", hedges: int) -> float | None:
    """Return the price of GET requests, according to the bill."""
    if bill is None:
        return None
    parts = [bill.requests, bill.overhead.get("barrier", {}), bill.overhead.get("probes", {})]
    gets = sum(counts.get(name, 0) for counts in parts for name in GET_CLASS)
    return bill.dollars.gets * hedges / max(gets, 1)
