"""Reactions of clients to one answer: cells of a matrix, many at a time, in a nursery's child."""

import json
import random
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Final

from serverless_bench.base.clock import EpochClock, monotonic_ns
from serverless_bench.base.units import MIB, NS_PER_S
from serverless_bench.clients import open_client
from serverless_bench.job.operations import OperationKind, OperationSpec
from serverless_bench.job.target import Target, Transfer
from serverless_bench.worker.operation import measure
from serverless_bench.worker.operation_context import OperationContext
from serverless_bench.worker.retry import Retrier

SIZE: Final = 300_000
KEY: Final = f"{'0' * 32}.{SIZE}"
PARTED: Final = f"{'1' * 32}.{6 * MIB}"
OPERATIONS: Final = {
    "put": OperationSpec(kind=OperationKind.PUT, key=KEY, size=SIZE),
    "get": OperationSpec(kind=OperationKind.GET, key=KEY, size=SIZE),
    "range": OperationSpec(
        kind=OperationKind.GET_RANGE, key=KEY, size=SIZE, offset=1000, length=100_000
    ),
    "multipart": OperationSpec(kind=OperationKind.PUT, key=PARTED, size=6 * MIB),
    "head": OperationSpec(kind=OperationKind.HEAD, key=KEY, size=None),
    "list": OperationSpec(kind=OperationKind.LIST, key="prefix/", size=None),
    "delete": OperationSpec(kind=OperationKind.DELETE, key=KEY, size=None),
    "delete_many": OperationSpec(
        kind=OperationKind.DELETE_MANY, key=KEY, size=None, keys=(KEY, PARTED)
    ),
    "copy": OperationSpec(kind=OperationKind.COPY, key=KEY, size=None, keys=(PARTED,)),
}
"""Every kind of request, with the features that a client needs for it."""


@dataclass(frozen=True)
class Cell:
    """One operation of one client against one server."""

    wrong: str
    client: str
    operation: str
    endpoint_url: str
    deadline_s: float = 1.0
    timeout_s: float = 1.0


@dataclass(frozen=True)
class Seen:
    """Result of a cell."""

    wrong: str
    client: str
    operation: str
    error: str | None
    """The error word in the record; None for success."""
    detail: str
    seconds: float


def perform(cell: Cell) -> Seen:
    """Perform the operation of a cell as a function does."""
    transfer = Transfer(
        retries=0,
        timeout=cell.timeout_s,
        part_size=5 * MIB if cell.operation == "multipart" else None,
    )
    target = Target(client=cell.client, bucket="bucket", endpoint_url=cell.endpoint_url)
    with closing(open_client(target, transfer)) as client:
        began_ns = monotonic_ns()
        deadline_ns = began_ns + round(cell.deadline_s * NS_PER_S)
        retrier = Retrier(client, 0, deadline_ns, random.Random(1))
        context = OperationContext(OPERATIONS[cell.operation], transfer, retrier)
        done, _ = measure(context, EpochClock())
        seconds = (monotonic_ns() - began_ns) / NS_PER_S
    details = [attempt.detail or "" for attempt in done.attempts]
    detail = done.bug or next(filter(None, details), "")
    return Seen(cell.wrong, cell.client, cell.operation, done.operation.error, detail, seconds)


def main(arguments: Sequence[str]) -> int:
    """Perform cells, a number of threads at a time, and print the result of each."""
    threads, cells = json.loads(arguments[0])
    with ThreadPoolExecutor(threads) as pool:
        for seen in pool.map(perform, [Cell(**cell) for cell in cells]):
            sys.stdout.write(json.dumps(asdict(seen)) + "\n")
            sys.stdout.flush()
    return 0


def order(cells: Sequence[Cell], threads: int) -> str:
    """Return the argument of ``main``."""
    return json.dumps([threads, [asdict(cell) for cell in cells]])


def parse(out: str) -> list[Seen]:
    """Return the output of ``main``, parsed."""
    return [Seen(**json.loads(line)) for line in out.splitlines()]
