"""An S3 endpoint that misbehaves on request: a script defines each connection's behaviour.

Only for faults that a real server does not make on request. It supports just enough of
HTTP for one object per request and generates objects from their keys.
"""

import io
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self

from serverless_bench.job.keys import declared_size
from serverless_bench.payload.keystream import Keystream
from tests.commands.processes import PATIENCE_S

Answer = Callable[["Exchange"], bool]
"""Handles one request; True keeps the connection."""


class _Joined(io.RawIOBase):
    """Bytes that were read already, then the rest of the connection."""

    def __init__(self, start: bytes, rest: io.BufferedReader) -> None:
        self._start = io.BytesIO(start)
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        return self._start.readinto(buffer) or self._rest.readinto1(buffer)


@dataclass
class Exchange:
    """One request as the server sees it."""

    connection: socket.socket
    method: str
    path: str
    headers: dict[str, str]
    body_start: bytes
    over: threading.Event

    @property
    def key(self) -> str:
        return self.path.partition("?")[0].split("/", 2)[2]

    def drain(self, limit: int | None = None) -> int:
        """Read the body, or ``limit`` bytes of it, and return how many came."""
        if "100-continue" in self.headers.get("expect", ""):
            self.connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        if self.headers.get("transfer-encoding") == "chunked" and limit is None:
            return self._drain_chunks()
        wanted = int(self.headers.get("content-length", limit or 0))
        wanted = wanted if limit is None else min(limit, wanted)
        got = len(self.body_start)
        while got < wanted:
            piece = self.connection.recv(min(1 << 16, wanted - got))
            if not piece:
                break
            got += len(piece)
        return got

    def _drain_chunks(self) -> int:
        got = 0
        with self.connection.makefile("rb") as rest:
            lines = io.BufferedReader(_Joined(self.body_start, rest))
            while size := int(lines.readline(), 16):
                got += len(lines.read(size))
                lines.readline()
            while lines.readline().strip():
                pass
        return got

    def say(self, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None) -> None:
        fields = {
            "Content-Length": str(len(body)),
            "x-amz-request-id": "scripted",
            **(headers or {}),
        }
        lines = [f"HTTP/1.1 {status} Scripted", *(f"{n}: {v}" for n, v in fields.items())]
        self.connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    def content(self) -> bytes:
        data = bytearray(declared_size(self.key) or 0)
        Keystream(self.key).readinto_at(0, data)
        return bytes(data)

    def reset(self) -> bool:
        """End the connection with RST instead of FIN."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return False


def works(exchange: Exchange) -> bool:
    if exchange.method == "GET":
        exchange.say(200, exchange.content())
    else:
        exchange.drain()
        exchange.say(200, headers={"ETag": '"etag"'})
    return True


def fails(status: int, code: str = "", **headers: str) -> Answer:
    def answer(exchange: Exchange) -> bool:
        exchange.drain()
        xml = f"<Error><Code>{code}</Code><Message>scripted</Message></Error>" if code else ""
        exchange.say(status, xml.encode(), headers)
        return True

    return answer


def refuses_early(exchange: Exchange) -> bool:
    """Answer before the body has arrived, and hang up."""
    exchange.drain(1000)
    exchange.say(503, b"<Error><Code>SlowDown</Code></Error>", {"Connection": "close"})
    exchange.connection.shutdown(socket.SHUT_WR)
    # Read on for a while, as a careful server does: a reset would destroy the answer.
    exchange.drain(5_000_000)
    return False


def resets_after(count: int) -> Answer:
    def answer(exchange: Exchange) -> bool:
        exchange.drain(count)
        return exchange.reset()

    return answer


def truncates_after(count: int) -> Answer:
    def answer(exchange: Exchange) -> bool:
        data = exchange.content()
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(data)}\r\n\r\n".encode()
        exchange.connection.sendall(head + data[:count])
        return False

    return answer


def stalls_after(count: int) -> Answer:
    """Deliver a part, then nothing until the test is over."""

    def answer(exchange: Exchange) -> bool:
        truncates_after(count)(exchange)
        exchange.over.wait(PATIENCE_S)
        return False

    return answer


def drips(piece: int, pause_s: float) -> Answer:
    def answer(exchange: Exchange) -> bool:
        data = exchange.content()
        exchange.say(200, headers={"Content-Length": str(len(data))})
        for start in range(0, len(data), piece):
            exchange.connection.sendall(data[start : start + piece])
            exchange.over.wait(pause_s)
        return True

    return answer


def closes_silently(exchange: Exchange) -> bool:
    """Answer correctly and drop the connection without having announced it."""
    works(exchange)
    return False


def closes_without_a_word(exchange: Exchange) -> bool:
    """Take the request and hang up."""
    exchange.drain()
    return False


def talks_nonsense(exchange: Exchange) -> bool:
    exchange.drain()
    exchange.connection.sendall(b"SSH-2.0-OpenSSH_9.2p1\r\n")
    return False


def flips_a_byte_at(offset: int) -> Answer:
    def answer(exchange: Exchange) -> bool:
        data = bytearray(exchange.content())
        data[offset] ^= 1
        exchange.say(200, bytes(data))
        return True

    return answer


@dataclass
class FaultServer:
    """Follows ``script`` request by request, then works."""

    script: Iterable[Answer] = ()
    context: ssl.SSLContext | None = None
    receive_buffer: int | None = None
    """Bytes that its kernel accepts before they are read; None for the kernel's choice."""
    seen: list[str] = field(default_factory=list)
    """Method and path of every request, in order."""
    connections: int = 0

    def __enter__(self) -> Self:
        self._answers = iter(self.script)
        self._over = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        if self.receive_buffer is not None:
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.receive_buffer)
        self._port = self._listener.getsockname()[1]
        self.hung_up = threading.Event()
        """Set after the server closed a connection."""
        self._threads: list[threading.Thread] = []
        self._open: list[socket.socket] = []
        self._spawn(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for held in (self._listener, *self._open):
            with suppress(OSError):
                held.shutdown(socket.SHUT_RDWR)
            held.close()
        for thread in self._threads:
            thread.join()

    @property
    def endpoint_url(self) -> str:
        scheme = "https" if self.context else "http"
        return f"{scheme}://127.0.0.1:{self._port}"

    def _spawn(self, target: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=target, args=args)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._over.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._spawn(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        try:
            if self.context:
                connection = self.context.wrap_socket(
                    connection, server_side=True, do_handshake_on_connect=False
                )
            self._open.append(connection)
            # A busy machine may come here behind the end, which closes only what is open.
            while not self._over.is_set() and (exchange := self._read(connection)) is not None:
                self.seen.append(f"{exchange.method} {exchange.path}")
                if not next(self._answers, works)(exchange):
                    break
        except OSError:
            pass
        finally:
            connection.close()
            self.hung_up.set()

    def _read(self, connection: socket.socket) -> Exchange | None:
        data = b""
        while b"\r\n\r\n" not in data:
            piece = connection.recv(1 << 16)
            if not piece:
                return None
            data += piece
        head, _, rest = data.partition(b"\r\n\r\n")
        request, *lines = head.decode().split("\r\n")
        method, path, _ = request.split(" ")
        headers = {n.lower(): v.strip() for n, _, v in (line.partition(":") for line in lines)}
        return Exchange(connection, method, path, headers, rest, self._over)
