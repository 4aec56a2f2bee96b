"""Attempts against requests, and the bytes of operations against the bytes of requests."""

from collections.abc import Sequence

from serverless_bench.audit.claims import Claims, Function, Row
from serverless_bench.audit.differences import Difference, Differences
from serverless_bench.audit.pairs import Pairs, requests_of
from serverless_bench.audit.ranges import coverage, said, stretches
from serverless_bench.audit.scope import MARGIN_NS, Scope, at_work
from serverless_bench.audit.witness import Seen

_READS = frozenset({"get", "get_range"})


def attempts(claims: Claims, pairs: Pairs) -> Differences:
    """Yield attempts and requests that do not agree one to one; for clients that hide nothing."""
    if not claims.exact:
        return
    for function, operation, attempt in pairs.alone:
        # Without an answer nobody knows whether it came to the store.
        if attempt["status"] is not None:
            text = (
                f"{function.where} had {attempt['status']} for {attempt['request']},"
                " and the store saw no such request"
            )
            yield Difference("requests", text, operation["key"])
    for one in pairs.untold:
        if (claims.lost or claims.again) and not at_work(claims, one):
            # Of a function that left no record, in a process that served others as well.
            continue
        text = f"{_named(one)} is in no record"
        yield Difference("requests", text, one.key or None)
    for (position, _), pairs_of in pairs.of_operation.items():
        for attempt, one in pairs_of:
            yield from _one_try(claims.functions[position], attempt, one)


def _one_try(function: Function, attempt: Row, one: Seen) -> Differences:
    who = f"{function.where}, {_named(one)}"
    if attempt["status"] is not None and attempt["status"] != one.status:
        text = f"{who}: the record says {attempt['status']}, the store {one.status}"
        yield Difference("requests", text, one.key)
    moved = {"get": one.out_bytes, "put": one.in_bytes, "upload_part": one.in_bytes}
    there = moved.get(attempt["request"])
    if there is None:
        return
    done, told = attempt["error"] is None, attempt["bytes"]
    # What was under way when an attempt failed may be anywhere.
    more = told > there if attempt["request"] == "get" else told < there
    if (done and told != there) or (not done and more):
        text = f"{who}: the record says {told} bytes, the store {there}"
        yield Difference("bytes", text, one.key)


def moved(claims: Claims, found: Scope, pairs: Pairs) -> Differences:
    """Yield operations whose bytes the store did not move."""
    if claims.exact:
        for position, function in enumerate(claims.functions):
            for op in function.operations:
                own = pairs.of_operation.get((position, op["index"]), [])
                yield from _exactly(function, op, requests_of(own))
    else:
        yield from _at_least(claims, found)


def _exactly(function: Function, op: Row, requests: Sequence[Seen]) -> Differences:
    if op["error"] is not None:
        return
    if op["kind"] in _READS:
        have = coverage(
            (one.offset or 0, (one.offset or 0) + one.out_bytes)
            for one in requests
            if one.operation == "get"
        )
        wanted = coverage([(op.get("offset", 0), op.get("offset", 0) + op["bytes"])])
    elif op["kind"] == "put":
        have, wanted = coverage(_places(requests)), coverage([(0, op["bytes"])])
        last = {one.operation for one in requests}
        if not last & {"put", "complete_multipart"}:
            yield Difference("bytes", f"{function.where}: nothing made an object", op["key"])
    else:
        return
    for begin, end, (want, count) in stretches(wanted, have):
        if want != count:
            way = "out" if op["kind"] in _READS else "in"
            text = f"{function.where}: {said(begin, end)} went {way} {count} times, not {want}"
            yield Difference("bytes", text, op["key"])


def _places(requests: Sequence[Seen]) -> list[tuple[int, int]]:
    """Return where in the object each upload belongs; parts say it by their number, too."""
    places, at = [], 0
    for one in sorted(requests, key=lambda one: one.part or 0):
        if one.operation in {"put", "upload_part"}:
            begin = at if one.offset is None else one.offset
            places.append((begin, begin + one.in_bytes))
            at += one.in_bytes
    return places


def _at_least(claims: Claims, found: Scope) -> Differences:
    """Compare key by key: which request belongs to which operation a library does not say."""
    operations: dict[str, list[Row]] = {}
    for function in claims.functions:
        for op in function.operations:
            if op["error"] is None and op["kind"] in {*_READS, "put"}:
                operations.setdefault(op["key"], []).append(op)
    requests: dict[str, list[Seen]] = {}
    for one in found.data:
        if one.ok:
            requests.setdefault(one.key, []).append(one)
    for key, ops in operations.items():
        mine = requests.get(key, [])
        yield from _reads(key, [op for op in ops if op["kind"] in _READS], mine)
        yield from _writes(key, [op for op in ops if op["kind"] == "put"], mine)
        for op in ops:
            yield from _some(op, mine)


def _reads(key: str, ops: Sequence[Row], requests: Sequence[Seen]) -> Differences:
    wanted = coverage((op.get("offset", 0), op.get("offset", 0) + op["bytes"]) for op in ops)
    gets = [one for one in requests if one.operation == "get"]
    have = coverage((one.offset or 0, (one.offset or 0) + one.out_bytes) for one in gets)
    for begin, end, (want, count) in stretches(wanted, have):
        if count < want:
            text = f"{said(begin, end)} went out {count} times, not {want} or more"
            yield Difference("bytes", text, key)


def _writes(key: str, ops: Sequence[Row], requests: Sequence[Seen]) -> Differences:
    made = sum(one.operation in {"put", "complete_multipart"} for one in requests)
    if made < len(ops):
        yield Difference("bytes", f"made {made} times, not {len(ops)} or more", key)
    came, told = sum(one.in_bytes for one in requests), sum(op["bytes"] for op in ops)
    if came < told:
        yield Difference("bytes", f"{came} bytes came in, not {told} or more", key)


def _some(op: Row, requests: Sequence[Seen]) -> Differences:
    begin_ns, end_ns = op["start_ns"] - MARGIN_NS, op["end_ns"] + MARGIN_NS
    if op["bytes"] and not any(begin_ns <= one.head_ns <= end_ns for one in requests):
        yield Difference("requests", f"no request while {op['kind']} lasted", op["key"])


def _named(one: Seen) -> str:
    part = f", part {one.part}" if one.part else ""
    return f"{one.operation}{part} ({one.request_id}, {one.status})"
