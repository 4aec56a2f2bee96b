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
import resource
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

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

    def put(key: str) -> None:
        line.sendall(f"PUT /{BUCKET}/{key} HTTP/1.1\r\nContent-Length: {size}\r\n\r\n".encode())
        for _ in range(size // MIB):
            line.sendall(room)
        line.recv(1 << 16)

    def get(key: str) -> None:
        line.sendall(f"GET /{BUCKET}/{key} HTTP/1.1\r\n\r\n".encode())
        head = b""
        while b"\r\n\r\n" not in head:
            head += line.recv(4096)
        left = size - len(head.partition(b"\r\n\r\n")[2])
        while left:
            left -= line.recv_into(room[: min(left, MIB)])

    return lambda kind, key: put(key) if kind is OperationKind.PUT else get(key)


def client(name: str, url: str, size: int) -> Move:
    """Return what moves one object with a client, as the function body does it."""
    target = Target(client=name, bucket=BUCKET, endpoint_url=url)
    opened = open_client(target, Transfer())

    def move(kind: OperationKind, key: str) -> None:
        retrier = Retrier(
            opened, 0, monotonic_ns() + 600 * NS_PER_S, random.Random(1), lambda _: None
        )
        spec = OperationSpec(index=0, kind=kind, key=key, size=size)
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

    before, began_ns = resource.getrusage(resource.RUSAGE_SELF), monotonic_ns()
    with ThreadPoolExecutor(load.threads) as pool:
        list(pool.map(work, range(load.threads)))
    seconds = (monotonic_ns() - began_ns) / NS_PER_S
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    moved = load.size * load.objects
    return {"cpu": cpu_s / (moved / GIB), "rate": moved / seconds / 1e6}


def table(scheme: str, url: str, rounds: int, load: Load) -> None:
    """Measure every subject ``rounds`` times, in turn, and print a table."""
    subjects = [FLOOR, *CLIENTS]
    found: dict[tuple[str, OperationKind], list[dict[str, float]]] = {}
    sizes = [str(load.size), str(load.objects), str(load.threads)]
    for number in range(rounds):
        turn = number % len(subjects)
        for subject in subjects[turn:] + subjects[:turn]:
            command = [sys.executable, "-m", "benchmarks.clients", "--one", subject, url, *sizes]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            for kind, row in json.loads(done.stdout).items():
                found.setdefault((subject, OperationKind(kind)), []).append(row)
    for kind in KINDS:
        base = [row["cpu"] for row in found[FLOOR, kind]]
        for subject in subjects:
            rows = found[subject, kind]
            cpu = [row["cpu"] for row in rows]
            ratio = statistics.median(c / b for c, b in zip(cpu, base, strict=True))
            rate = statistics.median(row["rate"] for row in rows)
            span = f"{min(cpu):.2f} to {max(cpu):.2f}"
            middle = f"{statistics.median(cpu):.2f}"
            print(
                f"| {scheme} | {kind} | {subject} | {middle} | {span} | {ratio:.2f} | {rate:.0f} |"
            )


def parser() -> argparse.ArgumentParser:
    """Return what reads the command line."""
    made = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    made.add_argument("--rounds", type=int, default=7)
    made.add_argument("--threads", type=int, default=1)
    made.add_argument("--scheme", action="append", choices=["http", "https"])
    made.add_argument("--smallest", action="store_true", help="as little as shows that it runs")
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
