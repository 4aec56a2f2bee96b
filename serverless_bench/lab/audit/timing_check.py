"""Latencies, clocks and schedules against the store's instants.

What lies between two instants of the store has passed at the client, too: no latency can
be shorter. Where instants of two clocks are compared, the clocks may be apart by whatever
all requests of a function allow: each was sent before it came, and its response sent before
it was over.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from serverless_bench.lab.audit.matching import MARGIN_NS, Matches, RunRequests, requests_of
from serverless_bench.lab.audit.sources import ReportedFunction, ReportedRun, Row
from serverless_bench.lab.loopback.witness import StoreRequest
from serverless_bench.rundir.audited import Discrepancies, Discrepancy

_SLACK_NS: Final = 1_000_000
"""The store's wall clock is read once a second, and may be slewed in between."""
_ROUNDED_NS: Final = 1_000
_S: Final = 10**9
_SIGMAS: Final = 6
_DATA: Final = frozenset({"get", "put", "upload_part"})


def check_latencies(run: ReportedRun, requests: RunRequests, matches: Matches) -> Discrepancies:
    """Yield attempts and operations that were faster than the store."""
    acknowledged: list[tuple[int, int]] = []
    for position, function in enumerate(run.functions):
        for op in function.operations:
            paired = matches.of_operation.get((position, op["index"]), [])
            for attempt, one in paired if run.exact else ():
                if attempt["error"] is None:
                    what = f"{function.where}: {attempt['request']}"
                    took_ns = attempt["end_ns"] - attempt["start_ns"]
                    yield from _faster(what, took_ns, _gone_ns(one) - one.head_ns, one.key)
            own = requests_of(paired) if run.exact else _alone(run, requests, op)
            if own and op["error"] is None:
                yield from _operation(function, op, own)
                acknowledged += _acknowledged(op, own)
    yield from _too_soon(acknowledged)


def _operation(function: ReportedFunction, op: Row, own: Sequence[StoreRequest]) -> Discrepancies:
    data = [one for one in own if one.operation in _DATA]
    if not data:
        return
    heads = min(one.head_ns for one in own)
    gone = max(_gone_ns(one) for one in own)
    took_ns = op["end_ns"] - op["start_ns"]
    yield from _faster(f"{function.where}: {op['kind']}", took_ns, gone - heads, op["key"])
    first_out = [one.first_out_ns for one in data if one.first_out_ns is not None]
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


def _faster(what: str, took_ns: int, least_ns: int, key: str) -> Discrepancies:
    if took_ns < least_ns - _SLACK_NS:
        text = f"{what} took {_ms(took_ns)}, the store alone {_ms(least_ns)}"
        yield Discrepancy("times", text, key)


def _acknowledged(op: Row, own: Sequence[StoreRequest]) -> Iterator[tuple[int, int]]:
    """Yield how long after its last byte an operation was over, and after which time at least."""
    data = [one for one in own if one.last_in_ns is not None]
    if op["last_byte_sent_ns"] is not None and data:
        gone = max(_gone_ns(one) for one in own)
        least = gone - max(one.last_in_ns or one.head_ns for one in data)
        yield op["end_ns"] - op["last_byte_sent_ns"], least


def _too_soon(acknowledged: Sequence[tuple[int, int]]) -> Discrepancies:
    """Yield one difference if most acknowledgements came before the store can have sent them.

    One alone says little: who has sent a byte may have to wait for a processor before it
    can look at the clock.
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


def _alone(run: ReportedRun, requests: RunRequests, op: Row) -> list[StoreRequest]:
    """Return the requests of an operation of a library that hides them; none if unsure."""
    begin_ns, end_ns = op["start_ns"] - MARGIN_NS, op["end_ns"] + MARGIN_NS
    others = sum(
        other["key"] == op["key"] and other["start_ns"] <= end_ns and begin_ns <= other["end_ns"]
        for other in run.operations
    )
    if others != 1 or run.lost or run.again:
        return []
    return [
        one
        for one in requests.data
        if one.key == op["key"]
        and one.ok
        and begin_ns <= one.head_ns <= end_ns
        # Where a store deletes one by one, this may be of many, whose keys no operation has.
        and (one.operation != "delete" or op["kind"] == "delete")
    ]


def check_clocks(run: ReportedRun, matches: Matches) -> Discrepancies:
    """Yield functions whose instants no clock error can reconcile with the store's."""
    if not run.exact:
        return
    for position, function in enumerate(run.functions):
        bounds = offset_of(function, position, matches)
        if bounds is not None and bounds[0] > bounds[1] + _SLACK_NS:
            yield Discrepancy(
                "times",
                (
                    f"{function.where}: its clock would have to be {_ms(bounds[0])} or more behind"
                    f" the store's, and {_ms(bounds[1])} or less"
                ),
            )


def offset_of(
    function: ReportedFunction, position: int, matches: Matches
) -> tuple[int, int] | None:
    """Return between what the store's clock is ahead of a function's; None if nothing says it."""
    lows, highs = [], []
    for op in function.operations:
        for attempt, one in matches.of_operation.get((position, op["index"]), []):
            highs.append(one.head_ns - attempt["start_ns"])
            if one.ok:
                lows.append(_gone_ns(one) - attempt["end_ns"])
    return (max(lows), min(highs)) if lows and highs else None


def check_schedule(run: ReportedRun, matches: Matches) -> Discrepancies:
    """Yield what an open loop should have begun and did not, or not when it was due."""
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
            yield Discrepancy("schedule", f"{function.where}: {unscheduled} were due at no time")
        due = [op["intended_ns"] for op in measured if op.get("intended_ns") is not None]
        overdue = [instant for row in function.overdue for instant in _instants(row)]
        yield from _even(run, function, sorted([*due, *overdue]), share)
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
                    f"{function.where}: {len(odd)} of {len(due) - 1} distances between what was due"
                    f" are not {_ms(round(distance))}, the first is {_ms(odd[0])}"
                ),
            )
    duration_s = run.job.get("duration")
    if duration_s is None:
        return
    wanted = share * duration_s
    slack = 1.0 if uniform else _SIGMAS * wanted**0.5 + 1
    if abs(len(due) - wanted) > slack:
        yield Discrepancy(
            "schedule",
            f"{function.where}: {len(due)} operations were due, {wanted:.0f} were asked for",
        )


def _begun(
    function: ReportedFunction, position: int, measured: Sequence[Row], matches: Matches
) -> Discrepancies:
    bounds = offset_of(function, position, matches)
    if bounds is None:
        return
    for op in measured:
        own = [one for _, one in matches.of_operation.get((position, op["index"]), [])]
        if not own or op.get("intended_ns") is None:
            continue
        seen_ns = min(one.head_ns for one in own) - min(bounds)
        if seen_ns < op["intended_ns"] - _SLACK_NS:
            early = _ms(op["intended_ns"] - seen_ns)
            yield Discrepancy(
                "schedule",
                f"{function.where}: {op['kind']} began {early} before it was due",
                op["key"],
            )


def _gone_ns(one: StoreRequest) -> int:
    """Return the last instant before which nobody can have had the whole response."""
    return max(one.head_ns, one.answered_ns or 0, one.last_out_ns or 0)


def _ms(duration_ns: float) -> str:
    return f"{duration_ns / 1e6:.3f} ms"
