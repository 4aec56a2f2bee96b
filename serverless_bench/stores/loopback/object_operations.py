"""Requests about objects."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from serverless_bench.job.keys import declared_size
from serverless_bench.stores.loopback.answers import S3Error
from serverless_bench.stores.loopback.faults import Fault, FaultKind
from serverless_bench.stores.loopback.faulty import REFUSALS, FaultyConnection
from serverless_bench.stores.loopback.objects import Content


@dataclass(frozen=True, slots=True, kw_only=True)
class _Download:
    """What one GET is answered with."""

    content: Content
    first: int
    end: int
    total: int
    """Size of the object, as the answer has it."""
    stop: int
    """The connection ends here, before ``end``; nothing ends it if they are equal."""
    flips: tuple[tuple[int, int], ...] = ()


def _get(connection: FaultyConnection) -> None:
    content, asked, fault = _found(connection), connection.asked, connection.fault
    extent = asked.extent(content.size)
    first, end = extent or (0, content.size)
    plan = _Download(content=content, first=first, end=end, total=content.size, stop=end)
    if fault:
        plan = _spoil(connection, fault, plan, ranged=extent is not None)
    sight = connection.sight
    sight.size, sight.offset, sight.length = plan.total, first, plan.end - first
    headers = _described(connection, plan.content, plan.end - first)
    if extent:
        headers["Content-Range"] = f"bytes {first}-{plan.end - 1}/{plan.total}"
    connection.settle()
    connection.head(206 if extent else 200, headers)
    _send(connection, plan)
    if fault and plan.stop < plan.end:
        connection.inject(fault, sent_bytes=plan.stop - first)
        connection.hang_up(reset=fault.kind is FaultKind.RESET_GET)


def _spoil(
    connection: FaultyConnection, fault: Fault, plan: _Download, *, ranged: bool
) -> _Download:
    """Return a download that goes wrong; what ends its connection is injected at its end."""
    first, size = plan.first, plan.end - plan.first
    match fault.kind:
        case FaultKind.SHORT:
            # A range keeps a byte: there is no answer of 206 without one.
            end = first + (fault.cut(size) or int(ranged))
            connection.inject(fault, ends_at=end)
            return replace(plan, end=end, total=end, stop=end)
        case FaultKind.STALE:
            other = plan.content.generation ^ 1
            connection.inject(fault, generation=other)
            return replace(plan, content=replace(plan.content, generation=other))
        case FaultKind.FLIP:
            flips = tuple(fault.bits(connection.server.settings.flip_bits, first, plan.end))
            connection.inject(fault, flips=flips)
            return replace(plan, flips=flips)
        case FaultKind.TRUNCATE | FaultKind.RESET_GET:
            return replace(plan, stop=first + fault.cut(size))
        case _:
            return plan


def _send(connection: FaultyConnection, plan: _Download) -> None:
    offset = plan.first
    try:
        while offset < plan.stop:
            block = connection.room[: plan.stop - offset]
            plan.content.readinto_at(offset, block)
            for at, bit in plan.flips:
                if offset <= at < offset + len(block):
                    block[at - offset] ^= 1 << bit
            connection.pay(len(block), upload=False)
            connection.send(block)
            offset += len(block)
    finally:
        connection.server.counts.add(out_bytes=offset - plan.first)


def _head(connection: FaultyConnection) -> None:
    content = _found(connection)
    connection.sight.size = content.size
    connection.reply(200, headers=_described(connection, content, content.size))


def _delete(connection: FaultyConnection) -> None:
    connection.server.objects.delete(connection.asked.bucket, connection.asked.key)
    connection.reply(204)


def _put(connection: FaultyConnection) -> None:
    key, declared = connection.asked.key, declared_size(connection.asked.key)
    check_conditions(connection)
    verdict = connection.receive_upload(offset=0)
    if declared is not None and verdict.size != declared:
        message = f"{verdict.size} bytes came, the key declares {declared}"
        connection.spoiled(verdict, message)
    foreign = connection.server.looks and verdict.generation is None
    if foreign and verdict.verbatim is None:
        connection.spoiled(verdict, "neither the keystream of the key nor short")
    content = Content(
        key=key,
        size=verdict.size,
        generation=verdict.generation or 0,
        verbatim=verdict.verbatim if declared is None else None,
    )
    commit(connection, content)
    connection.reply(200, headers={"ETag": content.etag})


def check_conditions(connection: FaultyConnection) -> None:
    """Refuse to overwrite what the request says it must not.

    Raises
    ------
    S3Error
        If ``If-None-Match: *`` or ``If-Match`` does not hold.
    """
    headers, bucket = connection.asked.headers, connection.asked.bucket
    there = connection.server.objects.find(bucket, connection.asked.key, written=True)
    wanted = headers.get("if-match")
    if wanted is not None and (there is None or wanted != there.etag):
        raise S3Error(412, "PreconditionFailed", "the object is another one")
    if there is not None and headers.get("if-none-match") == "*":
        raise S3Error(412, "PreconditionFailed", "the object exists")


def commit(connection: FaultyConnection, content: Content) -> None:
    """Note that an object was written.

    Raises
    ------
    S3Error
        If somebody else was faster, and the request minds.
    """
    asked = connection.asked
    only_new = asked.headers.get("if-none-match") == "*"
    if not connection.server.objects.put(asked.bucket, content, only_new=only_new):
        raise S3Error(412, "PreconditionFailed", "the object exists")


def _found(connection: FaultyConnection) -> Content:
    content = connection.server.objects.find(connection.asked.bucket, connection.asked.key)
    if content is None:
        raise S3Error(*REFUSALS[FaultKind.MISSING])
    return content


def _described(connection: FaultyConnection, content: Content, length: int) -> dict[str, str]:
    return {
        "Content-Length": str(length),
        "ETag": content.etag,
        "Last-Modified": connection.server.start_date,
        "Accept-Ranges": "bytes",
        "Content-Type": "binary/octet-stream",
    }


OBJECT_OPERATIONS: Final[Mapping[str, Callable[[FaultyConnection], None]]] = {
    "delete": _delete,
    "get": _get,
    "head": _head,
    "put": _put,
}
"""By the words of ``Asked.operation``."""
