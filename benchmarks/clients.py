"""What each client costs, in client core-seconds per GiB, beside a bare socket.

    python benchmarks/clients.py [--rounds 7] [--threads 1] [--scheme http] [--scheme https]

Every client uploads freshly generated keystream and downloads with every byte compared,
through the same code that runs in a function; the floor is a Python socket that sends
one buffer again and again, and receives into one, without signing, making or comparing
anything. One round runs every subject once, each in a process of its own, in an order
that rotates; ratios are taken within a round, so that a machine that slows down slows
all of them. Only the client's own processor time is counted.
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
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from serverless_bench.clients import CLIENTS, open_client
from serverless_bench.clock import EpochClock, monotonic_ns
from serverless_bench.keys import object_key
from serverless_bench.measure import measure
from serverless_bench.spec import OperationKind, OperationSpec, Target, Transfer
from serverless_bench.tries import Tries
from serverless_bench.units import GIB, MIB, NS_PER_S
from tests.network import certificate

SIZE, OBJECTS = 64 * MIB, 16
FLOOR = "floor"
KINDS = (OperationKind.PUT, OperationKind.GET)


def keys(count: int) -> list[str]:
    """Return keys of new objects."""
    name = partial(object_key, prefix="sbench/", run_id="benchmark", attempt=0, number=0)
    return [name(index=index, size=SIZE) for index in range(count)]


def floor(url: str, kind: OperationKind) -> Callable[[str], None]:
    """Return what moves one object over a bare socket; each thread has its own."""
    parts = urlsplit(url)
    line = socket.create_connection((parts.hostname, parts.port))
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if parts.scheme == "https":
        context = ssl.create_default_context(cafile=os.environ["AWS_CA_BUNDLE"])
        line = context.wrap_socket(line, server_hostname=parts.hostname)
    room = memoryview(bytearray(MIB))

    def put(key: str) -> None:
        line.sendall(f"PUT /b/{key} HTTP/1.1\r\nContent-Length: {SIZE}\r\n\r\n".encode())
        for _ in range(SIZE // MIB):
            line.sendall(room)
        line.recv(1 << 16)

    def get(key: str) -> None:
        line.sendall(f"GET /b/{key} HTTP/1.1\r\n\r\n".encode())
        head = b""
        while b"\r\n\r\n" not in head:
            head += line.recv(4096)
        left = SIZE - len(head.partition(b"\r\n\r\n")[2])
        while left:
            left -= line.recv_into(room[: min(left, MIB)])

    return put if kind is OperationKind.PUT else get


def client(name: str, url: str, kind: OperationKind) -> Callable[[str], None]:
    """Return what moves one object with a client, as the function body does it."""
    target = Target(client=name, bucket="b", endpoint_url=url)
    opened = open_client(target, Transfer())

    def move(key: str) -> None:
        tries = Tries(opened, 0, monotonic_ns() + 600 * NS_PER_S, random.Random(1), lambda _: None)
        spec = OperationSpec(index=0, kind=kind, key=key, size=SIZE)
        done = measure(spec, Transfer(), tries, EpochClock()).operation
        expected = SIZE if kind is OperationKind.GET else 0
        assert (done.error, done.bytes, done.verified_bytes) == (None, SIZE, expected)

    return move


def one(subject: str, kind: OperationKind, url: str, threads: int) -> None:
    """Measure one subject in this process and print core-seconds per GiB and MB/s."""
    make = partial(floor, url, kind) if subject == FLOOR else partial(client, subject, url, kind)
    lanes = [make() for _ in range(threads)]
    for number, lane in enumerate(lanes):
        lane(keys(threads)[number])  # connections and code are warm after this
    shares = [keys(OBJECTS)[number::threads] for number in range(threads)]

    def work(number: int) -> None:
        for key in shares[number]:
            lanes[number](key)

    before, began_ns = resource.getrusage(resource.RUSAGE_SELF), monotonic_ns()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(threads)))
    seconds = (monotonic_ns() - began_ns) / NS_PER_S
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    moved = SIZE * OBJECTS
    print(json.dumps({"cpu": cpu_s / (moved / GIB), "rate": moved / seconds / 1e6}))


@contextmanager
def store(scheme: str, pem: Path) -> Iterator[str]:
    """Run the loopback store for the length of a block and yield its URL."""
    script = Path(__file__).with_name("loopback.py")
    command = [sys.executable, str(script), *([str(pem)] if scheme == "https" else [])]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield f"{scheme}://127.0.0.1:{int(process.stdout.readline())}"
        process.communicate()


def table(scheme: str, url: str, rounds: int, threads: int) -> None:
    """Measure every subject ``rounds`` times, in turn, and print a table."""
    subjects = [FLOOR, *CLIENTS]
    found: dict[tuple[str, OperationKind], list[dict[str, float]]] = {}
    for number in range(rounds):
        for kind in KINDS:
            turn = number % len(subjects)
            for subject in subjects[turn:] + subjects[:turn]:
                command = [sys.executable, __file__, "--one", subject, kind, url, str(threads)]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                found.setdefault((subject, kind), []).append(json.loads(done.stdout))
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


def main() -> None:
    """Make the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--scheme", action="append", choices=["http", "https"])
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        pem = certificate(Path(scratch))
        os.environ |= {"AWS_CA_BUNDLE": str(pem), "AWS_ACCESS_KEY_ID": "a"}
        os.environ["AWS_SECRET_ACCESS_KEY"] = "b"
        print(f"{OBJECTS} objects of 64 MiB, {asked.threads} threads, {asked.rounds} rounds\n")
        print("| scheme | operation | client | core-s/GiB | lowest to highest | x floor | MB/s |")
        print("| --- | --- | --- | ---: | ---: | ---: | ---: |", flush=True)
        for scheme in asked.scheme or ["http", "https"]:
            with store(scheme, pem) as url:
                table(scheme, url, asked.rounds, asked.threads)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(sys.argv[2], OperationKind(sys.argv[3]), sys.argv[4], int(sys.argv[5]))
    else:
        main()
