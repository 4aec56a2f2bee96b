"""What each client costs, in client core-seconds per GiB, beside a bare socket.

    python -m benchmarks.clients [--rounds 7] [--threads 1] [--scheme http] [--scheme https]

Every client uploads freshly generated keystream and downloads with every byte compared,
through the same code that runs in a function; the floor is a Python socket that sends
one buffer again and again, and receives into one, without signing, making or comparing
anything. One round runs every subject once, each in a process of its own, in an order
that rotates; ratios are taken within a round, so that a machine that slows down slows
all of them. Only the client's own processor time is counted. The other end is the loopback
store, which forgets what it is given and makes what it is asked for.
"""

import argparse
import json
import os
import random
import socket
import ssl
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from benchmarks.common import bare_request, costs, cpu_s, make_parser, rotated, run_alone
from serverless_bench.clients import CLIENTS, open_client
from serverless_bench.clock import EpochClock, monotonic_ns
from serverless_bench.job.keys import object_key
from serverless_bench.job.operations import OperationKind, OperationSpec
from serverless_bench.job.target import Target
from serverless_bench.job.transfer import Transfer
from serverless_bench.stores.loopback.process import served
from serverless_bench.units import GIB, MIB, NS_PER_S
from serverless_bench.worker.operation import measure
from serverless_bench.worker.operation_context import OperationContext
from serverless_bench.worker.retry import Retrier
from tests.network import bundle_of, certificate

FLOOR, BUCKET = "floor", "bench"
KINDS = (OperationKind.PUT, OperationKind.GET)
Move = Callable[[OperationKind, str], None]
"""Moves the object of a key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What every subject does in each direction."""

    size: int = 64 * MIB
    objects: int = 16
    threads: int = 1

    def keys(self, count: int) -> list[str]:
        """Return keys of new objects."""
        name = partial(object_key, prefix="sbench/", run_id="benchmark", launch=0, number=0)
        return [name(index=index, size=self.size) for index in range(count)]


SMALLEST: Final = Load(size=MIB, objects=2)


def floor(url: str, size: int) -> Move:
    """Return what moves one object over a bare socket; each thread has its own."""
    parts = urlsplit(url)
    line = socket.create_connection((parts.hostname, parts.port))
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if parts.scheme == "https":
        context = ssl.create_default_context(cafile=os.environ["AWS_CA_BUNDLE"])
        line = context.wrap_socket(line, server_hostname=parts.hostname)
    room = memoryview(bytearray(MIB))

    def move(kind: OperationKind, key: str) -> None:
        sent = [room] * (size // MIB) if kind is OperationKind.PUT else ()
        bare_request(line, kind.upper(), f"/{BUCKET}/{key}", size, room, sent)

    return move


def client(name: str, url: str, size: int) -> Move:
    """Return what moves one object with a client, as the function body does it."""
    target = Target(client=name, bucket=BUCKET, endpoint_url=url)
    opened = open_client(target, Transfer())

    def move(kind: OperationKind, key: str) -> None:
        retrier = Retrier(
            opened, 0, monotonic_ns() + 600 * NS_PER_S, random.Random(1), lambda _: None
        )
        spec = OperationSpec(kind=kind, key=key, size=size)
        done = measure(OperationContext(spec, Transfer(), retrier), EpochClock())[0].operation
        expected = size if kind is OperationKind.GET else 0
        assert (done.error, done.bytes, done.verified_bytes) == (None, size, expected)

    return move


def one(subject: str, url: str, load: Load) -> None:
    """Measure one subject in this process and print core-seconds per GiB and MB/s."""
    made = floor if subject == FLOOR else partial(client, subject)
    lanes = [made(url, load.size) for _ in range(load.threads)]
    print(json.dumps({kind.value: cost(kind, lanes, load) for kind in KINDS}))


def cost(kind: OperationKind, lanes: Sequence[Move], load: Load) -> dict[str, float]:
    """Return what one direction takes, once connections and code are warm."""
    for lane, key in zip(lanes, load.keys(load.threads), strict=True):
        lane(kind, key)
    shares = [load.keys(load.objects)[number :: load.threads] for number in range(load.threads)]

    def work(number: int) -> None:
        for key in shares[number]:
            lanes[number](kind, key)

    before_s, began_ns = cpu_s(), monotonic_ns()
    with ThreadPoolExecutor(load.threads) as pool:
        list(pool.map(work, range(load.threads)))
    seconds = (monotonic_ns() - began_ns) / NS_PER_S
    used_s, moved = cpu_s() - before_s, load.size * load.objects
    return {"cpu": used_s / (moved / GIB), "rate": moved / seconds / 1e6}


def table(scheme: str, url: str, rounds: int, load: Load) -> None:
    """Measure every subject ``rounds`` times, in turn, and print a table."""
    subjects = [FLOOR, *CLIENTS]
    found: dict[tuple[str, str], list[dict[str, float]]] = defaultdict(list)
    for subject in rotated(subjects, rounds):
        sizes = (load.size, load.objects, load.threads)
        for kind, row in run_alone("benchmarks.clients", subject, url, *sizes).items():
            found[subject, kind].append(row)
    for kind in KINDS:
        for subject in subjects:
            cells = costs(found[subject, kind], found[FLOOR, kind])
            print(f"| {scheme} | {kind} | {subject} | {cells}")


def parser() -> argparse.ArgumentParser:
    """Return what reads the command line."""
    made = make_parser(__doc__, rounds=7, threads=1)
    made.add_argument("--scheme", action="append", choices=["http", "https"])
    return made


def main() -> None:
    """Make the tables."""
    asked = parser().parse_args()
    load = SMALLEST if asked.smallest else Load(threads=asked.threads)
    rounds = 1 if asked.smallest else asked.rounds
    with tempfile.TemporaryDirectory() as scratch:
        pem = certificate(Path(scratch))
        os.environ |= {"AWS_CA_BUNDLE": str(bundle_of(pem)), "AWS_ACCESS_KEY_ID": "a"}
        os.environ["AWS_SECRET_ACCESS_KEY"] = "b"
        what = f"{load.objects} objects of {load.size // MIB} MiB"
        print(f"{what}, {load.threads} threads, {rounds} rounds\n")
        print("| scheme | operation | client | core-s/GiB | lowest to highest | x floor | MB/s |")
        print("| --- | --- | --- | ---: | ---: | ---: | ---: |", flush=True)
        for scheme in asked.scheme or ["http", "https"]:
            tls = ("--tls", str(pem)) if scheme == "https" else ()
            with served("--check", "none", *tls) as url:
                table(scheme, url, rounds, load)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        size, objects, threads = map(int, sys.argv[4:])
        one(sys.argv[2], sys.argv[3], Load(size=size, objects=objects, threads=threads))
    else:
        main()
