"""Collect the records of many functions from a store that answers 100 ms late.

    python -m benchmarks.collect [--number N] [--functions F] [--ends E]

A driver launches N events. A process that stands for Lambda claims them, and when all have begun,
it ends E functions a second in random order, with a record each in the store. Prints the launch
rate, the delay between the end of a function and the arrival of its record at the driver, the
driver's requests, and its CPU time. Driver, store and that process share the machine.

*Names* are the Lambda functions that share the load: each may be launched at Lambda's rate.
"""

import argparse
import asyncio
import json
import os
import random
import sys
import tempfile
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import orjson

from benchmarks.common import cpu_s, make_parser, run_alone
from serverless_bench import run_job, summarize
from serverless_bench.base.clock import monotonic_ns, wall_ns
from serverless_bench.base.units import NS_PER_S
from serverless_bench.features.loopback.process import served
from serverless_bench.features.remote.claims import RecordKey, claim_name, record_name
from serverless_bench.job.spec import InvocationSpec, JobSpec
from serverless_bench.job.target import Target
from serverless_bench.worker.invocation import run_invocation
from tests.clouds.far_lambda import ACCEPTED, FarLambda
from tests.clouds.lambda_hosts import KEYS
from tests.stores.servers import credentials

SMALLEST: Final = (20, 2, 20)
"""Events, names, and ends a second."""
LATENCY: Final = "fixed:100ms"
COLUMNS: Final = (
    *("events", "names", "ends a second", "launched a second", "record after s, p50", "p99"),
    *("LIST", "GET", "CPU-ms each", "load"),
)


class EndingLambda(FarLambda):
    """Accepts events, and puts the records of functions that end in random order.

    Parameters
    ----------
    store
        URL of the store.
    number
        Number of functions; the first ends when all have begun.
    ends_per_s
        Functions that end per second.
    """

    def __init__(self, store: str, number: int, ends_per_s: float) -> None:
        super().__init__()
        self._store = urlsplit(store)
        self._number = number
        self._ends_per_s = ends_per_s
        self._running: list[tuple[dict[str, Any], str]] = []
        self._tasks = set[asyncio.Task[None]]()
        self._rng = random.Random(1)
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    def answer(self, request: bytes) -> bytes:
        """Let the function of an event begin; the account allows all at once."""
        head, _, body = request.partition(b"\r\n\r\n")
        if b"/account-settings" in head:
            quota = b'{"AccountLimit": {"UnreservedConcurrentExecutions": %d}}' % self._number
            return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(quota), quota)
        if body:
            self._do(self._begin(orjson.loads(body)))
        return ACCEPTED

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _begin(self, event: dict[str, Any]) -> None:
        until_ns = wall_ns() + 900 * NS_PER_S
        delivery = os.urandom(16).hex()
        claim = {"run_id": event["run_id"], "delivery": delivery, "until_ns": until_ns}
        await self._put(event, claim_name(event["index"], event["launch"]), claim)
        self._running.append((event, delivery))
        if len(self._running) == self._number:
            self._template = run_invocation(InvocationSpec.from_json(event))
            await self._end_functions()

    async def _end_functions(self) -> None:
        begin_ns, ended = monotonic_ns(), 0
        self._rng.shuffle(self._running)
        while self._running:
            await asyncio.sleep(1 / self._ends_per_s)
            due = int((monotonic_ns() - begin_ns) / NS_PER_S * self._ends_per_s) - ended
            for _ in range(min(due, len(self._running))):
                self._do(self._leave_record(*self._running.pop()))
            ended += due

    async def _leave_record(self, event: dict[str, Any], delivery: str) -> None:
        now_ns = wall_ns()
        record = replace(
            self._template,
            index=event["index"],
            launch=event["launch"],
            delivery=delivery,
            start_ns=now_ns,
            end_ns=now_ns,
            wall_start_ns=now_ns,
            wall_end_ns=now_ns,
            control_puts=2,
            control_gets=0,
        )
        name = record_name(RecordKey(record.index, record.launch, delivery))
        await self._put(event, name, record.to_json())

    async def _put(self, event: dict[str, Any], name: str, content: object) -> None:
        if self._idle:
            reader, writer = self._idle.pop()
        else:
            reader, writer = await asyncio.open_connection(self._store.hostname, self._store.port)
        data = orjson.dumps(content)
        path = f"/any/{event['control']['prefix']}{event['run_id']}/{name}"
        head = f"PUT {path} HTTP/1.1\r\nHost: {self._store.netloc}\r\n"
        writer.write(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
        answer = await reader.readuntil(b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 200"), answer
        self._idle.append((reader, writer))


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    return make_parser(__doc__ or "", number=10_000, functions=10, ends=300)


def main() -> None:
    """Make the table."""
    asked = parser().parse_args()
    cells = (asked.number, asked.functions, asked.ends)
    number, functions, ends = SMALLEST if asked.smallest else cells
    print(f"| {' | '.join(COLUMNS)} |")
    print(f"|{' ---: |' * len(COLUMNS)}", flush=True)
    with (
        served("--latency", LATENCY) as url,
        EndingLambda(url, number, ends) as far,
        credentials({**KEYS, "AWS_ENDPOINT_URL_LAMBDA": far.url}),
    ):
        row = run_alone("benchmarks.collect", number, functions, url)
    print(f"| {number} | {functions} | {ends} | {' | '.join(row)} |", flush=True)


def collect(number: int, functions: int, url: str) -> list[str]:
    """Return the cells of one row."""
    target = Target(bucket="any", endpoint_url=url)
    job = JobSpec(
        workload="noop",
        target=target,
        executor="lambda",
        number=number,
        concurrency=number,
        options={"function": tuple(f"f{i}" for i in range(functions)), "probe": False},
        control=replace(target, prefix="control/"),
    )
    before_s = cpu_s()
    with tempfile.TemporaryDirectory() as scratch:
        run = run_job(job, Path(scratch) / "run")
        used_s = cpu_s() - before_s
        summary = summarize(run)
    assert summary.ok == number
    submitted, lag_s = run.functions["submitted_ns"], summary.parts["deliveries"].lag_s
    requests = run.requests or {}
    took_s = float(submitted.max() - submitted.min()) / NS_PER_S
    return [
        f"{number / took_s:.0f}",
        f"{lag_s['p50']:.2f}",
        f"{lag_s['p99']:.2f}",
        str(requests.get("list", 0)),
        str(requests.get("get", 0)),
        f"{used_s / number * 1e3:.2f}",
        f"{os.getloadavg()[0]:.1f}",
    ]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(collect(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])), flush=True)
    else:
        main()
