"""A store with set delays, and a client's view of them: one operation of each kind.

As a command it prints the view of one client: for a library with one endpoint per process.
"""

import json
import random
import sys
from concurrent.futures import ThreadPoolExecutor

from serverless_bench.base.clock import EpochClock, monotonic_ns
from serverless_bench.base.units import MIB, NS_PER_S
from serverless_bench.clients import CLIENTS, open_client
from serverless_bench.job.operations import OperationKind, OperationSpec
from serverless_bench.job.target import Target, Transfer
from serverless_bench.worker.operation import MeasuredOperation, measure
from serverless_bench.worker.operation_context import OperationContext
from serverless_bench.worker.retry import Retrier
from tests.stores.faulty import Exchange

DELAY_S = 0.2
"""Minimum delay that a client has to see."""
_WAIT_S = DELAY_S + 1.0
"""Time that the store waits: a busy machine may delay the client when it notes its last byte."""
SIZE = 11 * MIB + 5
"""More than one part of every library that splits."""
RANGE = (MIB + 1, 2 * MIB)
HEAD, BODY = "late-head", "late-body"
"""Prefixes of keys with a late answer, and with a late body after an early head."""
AT_ONCE = "put at once"
"""The way with a small body."""
WAYS = {
    AT_ONCE: (OperationKind.PUT, HEAD, Transfer()),
    "put": (OperationKind.PUT, HEAD, Transfer()),
    "put in parts": (OperationKind.PUT, HEAD, Transfer(part_size=5 * MIB, connections=2)),
    "get": (OperationKind.GET, HEAD, Transfer()),
    "get, late body": (OperationKind.GET, BODY, Transfer()),
    "range": (OperationKind.GET_RANGE, HEAD, Transfer()),
    "range, late body": (OperationKind.GET_RANGE, BODY, Transfer()),
    "get in ranges": (OperationKind.GET, HEAD, Transfer(part_size=5 * MIB)),
    "get in ranges, late bodies": (
        OperationKind.GET,
        BODY,
        Transfer(part_size=5 * MIB, connections=2),
    ),
}


def is_late(exchange: Exchange) -> bool:
    """Answer like S3, late."""
    exchange.drain()
    if exchange.key.startswith(HEAD):
        exchange.over.wait(_WAIT_S)
    if exchange.method == "HEAD":
        # No more than a head: a body would be taken for the next answer.
        exchange.connection.sendall(
            f'HTTP/1.1 200 OK\r\nContent-Length: {SIZE}\r\nETag: "etag"\r\n\r\n'.encode()
        )
    elif exchange.method == "GET":
        _send(exchange)
    elif exchange.method == "POST":
        kind = (
            "InitiateMultipartUpload" if "uploads" in exchange.path else "CompleteMultipartUpload"
        )
        inside = f"<Bucket>bucket</Bucket><Key>{exchange.key}</Key><UploadId>1</UploadId>"
        text = f"<{kind}Result>{inside}<ETag>etag</ETag></{kind}Result>"
        exchange.say(200, text.encode(), {"Content-Type": "application/xml"})
    else:
        exchange.say(200, headers={"ETag": '"etag"'})
    return True


def _send(exchange: Exchange) -> None:
    data, headers, status = exchange.content(), {"ETag": '"etag"'}, 200
    if asked := exchange.headers.get("range"):
        first, _, last = asked.removeprefix("bytes=").partition("-")
        whole, data = len(data), data[int(first) : int(last or len(data)) + 1]
        headers["Content-Range"] = f"bytes {first}-{int(first) + len(data) - 1}/{whole}"
        status = 206
    exchange.say(status, headers={**headers, "Content-Length": str(len(data))})
    if exchange.key.startswith(BODY):
        exchange.over.wait(_WAIT_S)
    exchange.connection.sendall(data)


def see(client_name: str, endpoint_url: str) -> dict[str, tuple[float | None, float | None]]:
    """Return time to first byte and to acknowledgement of one operation in each way."""
    target = Target(client=client_name, bucket="bucket", endpoint_url=endpoint_url)
    client = open_client(target, Transfer())

    def one(way: str) -> tuple[float | None, float | None]:
        kind, prefix, transfer = WAYS[way]
        retrier = Retrier(client, 0, monotonic_ns() + 60 * NS_PER_S, random.Random(1))
        offset, length = RANGE if kind is OperationKind.GET_RANGE else (0, None)
        size = 1000 if way == AT_ONCE else SIZE
        key = f"{prefix}/{'0' * 32}.{size}"
        spec = OperationSpec(kind=kind, key=key, size=size, offset=offset, length=length)
        return _seen(measure(OperationContext(spec, transfer, retrier), EpochClock())[0])

    offered = CLIENTS.load(client_name).info.operations
    ways = [
        way for way in WAYS if WAYS[way][0] is not OperationKind.GET_RANGE or "range" in offered
    ]
    with ThreadPoolExecutor(len(ways)) as pool:
        found = dict(zip(ways, pool.map(one, ways), strict=True))
    client.close()
    return found


def _seen(done: MeasuredOperation) -> tuple[float | None, float | None]:
    assert done.operation.error is None, done.attempts
    first, last = done.operation.first_byte_ns, done.operation.last_byte_sent_ns
    begin, end = done.operation.start_ns, done.operation.end_ns
    return (
        None if first is None else (first - begin) / NS_PER_S,
        None if last is None else (end - last) / NS_PER_S,
    )


if __name__ == "__main__":
    sys.stdout.write(json.dumps(see(*sys.argv[1:])))
