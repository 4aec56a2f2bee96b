"""A store that keeps nothing and reads slowly: 64 KiB at a time, with pauses."""

import re
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from subprocess import PIPE, Popen
from typing import Final

from serverless_bench.base.clock import sleep
from serverless_bench.base.units import KIB

_AT_ONCE: Final = 64 * KIB
_PAUSE_S: Final = 0.0003


def main() -> None:
    """Print the URL, and serve until the process is terminated."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
        while True:
            line, _ = listener.accept()
            threading.Thread(target=serve, args=(line,), daemon=True).start()


def serve(line: socket.socket) -> None:
    """Answer the puts of a connection."""
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    room = memoryview(bytearray(_AT_ONCE))
    head = b""
    while True:
        while b"\r\n\r\n" not in head:
            if not (count := line.recv_into(room)):
                return
            head += room[:count]
        head, _, body = head.partition(b"\r\n\r\n")
        match = re.search(rb"(?i)content-length: (\d+)", head)
        left = (int(match[1]) if match else 0) - len(body)
        while left > 0:
            sleep(_PAUSE_S)
            left -= line.recv_into(room[:left])
        line.sendall(b'HTTP/1.1 200 OK\r\nETag: "0"\r\nContent-Length: 0\r\n\r\n')
        head = b""


@contextmanager
def slowly_served() -> Iterator[str]:
    """Run the store for the length of a block, and yield the URL."""
    with Popen([sys.executable, "-m", "benchmarks.subjects.slow"], stdout=PIPE, text=True) as store:
        assert store.stdout is not None
        yield store.stdout.readline().strip()
        store.terminate()


if __name__ == "__main__":
    main()
