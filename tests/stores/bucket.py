"""A store behind the kernel's own token bucket, in a network namespace: Linux, as root.

As a command it is the store: it accepts any PUT, and logs when its process read how many bytes.
"""

import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedRWPair
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from serverless_bench.base.clock import sleep, wall_ns
from serverless_bench.rundir.tables import Floats, Ints

_NETWORK = f"10.213.{os.getpid() // 64 % 256}"
"""Its networks have four addresses each, because concurrent tests need one each."""
OURS, THEIRS = (f"{_NETWORK}.{os.getpid() % 64 * 4 + n}" for n in (1, 2))
PORT = 8333
THINKING_S = 0.02
"""Pause between the last byte of a body and the answer, so that the acknowledgement is separate."""


class Log(NamedTuple):
    """The store's log, by the wall clock."""

    at_ns: Ints
    total: Ints
    """Bytes of bodies that its process had read by then."""
    last_in_ns: dict[str, int]
    """When it had the last byte, by path."""


class Bucket:
    """The store and its endpoint; ``log`` is filled when it has ended."""

    log: Log

    def __init__(self, endpoint_url: str, rate: float) -> None:
        self.endpoint_url = endpoint_url
        self.bytes_per_s = rate


@contextmanager
def token_bucket(mbit: int, pem: Path | None = None) -> Iterator[Bucket]:
    """Run the store behind a bucket of so many Mbit/s, over TLS with a certificate and its key.

    Skips the test where that cannot be.
    """
    if sys.platform != "linux" or os.geteuid() != 0 or not shutil.which("tc"):
        pytest.skip("a token bucket of the kernel needs Linux, root, and iproute2")
    name, line = f"sbench-{os.getpid()}", f"sb{os.getpid()}"
    burst = "256kb" if mbit >= 400 else "64kb"
    try:
        for command in (
            f"ip netns add {name}",
            f"ip link add {line} type veth peer name store netns {name}",
            f"ip addr add {OURS}/30 dev {line}",
            f"ip link set {line} up",
            f"ip -n {name} addr add {THEIRS}/30 dev store",
            f"ip -n {name} link set store up",
            f"tc qdisc add dev {line} root tbf rate {mbit}mbit burst {burst} latency 1s",
        ):
            done = subprocess.run(command.split(), capture_output=True, text=True, check=False)
            if done.returncode:
                pytest.skip(f"no token bucket here: {command}: {done.stderr.strip()}")
        command = f"ip netns exec {name} {sys.executable} -m {__name__} {THEIRS} {pem or ''}"
        with subprocess.Popen(
            command.split(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as store:
            assert store.stdout is not None
            assert store.stdout.readline() == "ready\n"
            scheme = "https" if pem else "http"
            bucket = Bucket(f"{scheme}://{THEIRS}:{PORT}", mbit * 1e6 / 8)
            try:
                yield bucket
            finally:
                document = json.loads(store.communicate()[0])
        seen = np.asarray(document["seen"], dtype=np.int64).reshape(-1, 2)
        seen = seen[np.argsort(seen[:, 0], kind="stable")]
        bucket.log = Log(seen[:, 0], np.cumsum(seen[:, 1]), document["last"])
    finally:
        subprocess.run(["ip", "link", "del", line], capture_output=True, check=False)
        subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def best_s(at_ns: Ints, total: Ints) -> float:
    """Return the most bytes in any second."""
    edges: Floats = np.arange(at_ns[0], at_ns[-1], 20_000_000).astype(np.float64)
    before = np.interp(edges, at_ns, total)
    return float((np.interp(edges + 1e9, at_ns, total) - before).max())


class _Store:
    def __init__(self) -> None:
        self.seen: list[tuple[int, int]] = []
        self.last: dict[str, int] = {}

    def serve(self, line: socket.socket) -> None:
        with suppress(OSError), line, line.makefile("rwb") as file:
            while self._answer(file):
                pass

    def _answer(self, file: BufferedRWPair) -> bool:
        first = file.readline().decode()
        if not first:
            return False
        method, path, _ = first.split(" ", 2)
        headers = {}
        while line := file.readline().decode().strip():
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        if "expect" in headers:
            file.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            file.flush()
        left, now_ns = int(headers.get("content-length", 0)), 0
        while left:
            piece = file.read1(min(left, 1 << 16))
            if not piece:
                return False
            now_ns = wall_ns()
            self.seen.append((now_ns, len(piece)))
            left -= len(piece)
        if method == "PUT":
            self.last[path.partition("?")[0]] = now_ns
            sleep(THINKING_S)
        file.write(b'HTTP/1.1 200 OK\r\nETag: "e"\r\nContent-Length: 0\r\n\r\n')
        file.flush()
        return True


def main() -> None:
    """Serve until standard input ends, and print the log."""
    store = _Store()
    context = None
    address, *pem = sys.argv[1:]
    if pem:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pem[0])
    listener = socket.create_server((address, PORT), backlog=64)

    def accept() -> None:
        while True:
            line, _ = listener.accept()
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if context is not None:
                line = context.wrap_socket(line, server_side=True)
            threading.Thread(target=store.serve, args=(line,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    print("ready", flush=True)  # noqa: T201 - a command
    sys.stdin.read()
    print(json.dumps({"seen": store.seen, "last": store.last}))  # noqa: T201


if __name__ == "__main__":
    main()
