"""A proxy in front of a store that slows down, delays or refuses requests."""

import random
import socket
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import IO, Final
from urllib.parse import urlsplit

from serverless_bench.base.clock import monotonic_ns
from serverless_bench.base.units import NS_PER_S
from serverless_bench.job.defaults import CONTROL_PREFIX

_PIECE: Final = 1 << 16
_BUFFER: Final = 1 << 15
"""Buffer of sockets to a client: a larger one would accept bytes long before they may pass."""
_REFUSAL: Final = b"<Error><Code>SlowDown</Code><Message>Reduce your rate</Message></Error>"
_SO_MAX_PACING_RATE: Final = 47
"""Constant of Linux; the module ``socket`` lacks it."""


@dataclass(frozen=True, kw_only=True)
class Behaviour:
    """Limits and delays of a proxy; requests on control objects only have the last one."""

    connection_bytes_per_s: int = 0
    """Rate of each connection, by the kernel; 0 for no limit."""
    latency_s: float = 0
    places: int = 0
    """Requests that are served at the same time, each for ``latency_s``; 0 for all."""
    per_s: float = 0
    """Number of requests per second, passed on one after the other; 0 for no limit."""
    refused: float = 0
    """Share of requests that are answered 503."""
    stalls_s: tuple[float, float] = (0, 0)
    """Distance of stalls, in which all requests wait, and their length."""
    stalls_above_per_s: float = 0
    """Rate of requests below which there are no stalls."""
    body_pause_s: float = 0
    """Pause in the middle of each response with a body."""
    delays_s: Mapping[str, float] = field(default_factory=dict)
    """Delays of requests whose method and path contain this text."""


class Proxy:
    """A listener that forwards each connection to one server."""

    def __init__(self, url: str, behaviour: Behaviour) -> None:
        parts = urlsplit(url)
        self._to = (str(parts.hostname), int(parts.port or 80))
        self._behaviour = behaviour
        self._random = random.Random(0)
        self._pause = threading.Event()
        places = behaviour.places
        self._places = threading.BoundedSemaphore(places) if places else nullcontext()
        self._turns = threading.Lock()
        self._next_turn_s = 0.0
        self._begin_s = monotonic_ns() / NS_PER_S
        self._asked_s: deque[float] = deque([0.0], maxlen=int(behaviour.stalls_above_per_s) or 1)
        self._hot_s = 0.0
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        if behaviour.connection_bytes_per_s:
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def serve(self) -> None:
        """Accept connections until the listener is closed."""
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._forward, args=(client,), daemon=True).start()

    def close(self) -> None:
        """Accept no further connections, and end waiting ones."""
        self._pause.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _forward(self, client: socket.socket) -> None:
        with client, suppress(OSError), socket.create_connection(self._to) as server:
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if rate := self._behaviour.connection_bytes_per_s:
                    end.setsockopt(socket.SOL_SOCKET, _SO_MAX_PACING_RATE, rate)
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER)
            back = threading.Thread(target=self._pump, args=(server, client), daemon=True)
            back.start()
            try:
                with client.makefile("rb") as requests:
                    while self._pass_request(requests, client, server):
                        pass
            finally:
                server.shutdown(socket.SHUT_RDWR)
                back.join()

    def _pass_request(
        self, requests: IO[bytes], client: socket.socket, server: socket.socket
    ) -> bool:
        """Forward a request, or refuse it; return whether the connection continues."""
        lines = []
        while line := requests.readline(_PIECE):
            lines.append(line)
            if line == b"\r\n":
                break
        if not line:
            return False
        head = b"".join(lines)
        refused = self._wait_and_decide(lines[0].decode())
        if not refused:
            server.sendall(head)
        left = _length(lines)
        while left:
            piece = requests.read1(min(left, _PIECE))  # type: ignore[attr-defined]
            if not piece:
                return False
            left -= len(piece)
            if not refused:
                server.sendall(piece)
        if refused:
            size = len(_REFUSAL)
            output = f"HTTP/1.1 503 Slow Down\r\nContent-Length: {size}\r\n\r\n".encode()
            client.sendall(output + _REFUSAL)
        return True

    def _wait_and_decide(self, request: str) -> bool:
        """Wait as long as this request has to; return whether it is refused."""
        output = self._behaviour
        self._pause.wait(sum(s for text, s in output.delays_s.items() if text in request))
        if CONTROL_PREFIX in request or "/test/" not in request:
            return False
        self._pause.wait(self._until_the_stall_ends_s())
        with self._places:
            self._pause.wait(output.latency_s)
        if output.per_s:
            self._pause.wait(self._until_its_turn_s())
        return self._random.random() < output.refused

    def _until_the_stall_ends_s(self) -> float:
        each_s, lasts_s = self._behaviour.stalls_s
        now_s = monotonic_ns() / NS_PER_S
        with self._turns:
            # As many requests as that in the last second.
            self._asked_s.append(now_s)
            if self._asked_s[0] > now_s - 1:
                self._hot_s = now_s
            is_on = not self._behaviour.stalls_above_per_s or now_s - self._hot_s < 0.5
        phase_s = (now_s - self._begin_s) % each_s if each_s else lasts_s
        return max(0.0, lasts_s - phase_s) if is_on else 0.0

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        paused = False
        with suppress(OSError):
            while piece := source.recv(_PIECE):
                paused = paused and not piece.startswith(b"HTTP/1.1")
                if self._behaviour.body_pause_s and not paused and len(piece) > _PIECE // 8:
                    sink.sendall(piece[: len(piece) // 2])
                    self._pause.wait(self._behaviour.body_pause_s)
                    piece, paused = piece[len(piece) // 2 :], True
                sink.sendall(piece)
            sink.shutdown(socket.SHUT_RDWR)

    def _until_its_turn_s(self) -> float:
        """Queue up, and return the wait: a late thread delays no request behind it."""
        with self._turns:
            now_s = monotonic_ns() / NS_PER_S
            self._next_turn_s = max(now_s, self._next_turn_s) + 1 / self._behaviour.per_s
            return self._next_turn_s - now_s


def _length(head: list[bytes]) -> int:
    for line in head:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0


@contextmanager
def proxy_of(url: str, behaviour: Behaviour) -> Iterator[str]:
    """Yield the address of a proxy that runs for the length of a block."""
    proxy = Proxy(url, behaviour)
    thread = threading.Thread(target=proxy.serve)
    thread.start()
    try:
        yield proxy.url
    finally:
        proxy.close()
        thread.join()
