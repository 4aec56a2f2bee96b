"""Checks of attempts against requests, and of the bytes of operations against those of requests."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from serverless_bench.features.audit.matching import (
    MARGIN_NS,
    Matches,
    RunRequests,
    at_work,
    requests_of,
)
from serverless_bench.features.audit.sources import ReportedFunction, ReportedRun, Row, by_key
from serverless_bench.features.check.audited import Discrepancies, Discrepancy
from serverless_bench.features.loopback.request_log import StoreRequest

Range = tuple[int, int]
"""First byte, and the end after the last byte."""


def coverage(ranges: Iterable[Range]) -> dict[int, int]:
    """Return the number of ranges that contain a byte, by the offset at which it changes."""
    steps: dict[int, int] = {}
    for begin, end in ranges:
        if end > begin:
            steps[begin] = steps.get(begin, 0) + 1
            steps[end] = steps.get(end, 0) - 1
    count, count_from = 0, {}
    for at in sorted(steps):
        count += steps[at]
        count_from[at] = count
    return count_from


def segments(*coverages: dict[int, int]) -> Iterator[tuple[int, int, list[int]]]:
    """Yield the ranges in which all coverages are constant, with their counts."""
    borders = sorted({at for coverage_of in coverages for at in coverage_of})
    counts = [0] * len(coverages)
    for begin, end in pairwise(borders):
        counts = [
            coverage_of.get(begin, count)
            for coverage_of, count in zip(coverages, counts, strict=True)
        ]
        yield begin, end, list(counts)


def describe(begin: int, end: int) -> str:
    """Return a range as text."""
    return f"byte {begin}" if end == begin + 1 else f"bytes {begin} to {end - 1}"


_READS = frozenset({"get", "get_range"})


def check_attempts(run: ReportedRun, matches: Matches) -> Discrepancies:
    """Yield attempts without a request and vice versa, for clients that report all attempts."""
    if not run.exact:
        return
    for function, operation, attempt in matches.unmatched_attempts:
        # Without a response, it is unknown whether the request reached the store.
        if attempt["status"] is not None:
            yield Discrepancy(
                "requests",
                (
                    f"{function.where} had {attempt['status']} for {attempt['request']},"
                    " and the store saw no such request"
                ),
                operation["key"],
            )
    for request in matches.unmatched_requests:
        if (run.lost or run.again) and not at_work(run, request):
            # The request is from a function without a record, in a process that also ran others.
            continue
        yield Discrepancy("requests", f"{_named(request)} is in no record", request.key or None)
    for (position, _), pairs_of in matches.of_operation.items():
        for attempt, request in pairs_of:
            yield from _attempt(run.functions[position], attempt, request)


def _attempt(function: ReportedFunction, attempt: Row, request: StoreRequest) -> Discrepancies:
    subject = f"{function.where}, {_named(request)}"
    if attempt["status"] is not None and attempt["status"] != request.status:
        yield Discrepancy(
            "requests",
            f"{subject}: the record says {attempt['status']}, the store {request.status}",
            request.key,
        )
    moved = {"get": request.out_bytes, "put": request.in_bytes, "upload_part": request.in_bytes}
    bytes_at_store = moved.get(attempt["request"])
    if bytes_at_store is None:
        return
    done, reported = attempt["error"] is None, attempt["bytes"]
    # Bytes in transit during a failure may be anywhere: the store's kernel may hold more than the
    # store has read, and a reset may replace the acknowledgement of bytes that the store has.
    has_excess = attempt["request"] == "get" and reported > bytes_at_store
    if (done and reported != bytes_at_store) or (not done and has_excess):
        yield Discrepancy(
            "bytes",
            f"{subject}: the record says {reported} bytes, the store {bytes_at_store}",
            request.key,
        )


def check_bytes(run: ReportedRun, requests: RunRequests, matches: Matches) -> Discrepancies:
    """Yield operations with bytes other than those of the store."""
    if run.exact:
        for position, function in enumerate(run.functions):
            for op in function.operations:
                pairs = matches.of_operation.get((position, op["index"]), [])
                yield from _exactly(function, op, requests_of(pairs))
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
        if not {request.operation for request in requests} & {"put", "complete_multipart"}:
            yield Discrepancy("bytes", f"{function.where}: it created no object", op["key"])
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
    """Return the ranges of uploads in the object; the order of parts determines missing offsets."""
    places, at = [], 0
    for request in sorted(requests, key=lambda request: request.part or 0):
        if request.operation in {"put", "upload_part"}:
            begin = at if request.offset is None else request.offset
            places.append((begin, begin + request.in_bytes))
            at += request.in_bytes
    return places


def _at_least(run: ReportedRun, requests: RunRequests) -> Discrepancies:
    """Compare by key, as a library does not reveal which request belongs to which operation."""
    operations: dict[str, list[Row]] = {}
    for op in run.operations:
        if op["error"] is None and op["kind"] in {*_READS, "put"}:
            operations.setdefault(op["key"], []).append(op)
    successful = by_key(request for request in requests.data if request.ok)
    for key, ops in operations.items():
        requests_of_key = successful.get(key, [])
        yield from _reads(key, [op for op in ops if op["kind"] in _READS], requests_of_key)
        yield from _writes(key, [op for op in ops if op["kind"] == "put"], requests_of_key)
        for op in ops:
            yield from _some(op, requests_of_key)


def _sent(requests: Sequence[StoreRequest]) -> dict[int, int]:
    return coverage(request.sent_range for request in requests if request.operation == "get")


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
    creations = sum(request.operation in {"put", "complete_multipart"} for request in requests)
    if creations < len(ops):
        yield Discrepancy("bytes", f"made {creations} times, not {len(ops)} or more", key)
    received, reported = (
        sum(request.in_bytes for request in requests),
        sum(op["bytes"] for op in ops),
    )
    if received < reported:
        yield Discrepancy("bytes", f"{received} bytes came in, not {reported} or more", key)


def _some(op: Row, requests: Sequence[StoreRequest]) -> Discrepancies:
    begin_ns, end_ns = op["start_ns"] - MARGIN_NS, op["end_ns"] + MARGIN_NS
    if op["bytes"] and not any(begin_ns <= request.head_ns <= end_ns for request in requests):
        yield Discrepancy("requests", f"no request while {op['kind']} lasted", op["key"])


def _named(request: StoreRequest) -> str:
    part = f", part {request.part}" if request.part else ""
    return f"{request.operation}{part} ({request.request_id}, {request.status})"
