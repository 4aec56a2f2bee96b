"""HTTP: requests in, answers out, bodies by the block. What they mean is the handler's."""

import socket
import struct
from email.utils import formatdate
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any, Final

from serverless_bench import clock
from serverless_bench.clock import monotonic_ns, wall_ns
from serverless_bench.stores.loopback.answers import S3Error, error_xml
from serverless_bench.stores.loopback.asked import Asked, take_apart
from serverless_bench.stores.loopback.bodies import Body, buffered
from serverless_bench.stores.loopback.faults import drawn
from serverless_bench.stores.loopback.inspector import Inspector
from serverless_bench.stores.loopback.witness import Sight
from serverless_bench.units import KIB, NS_PER_S

if TYPE_CHECKING:
    from serverless_bench.stores.loopback.server import LoopbackServer

BLOCK: Final = 256 * KIB
"""What is moved at a time; as much of the keystream stays in a core's cache."""
SHAPED_BLOCK: Final = 64 * KIB
_MAX_DOCUMENT: Final = 1 << 23
"""A list of 10,000 parts is 1 MB."""
_LINGER_S: Final = 2.0
_TEXT: Final = "application/xml"


class Hangup(ConnectionError):
    """The connection is over, by our own will."""


class Connection(BaseHTTPRequestHandler):
    """One connection and the requests on it, one after the other."""

    server: "LoopbackServer"
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self) -> None:
        """Speak TLS if asked, and read with our own reader."""
        tls = self.server.tls
        if tls is not None:
            self.request = tls.wrap_socket(self.request, server_side=True)
        super().setup()
        self.rfile.close()
        self.rfile = self._source = buffered(self.connection, whole=tls is None)
        self.room = memoryview(bytearray(self.server.block_bytes))
        self._pace = self.server.shaper.new_pace()
        self._connection_number = next(self.server.connection_numbers)
        self.server.counts.add(connections=1)

    def handle(self) -> None:
        """Serve requests until one side hangs up."""
        try:
            super().handle()
        except OSError:
            # Resets, and clients that went away: what happened is in the log.
            self.close_connection = True

    def finish(self) -> None:
        """Close; what was written goes out first, unless the connection was reset."""
        self.connection.close()
        self.server.witness.flush()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, ANN401 - stdlib's
        """Say nothing: there is the log of faults, and there are statistics."""

    def handle_expect_100(self) -> bool:
        """Wait with ``100 Continue`` until somebody wants the body."""
        self._expecting = True
        return True

    def handle_one_request(self) -> None:
        """Serve one request, and have it witnessed."""
        self._expecting = False
        self._witnessed = False
        try:
            super().handle_one_request()
        finally:
            if self._witnessed:
                self.server.witness.note(self.sight)

    def parse_request(self) -> bool:
        """Take the time at which the request came, and read the rest of its head."""
        self._came_ns = monotonic_ns()
        return super().parse_request()

    def begin(self) -> Asked:
        """Return what is asked; call it once per request."""
        self.number = next(self.server.numbers)
        self.request_id = f"{self.number:016X}"
        self.body: Body | None = None
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.asked = take_apart(self.command, self.path, headers)
        self.sight = Sight(self.number, self._connection_number, self.asked, self._came_ns)
        return self.asked

    def be_seen(self) -> None:
        """Have the request witnessed, however it ends."""
        self._witnessed = True
        self.server.witness.begins(self.sight)

    def open_body(self) -> Body:
        """Return the body of the request, and have the client send it.

        Raises
        ------
        S3Error
            If the request does not say how long it is.
        """
        if self.body is None:
            self.body = Body(self._source, self.asked.headers)
            if self._expecting:
                self._expecting = False
                self.connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        return self.body

    def read_document(self) -> bytes:
        """Return a short body.

        Raises
        ------
        S3Error
            If it is long.
        """
        body, text = self.open_body(), bytearray()
        while count := body.fill(self.room):
            text += self.room[:count]
            if len(text) > _MAX_DOCUMENT:
                raise S3Error(400, "EntityTooLarge", "the document is too long")
        return bytes(text)

    def receive(self, inspector: Inspector, limit: int | None = None) -> int:
        """Move the body, or ``limit`` bytes of it, to ``inspector``; return how many came."""
        body, came = self.open_body(), 0
        try:
            while count := self._fill(body, None if limit is None else limit - came):
                inspector.take(self.room[:count])
                came += count
                self.pay(count, upload=True)
        finally:
            self.server.counts.add(in_bytes=came)
        return came

    def _fill(self, body: Body, limit: int | None) -> int:
        """Fill the room, and note when the first byte of the body and the last one are there."""
        room, first = self.room[:limit], 0
        if self.sight.first_in_ns is None:
            first = body.fill(room[:1])
            self.sight.came(first)
        count = body.fill(room[first:])
        self.sight.came(count)
        return first + count

    def send(self, block: memoryview) -> None:
        """Send bytes of an object."""
        self.sight.goes()
        self.connection.sendall(block)
        self.sight.out_bytes += len(block)

    def pay(self, count: int, *, upload: bool) -> None:
        """Wait as long as ``count`` bytes take this connection and its function."""
        shaper, now_ns = self.server.shaper, monotonic_ns()
        wait_ns = 0 if self._pace is None else self._pace.wait_ns(count, now_ns)
        name = self.asked.function or "{}:{}".format(*self.client_address)
        bucket = shaper.function(name, upload=upload, now_ns=now_ns)
        if bucket is not None:
            wait_ns = max(wait_ns, bucket.wait_ns(count, now_ns))
        if wait_ns:
            clock.sleep(wait_ns / NS_PER_S)

    def settle(self) -> None:
        """Take the request off the line, so that the next one begins where it should.

        A client that still waits for ``100 Continue`` sends nothing any more, or would
        send it after our answer: that connection is closed.
        """
        try:
            if not self._expecting:
                self.open_body().drain(self.room)
        except S3Error:
            # Chunks that are none: nobody knows where the next request begins.
            self._expecting = True
        self.close_connection = self.close_connection or self._expecting

    def reply(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        """Send a whole answer."""
        self.settle()
        self.head(status, {"Content-Length": str(len(body)), **(headers or {})}, body)
        if self._expecting:
            self._linger()

    def head(self, status: int, headers: dict[str, str], body: bytes = b"") -> None:
        """Send the head of an answer, and its body where it is short."""
        server = self.server
        if server.settings.shape.latency:
            draw = drawn(server.settings.seed, "latency", self.number)
            clock.sleep(server.shaper.latency_s(draw))
        if self.asked.key and (stall_ns := server.shaper.stall_ns(monotonic_ns())):
            clock.sleep(stall_ns / NS_PER_S)
        fields = {
            "x-amz-request-id": self.request_id,
            "x-amz-id-2": f"loopback/{self.request_id}",
            "Server": "sbench",
            "Date": http_date(wall_ns() / NS_PER_S + server.settings.clock_skew_s),
            **headers,
        }
        if self.close_connection:
            fields["Connection"] = "close"
        lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}"]
        lines += [f"{name}: {value}" for name, value in fields.items()]
        text = "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"
        self.sight.status, self.sight.answered_ns = status, monotonic_ns()
        self.connection.sendall(text if self.command == "HEAD" else text + body)

    def refuse(self, error: S3Error) -> None:
        """Send an answer that refuses."""
        body = error_xml(error, self.asked.path, self.request_id)
        self.reply(error.status, body, {"Content-Type": _TEXT})

    def say(self, body: bytes) -> None:
        """Send an answer with a document."""
        self.reply(200, body, {"Content-Type": _TEXT})

    def hang_up(self, *, reset: bool) -> None:
        """End the connection, with RST instead of FIN if asked.

        Raises
        ------
        Hangup
            Always.
        """
        if reset:
            linger = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        raise Hangup

    def _linger(self) -> None:
        """Read on for a while: to close on unread bytes would destroy the answer."""
        self.connection.shutdown(socket.SHUT_WR)
        self.connection.settimeout(_LINGER_S)
        while self.connection.recv_into(self.room):
            pass


def http_date(seconds: float) -> str:
    """Return an instant as HTTP spells it."""
    return formatdate(seconds, usegmt=True)
