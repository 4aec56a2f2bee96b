"""Cost of the loopback store, in its own core-seconds per GiB, compared with a bare socket.

    python -m benchmarks.serve [--rounds 7] [--gib 2] [--connections 1] [--connections 8]

The client sends one object repeatedly from memory, and receives into one buffer, so that the
server is the limit; only its CPU time counts. The bare sink reads into one buffer, the
bare source sends one, without reading the bytes. A round runs every subject once; ratios are
taken within a round, so that a machine that slows down slows all of them.
"""

import argparse
import os
import socket
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Final

import psutil

from benchmarks.common import bare_request, costs, make_parser, rotated
from serverless_bench.base.clock import monotonic_ns
from serverless_bench.base.units import GIB, MIB, NS_PER_S
from serverless_bench.job.keys import object_key
from serverless_bench.payload.keystream import Keystream

SIZE: Final = 64 * MIB
SERVE: Final = [sys.executable, "-m", "serverless_bench", "serve"]
SUBJECTS: Final = {
    "bare sink": ("put", [sys.executable, "-m", "benchmarks.serve", "--bare"]),
    "drained": ("put", [*SERVE, "--check", "none"]),
    "checked": ("put", SERVE),
    "bare source": ("get", [sys.executable, "-m", "benchmarks.serve", "--bare"]),
    "regenerated": ("get", SERVE),
}
FLOOR: Final = {"put": "bare sink", "get": "bare source"}


def bare() -> None:
    """Serve uploads and downloads of ``SIZE`` bytes; print where, end with the process."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    print(f"serving at http://127.0.0.1:{listener.getsockname()[1]}", flush=True)

    def serve(line: socket.socket) -> None:
        room = memoryview(bytearray(MIB // 4))
        while head := line.recv(4096):
            if head.startswith(b"PUT"):
                left = SIZE - len(head.partition(b"\r\n\r\n")[2])
                while left > 0:
                    left -= line.recv_into(room[:left], 0, socket.MSG_WAITALL)
                line.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            else:
                line.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {SIZE}\r\n\r\n".encode())
                for _ in range(SIZE // len(room)):
                    line.sendall(room)

    while True:
        threading.Thread(target=serve, args=listener.accept()[:1], daemon=True).start()


def move(port: int, method: str, key: str, data: memoryview, times: int) -> None:
    """Move one object ``times`` times over a connection."""
    with socket.create_connection(("127.0.0.1", port)) as line:
        room = memoryview(bytearray(MIB))
        sent = [data] if method == "put" else ()
        for _ in range(times):
            bare_request(line, method.upper(), f"/any/{key}", SIZE, room, sent)


@contextmanager
def running(command: list[str]) -> Iterator[tuple[int, psutil.Process]]:
    """Run a server for the length of a block and yield its port and its process."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline().rpartition(":")[2])
        yield port, psutil.Process(process.pid)
        process.terminate()


def cost(subject: str, connections: int, gib: int, key: str, data: memoryview) -> dict[str, float]:
    """Return core-seconds per GiB of one server, and its rate in MB/s."""
    method, command = SUBJECTS[subject]
    with running(command) as (port, process), ThreadPoolExecutor(connections) as pool:

        def all_of_them(times: int) -> None:
            list(pool.map(partial(move, port, method, key, data), [times] * connections))

        all_of_them(1)  # connections and code are warm after this
        times = max(1, gib * GIB // SIZE // connections)
        before, began_ns = process.cpu_times(), monotonic_ns()
        all_of_them(times)
        seconds, after = (monotonic_ns() - began_ns) / NS_PER_S, process.cpu_times()
    used = after.user + after.system - before.user - before.system
    moved = times * connections * SIZE
    # The kernel counts in ticks, and the time is more than zero.
    used = max(used, 1 / os.sysconf("SC_CLK_TCK"))
    return {"cpu": used / (moved / GIB), "rate": moved / seconds / 1e6}


def table(connections: int, rounds: int, gib: int) -> None:
    """Measure every subject ``rounds`` times, in turn, and print rows."""
    key = object_key(prefix="sbench/", run_id="x", index=0, launch=0, number=0, size=SIZE)
    data = memoryview(bytearray(SIZE))
    Keystream(key).readinto_at(0, data)
    found: dict[str, list[dict[str, float]]] = defaultdict(list)
    for name in rotated(list(SUBJECTS), rounds):
        found[name].append(cost(name, connections, gib, key, data))
    for name, (method, _) in SUBJECTS.items():
        print(f"| {connections} | {name} | {costs(found[name], found[FLOOR[method]])}")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = make_parser(__doc__, rounds=7, gib=2)
    made.add_argument("--connections", type=int, action="append")
    made.add_argument("--bare", action="store_true", help=argparse.SUPPRESS)
    return made


def main() -> None:
    """Print the table."""
    asked = parser().parse_args()
    if asked.bare:
        bare()
    if asked.smallest:
        # One object in each direction, over one connection.
        asked.rounds, asked.gib, asked.connections = 1, 0, [1]
    print("| connections | subject | CPU-s/GiB | lowest to highest | x bare | MB/s |")
    print("| ---: | --- | ---: | ---: | ---: | ---: |", flush=True)
    for connections in asked.connections or [1, 2, 8]:
        table(connections, asked.rounds, asked.gib)


if __name__ == "__main__":
    main()
