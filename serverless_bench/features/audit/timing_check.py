"""Checks of latencies, clocks and schedules against the store's instants.

The time between two instants of the store also passes at the client, so no latency can be
shorter. Comparisons between two clocks allow for any offset that is consistent with all requests
of a function: a request is sent before it arrives, and a response is sent before it is complete.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from serverless_bench.features.audit.matching import MARGIN_NS, Matches, RunRequests, requests_of
from serverless_bench.features.audit.sources import ReportedFunction, ReportedRun, Row
from serverless_bench.features.check.audited import Discrepancies, Discrepancy
from serverless_bench.features.loopback.request_log import StoreRequest

_SLACK_NS: Final = 1_000_000
"""The store's wall clock is recorded once per second, and may be slewed in between."""
_ROUNDED_NS: Final = 1_000
_S: Final = 10**9
_SIGMAS: Final = 6


def check_latencies(run: ReportedRun, requests: RunRequests, matches: Matches) -> Discrepancies:
    """Yield attempts and operations that were faster than the store."""
    acknowledged: list[tuple[int, int]] = []
    for position, function in enumerate(run.functions):
        for op in function.operations:
            paired = matches.of_operation.get((position, op["index"]), [])
            for attempt, request in paired if run.exact else ():
                if attempt["error"] is None:
                    subject = f"{function.where}: {attempt['request']}"
                    took_ns = attempt["end_ns"] - attempt["start_ns"]
                    yield from _faster(
                        subject,
                        took_ns,
                        _incomplete_until_ns(request) - request.head_ns,
                        request.key,
                    )
            own_requests = (
                requests_of(paired) if run.exact else _unambiguous_requests(run, requests, op)
            )
            if own_requests and op["error"] is None:
                yield from _operation(function, op, own_requests)
                acknowledged += _acknowledged(op, own_requests)
    yield from _too_soon(acknowledged)


def _operation(function: ReportedFunction, op: Row, own: Sequence[StoreRequest]) -> Discrepancies:
    data = [request for request in own if request.operation in {"get", "put", "upload_part"}]
    if not data:
        return
    heads = min(request.head_ns for request in own)
    gone = max(_incomplete_until_ns(request) for request in own)
    took_ns = op["end_ns"] - op["start_ns"]
    yield from _faster(f"{function.where}: {op['kind']}", took_ns, gone - heads, op["key"])
    first_out = [request.first_out_ns for request in data if request.first_out_ns is not None]
    if op["first_byte_ns"] is not None and first_out:
        reported, least = op["first_byte_ns"] - op["start_ns"], min(first_out) - heads
        if reported < least - _SLACK_NS:
            yield Discrepancy(
                "times",
                (
                    f"{function.where}: first byte after {_ms(reported)},"
                    f" the store sent it after {_ms(least)}"
                ),
                op["key"],
            )


def _faster(subject: str, took_ns: int, least_ns: int, key: str) -> Discrepancies:
    if took_ns < least_ns - _SLACK_NS:
        text = f"{subject} took {_ms(took_ns)}, in the store alone {_ms(least_ns)}"
        yield Discrepancy("times", text, key)


def _acknowledged(op: Row, own: Sequence[StoreRequest]) -> Iterator[tuple[int, int]]:
    """Yield the time between the last byte of an operation and the end, and its minimum."""
    data = [request for request in own if request.last_in_ns is not None]
    if op["last_byte_sent_ns"] is not None and data:
        gone = max(_incomplete_until_ns(request) for request in own)
        least = gone - max(request.last_in_ns or request.head_ns for request in data)
        yield op["end_ns"] - op["last_byte_sent_ns"], least


def _too_soon(acknowledged: Sequence[tuple[int, int]]) -> Discrepancies:
    """Yield a difference if most acknowledgements were earlier than the store can have sent them.

    A single early one is no proof: after sending a byte, a client may wait for a CPU before
    it reads the clock.
    """
    soon = [(reported, least) for reported, least in acknowledged if reported < least - _SLACK_NS]
    if len(soon) > len(acknowledged) / 2:
        reported, least = max(soon, key=lambda pair: pair[1] - pair[0])
        yield Discrepancy(
            "times",
            (
                f"{len(soon)} of {len(acknowledged)} writes were acknowledged too soon: one"
                f" {_ms(reported)} after its last byte, when the store took {_ms(least)}"
            ),
        )


def _unambiguous_requests(run: ReportedRun, requests: RunRequests, op: Row) -> list[StoreRequest]:
    """Return the requests of an operation for a library that hides them; none if ambiguous."""
    begin_ns, end_ns = op["start_ns"] - MARGIN_NS, op["end_ns"] + MARGIN_NS
    others = sum(
        other["key"] == op["key"] and other["start_ns"] <= end_ns and begin_ns <= other["end_ns"]
        for other in run.operations
    )
    if others != 1 or run.lost or run.again:
        return []
    return [
        request
        for request in requests.data
        if request.key == op["key"]
        and request.ok
        and begin_ns <= request.head_ns <= end_ns
        # A deletion of many keys may be a series of single deletions, whose keys no operation has.
        and (request.operation != "delete" or op["kind"] == "delete")
    ]


def check_clocks(run: ReportedRun, matches: Matches) -> Discrepancies:
    """Yield functions whose instants no clock offset can reconcile with the store's."""
    if not run.exact:
        return
    for position, function in enumerate(run.functions):
        bounds = offset_of(function, position, matches)
        if bounds is not None and bounds[0] > bounds[1] + _SLACK_NS:
            yield Discrepancy(
                "times",
                (
                    f"{function.where}: its clock would have to be at least {_ms(bounds[0])} behind"
                    f" the store's, but also at most {_ms(bounds[1])}"
                ),
            )


def offset_of(
    function: ReportedFunction, position: int, matches: Matches
) -> tuple[int, int] | None:
    """Return bounds on the lead of the store's clock over a function's; None if unknown."""
    lows, highs = [], []
    for op in function.operations:
        for attempt, request in matches.of_operation.get((position, op["index"]), []):
            highs.append(request.head_ns - attempt["start_ns"])
            # The store answers a request that was given up later than its attempt ended.
            if request.ok and attempt["error"] is None:
                lows.append(_incomplete_until_ns(request) - attempt["end_ns"])
    return (max(lows), min(highs)) if lows and highs else None


def check_schedule(run: ReportedRun, matches: Matches) -> Discrepancies:
    """Yield operations of an open loop that are missing or were not on schedule."""
    rate = run.load.get("rate")
    if rate is None:
        return
    job = run.job
    share = rate / min(job["number"], job["concurrency"])
    for position, function in enumerate(run.functions):
        if function.duplicate or function.error is not None:
            continue
        measured = [op for op in function.operations if not op.get("warmup")]
        unscheduled = sum(op.get("intended_ns") is None for op in measured)
        if unscheduled:
            yield Discrepancy("schedule", f"{function.where}: {unscheduled} have no due time")
        due = [op["intended_ns"] for op in measured if op.get("intended_ns") is not None]
        dropped = [instant for row in function.dropped for instant in _instants(row)]
        yield from _even(run, function, sorted([*due, *dropped]), share)
        yield from _begun(function, position, measured, matches)


def _instants(row: Row) -> list[int]:
    count, first, last = row["count"], row["first_ns"], row["last_ns"]
    return [first + (last - first) * n // max(1, count - 1) for n in range(count)]


def _even(
    run: ReportedRun, function: ReportedFunction, due: Sequence[int], share: float
) -> Discrepancies:
    uniform = run.load.get("arrivals", "uniform") == "uniform"
    if uniform:
        distance = _S / share
        odd = [b - a for a, b in pairwise(due) if abs(b - a - distance) > _ROUNDED_NS]
        if odd:
            yield Discrepancy(
                "schedule",
                (
                    f"{function.where}: {len(odd)} of {len(due) - 1} intervals between due times"
                    f" are not {_ms(round(distance))}, the first is {_ms(odd[0])}"
                ),
            )
    duration_s = run.job.get("duration")
    if duration_s is None:
        return
    wanted = share * duration_s
    slack = 1.0 if uniform else _SIGMAS * wanted**0.5 + 1
    missing = wanted - len(due)
    if missing < -slack or (missing > slack and not run.cut_short):
        yield Discrepancy(
            "schedule",
            f"{function.where}: {len(due)} operations were due, {wanted:.0f} were requested",
        )


def _begun(
    function: ReportedFunction, position: int, measured: Sequence[Row], matches: Matches
) -> Discrepancies:
    bounds = offset_of(function, position, matches)
    if bounds is None:
        return
    for op in measured:
        own_requests = [
            request for _, request in matches.of_operation.get((position, op["index"]), [])
        ]
        if not own_requests or op.get("intended_ns") is None:
            continue
        seen_ns = min(request.head_ns for request in own_requests) - min(bounds)
        if seen_ns < op["intended_ns"] - _SLACK_NS:
            early = _ms(op["intended_ns"] - seen_ns)
            yield Discrepancy(
                "schedule",
                f"{function.where}: {op['kind']} began {early} before it was due",
                op["key"],
            )


def _incomplete_until_ns(request: StoreRequest) -> int:
    """Return the last instant at which the response was certainly not complete."""
    return max(request.head_ns, request.answered_ns or 0, request.last_out_ns or 0)


def _ms(duration_ns: float) -> str:
    return f"{duration_ns / 1e6:.3f} ms"
