"""Attempts against requests, and the bytes of operations against the bytes of requests."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from serverless_bench.lab.audit.matching import (
    MARGIN_NS,
    Matches,
    RunRequests,
    at_work,
    requests_of,
)
from serverless_bench.lab.audit.sources import (
    ReportedFunction,
    ReportedRun,
    Row,
    by_key,
)
from serverless_bench.lab.loopback.witness import StoreRequest
from serverless_bench.rundir.audited import Discrepancies, Discrepancy

Range = tuple[int, int]
"""From a byte on, to before another one."""


def coverage(ranges: Iterable[Range]) -> dict[int, int]:
    """Return from which byte on how many ranges hold it: 0 before the first, and in the end."""
    steps: dict[int, int] = {}
    for begin, end in ranges:
        if end > begin:
            steps[begin] = steps.get(begin, 0) + 1
            steps[end] = steps.get(end, 0) - 1
    count, found = 0, {}
    for at in sorted(steps):
        count += steps[at]
        found[at] = count
    return found


def segments(*each: dict[int, int]) -> Iterator[tuple[int, int, list[int]]]:
    """Yield every stretch in which several coverages stay what they are, and what they are."""
    borders = sorted({at for one in each for at in one})
    counts = [0] * len(each)
    for begin, end in pairwise(borders):
        counts = [one.get(begin, count) for one, count in zip(each, counts, strict=True)]
        yield begin, end, list(counts)


def describe(begin: int, end: int) -> str:
    """Return a range as a sentence has it."""
    return f"byte {begin}" if end == begin + 1 else f"bytes {begin} to {end - 1}"


_READS = frozenset({"get", "get_range"})


def check_attempts(run: ReportedRun, matches: Matches) -> Discrepancies:
    """Yield attempts and requests that do not agree one to one; for clients that hide nothing."""
    if not run.exact:
        return
    for function, operation, attempt in matches.unmatched_attempts:
        # Without a response nobody knows whether it came to the store.
        if attempt["status"] is not None:
            yield Discrepancy(
                "requests",
                (
                    f"{function.where} had {attempt['status']} for {attempt['request']},"
                    " and the store saw no such request"
                ),
                operation["key"],
            )
    for one in matches.unmatched_requests:
        if (run.lost or run.again) and not at_work(run, one):
            # Of a function that left no record, in a process that served others as well.
            continue
        yield Discrepancy("requests", f"{_named(one)} is in no record", one.key or None)
    for (position, _), pairs_of in matches.of_operation.items():
        for attempt, one in pairs_of:
            yield from _attempt(run.functions[position], attempt, one)


def _attempt(function: ReportedFunction, attempt: Row, one: StoreRequest) -> Discrepancies:
    who = f"{function.where}, {_named(one)}"
    if attempt["status"] is not None and attempt["status"] != one.status:
        yield Discrepancy(
            "requests",
            f"{who}: the record says {attempt['status']}, the store {one.status}",
            one.key,
        )
    moved = {"get": one.out_bytes, "put": one.in_bytes, "upload_part": one.in_bytes}
    there = moved.get(attempt["request"])
    if there is None:
        return
    done, reported = attempt["error"] is None, attempt["bytes"]
    # What was under way when an attempt failed may be anywhere: a store's kernel may have more than
    # the store has read, and a reset may come in place of the acknowledgement of what it has.
    more = attempt["request"] == "get" and reported > there
    if (done and reported != there) or (not done and more):
        yield Discrepancy(
            "bytes", f"{who}: the record says {reported} bytes, the store {there}", one.key
        )


def check_bytes(run: ReportedRun, requests: RunRequests, matches: Matches) -> Discrepancies:
    """Yield operations whose bytes the store did not move."""
    if run.exact:
        for position, function in enumerate(run.functions):
            for op in function.operations:
                own = matches.of_operation.get((position, op["index"]), [])
                yield from _exactly(function, op, requests_of(own))
    else:
        yield from _at_least(run, requests)


def _exactly(
    function: ReportedFunction, op: Row, requests: Sequence[StoreRequest]
) -> Discrepancies:
    if op["error"] is not None:
        return
    if op["kind"] in _READS:
        have, wanted = _sent(requests), coverage([_range(op)])
    elif op["kind"] == "put":
        have, wanted = coverage(_places(requests)), coverage([(0, op["bytes"])])
        last = {one.operation for one in requests}
        if not last & {"put", "complete_multipart"}:
            yield Discrepancy("bytes", f"{function.where}: nothing made an object", op["key"])
    else:
        return
    for begin, end, (want, count) in segments(wanted, have):
        if want != count:
            way = "out" if op["kind"] in _READS else "in"
            yield Discrepancy(
                "bytes",
                f"{function.where}: {describe(begin, end)} went {way} {count} times, not {want}",
                op["key"],
            )


def _places(requests: Sequence[StoreRequest]) -> list[tuple[int, int]]:
    """Return where in the object each upload belongs; parts say it by their number, too."""
    places, at = [], 0
    for one in sorted(requests, key=lambda one: one.part or 0):
        if one.operation in {"put", "upload_part"}:
            begin = at if one.offset is None else one.offset
            places.append((begin, begin + one.in_bytes))
            at += one.in_bytes
    return places


def _at_least(run: ReportedRun, requests: RunRequests) -> Discrepancies:
    """Compare key by key: which request belongs to which operation a library does not say."""
    operations: dict[str, list[Row]] = {}
    for op in run.operations:
        if op["error"] is None and op["kind"] in {*_READS, "put"}:
            operations.setdefault(op["key"], []).append(op)
    successful = by_key(one for one in requests.data if one.ok)
    for key, ops in operations.items():
        mine = successful.get(key, [])
        yield from _reads(key, [op for op in ops if op["kind"] in _READS], mine)
        yield from _writes(key, [op for op in ops if op["kind"] == "put"], mine)
        for op in ops:
            yield from _some(op, mine)


def _sent(requests: Sequence[StoreRequest]) -> dict[int, int]:
    return coverage(one.sent_range for one in requests if one.operation == "get")


def _range(op: Row) -> tuple[int, int]:
    begin: int = op.get("offset", 0)
    return begin, begin + op["bytes"]


def _reads(key: str, ops: Sequence[Row], requests: Sequence[StoreRequest]) -> Discrepancies:
    for begin, end, (want, count) in segments(coverage(map(_range, ops)), _sent(requests)):
        if count < want:
            yield Discrepancy(
                "bytes", f"{describe(begin, end)} went out {count} times, not {want} or more", key
            )


def _writes(key: str, ops: Sequence[Row], requests: Sequence[StoreRequest]) -> Discrepancies:
    made = sum(one.operation in {"put", "complete_multipart"} for one in requests)
    if made < len(ops):
        yield Discrepancy("bytes", f"made {made} times, not {len(ops)} or more", key)
    came, reported = sum(one.in_bytes for one in requests), sum(op["bytes"] for op in ops)
    if came < reported:
        yield Discrepancy("bytes", f"{came} bytes came in, not {reported} or more", key)


def _some(op: Row, requests: Sequence[StoreRequest]) -> Discrepancies:
    begin_ns, end_ns = op["start_ns"] - MARGIN_NS, op["end_ns"] + MARGIN_NS
    if op["bytes"] and not any(begin_ns <= one.head_ns <= end_ns for one in requests):
        yield Discrepancy("requests", f"no request while {op['kind']} lasted", op["key"])


def _named(one: StoreRequest) -> str:
    part = f", part {one.part}" if one.part else ""
    return f"{one.operation}{part} ({one.request_id}, {one.status})"
