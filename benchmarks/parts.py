"""CPU time of each part of a read and a write of a small object.

    python -m benchmarks.parts [--rounds 15]

Each part is called repeatedly, without a socket: the rest of a whole operation is the kernel's
work, and the cost of returning from it with cold caches. The table also has the cost of the same
part in the draft (``benchmarks.subjects.draft``).
"""

import argparse
import os
import random
from collections.abc import Callable
from functools import partial
from typing import Final

from benchmarks.common import cpu_s, make_parser
from benchmarks.subjects.draft import BUCKET, Draft
from serverless_bench.base.clock import EpochClock, monotonic_ns
from serverless_bench.base.units import KIB
from serverless_bench.clients.sigv4 import Keys, Signer
from serverless_bench.clients.wire import WireClient
from serverless_bench.clients.wire.response import Response
from serverless_bench.features.loopback.process import served
from serverless_bench.job.keys import object_key
from serverless_bench.job.operations import OperationKind, OperationSpec
from serverless_bench.job.target import Target, Transfer, Verify
from serverless_bench.payload.keystream import Keystream
from serverless_bench.payload.verify import RangeSink
from serverless_bench.worker.meter import Meter, unseen
from serverless_bench.worker.operation import measure, to_tables
from serverless_bench.worker.operation_context import InvocationContext, OperationContext
from serverless_bench.worker.retry import Retrier

Part = Callable[[], object]
SIZE: Final = 4 * KIB
CALLS: Final = 1500
HEAD: Final = (
    b"HTTP/1.1 200 OK\r\nServer: sbench-loopback\r\nDate: Sun, 22 Nov 2026 15:00:00 GMT\r\n"
    b"x-amz-request-id: 0123456789ABCDEF\r\nx-amz-id-2: abcdefghijklmnop\r\n"
    b'ETag: "0123456789abcdef0123456789abcdef"\r\nContent-Length: 4096'
)


def parts(url: str) -> dict[str, tuple[Part, Part | None]]:
    """Return each part, as a function pays for it and as the draft does, if it does."""
    key = object_key(prefix="sbench/", run_id="r", index=0, launch=0, number=0, size=SIZE)
    target, transfer = Target(bucket=BUCKET, endpoint_url=url, prefix="sbench/"), Transfer()
    signer, keys, path = Signer("us-east-1", url.partition("//")[2]), Keys("a", "b"), f"/b/{key}"
    stream, room = Keystream(key), memoryview(bytearray(SIZE))
    stream.readinto_at(0, room)
    draft, invocation, clock = Draft(url, SIZE), InvocationContext(), EpochClock()
    client, rng = WireClient(target, transfer), random.Random(1)

    def spec(kind: OperationKind) -> OperationSpec:
        return OperationSpec(kind=kind, key=key, size=SIZE)

    def context(kind: OperationKind) -> OperationContext:
        retrier = Retrier(client, 4, monotonic_ns() + 10**12, rng)
        return OperationContext(spec(kind), transfer, retrier, invocation)

    def meter() -> None:
        made = Meter("get", 0, 0, 0, 1 << 62, unseen)
        made.connected("127.0.0.1:80", reused=True)
        made.sent()
        made.answered(200, {"date": "x", "x-amz-request-id": "y"})
        made.first_byte()
        made.moved(SIZE)
        made.stop()

    def compare() -> None:
        sink = RangeSink(stream, size=SIZE, offset=0, length=SIZE, verify=Verify.FULL)
        sink.write_at(0, room)
        sink.finish()

    def whole(kind: OperationKind) -> object:
        return measure(context(kind), clock)

    measured = [measure(context(OperationKind.PUT), clock)[0] for _ in range(CALLS)]
    tables = partial(to_tables, measured)
    return {
        "what to do, and with what": (partial(context, OperationKind.GET), None),
        "head of the request, signed": (
            lambda: signer.sign(keys, "GET", path, ""),
            lambda: draft._head("GET", key),  # noqa: SLF001 - a part of it
        ),
        "head of the response": (lambda: Response(HEAD, "GET"), None),
        "bytes, made": (
            lambda: stream.readinto_at(0, room),
            lambda: Keystream(key).readinto_at(0, room),
        ),
        "bytes, compared": (compare, lambda: Keystream(key).agrees(0, room)),
        "stopwatches": (meter, lambda: [monotonic_ns() for _ in range(3)]),
        f"rows of {CALLS} operations to columns, each": (tables, None),
        "whole put with a socket": (
            partial(whole, OperationKind.PUT),
            lambda: draft.put(key, SIZE),
        ),
        "whole get with a socket": (
            partial(whole, OperationKind.GET),
            lambda: draft.get(key, SIZE),
        ),
    }


def cost_us(part: Part | None, rounds: int) -> str:
    """Return the lowest cost of one call, in microseconds."""
    if part is None:
        return ""
    calls = 1 if isinstance(part, partial) and part.func is to_tables else CALLS
    took = []
    for _ in range(rounds):
        before_s = cpu_s()
        for _ in range(calls):
            part()
        took.append(cpu_s() - before_s)
    return f"{min(took) / CALLS * 1e6:.1f}"


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    return make_parser(__doc__, rounds=15)


def main() -> None:
    """Make the table."""
    asked = parser().parse_args()
    os.environ |= {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    rounds = 1 if asked.smallest else asked.rounds
    print("| part | draft core-us | wire core-us |")
    print("| --- | ---: | ---: |")
    with served("--check", "none") as url:
        for name, (ours, drafts) in parts(url).items():
            print(f"| {name} | {cost_us(drafts, rounds)} | {cost_us(ours, rounds)} |", flush=True)


if __name__ == "__main__":
    main()
