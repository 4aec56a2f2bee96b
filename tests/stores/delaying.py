"""A proxy that holds back some responses of a store until the client hangs up."""

import select
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import IO
from urllib.parse import urlsplit

from tests.commands.processes import PATIENCE_S


@dataclass
class Delaying:
    """A listener in front of a store; it takes requests without bodies."""

    url: str
    is_late: Callable[[str], bool]
    """Whether the response about a key is held back, the first time that it is read."""
    hold_s: float = PATIENCE_S
    """Longest time for which a response is held back."""
    seen: set[str] = field(default_factory=set)
    held: list[str] = field(default_factory=list)
    """Keys of the responses held back."""

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        self._to = (str(parts.hostname), int(parts.port or 80))
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self.endpoint_url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                thread = threading.Thread(target=self._forward, args=(client,))
                self._threads.append(thread)
                thread.start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join()

    def _forward(self, client: socket.socket) -> None:
        with (
            client,
            suppress(OSError),
            socket.create_connection(self._to) as server,
            client.makefile("rb") as requests,
            server.makefile("rb") as responses,
        ):
            while head := _head(requests):
                server.sendall(head)
                answer = _head(responses)
                method, path, _ = head.split(b"\r\n")[0].decode().split(" ")
                if method == "GET" and self._hold(path.partition("?")[0]):
                    is_gone, _, _ = select.select([client], [], [], self.hold_s)
                    if is_gone:
                        return
                body = b"" if method == "HEAD" else responses.read(_length(answer))
                client.sendall(answer + body)

    def _hold(self, path: str) -> bool:
        key = path.split("/", 2)[2]
        with self._lock:
            is_first = key not in self.seen
            self.seen.add(key)
            if is_first and self.is_late(key):
                self.held.append(key)
                return True
        return False


def _head(file: IO[bytes]) -> bytes:
    lines = []
    while (line := file.readline()) and line != b"\r\n":
        lines.append(line)
    return b"".join([*lines, b"\r\n"]) if lines else b""


def _length(head: bytes) -> int:
    fields = (line.partition(b":") for line in head.split(b"\r\n"))
    return next((int(v) for n, _, v in fields if n.lower() == b"content-length"), 0)


@contextmanager
def delaying(
    url: str, is_late: Callable[[str], bool], *, hold_s: float = PATIENCE_S
) -> Iterator[Delaying]:
    proxy = Delaying(url, is_late, hold_s)
    thread = threading.Thread(target=proxy.serve)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.close()
        thread.join()
