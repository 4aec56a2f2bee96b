"""HTTP: requests, responses, transfer of bodies in blocks, and injection of planned faults."""

import socket
import socketserver
import struct
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from io import BufferedReader
from typing import Any, Final, NoReturn

from serverless_bench.base import clock
from serverless_bench.base.clock import monotonic_ns, wall_ns
from serverless_bench.base.units import NS_PER_S
from serverless_bench.features.conditional.shared_keys import is_shared_key
from serverless_bench.features.loopback.bodies import (
    HEAD,
    Body,
    Inspector,
    SocketReader,
    UploadCheck,
)
from serverless_bench.features.loopback.faults import FaultKind, PlannedFault, derived_rng
from serverless_bench.features.loopback.listener import from_a_page, is_loopback
from serverless_bench.features.loopback.request_log import StoreRequest
from serverless_bench.features.loopback.s3 import (
    Element,
    S3Error,
    S3Request,
    error_xml,
    http_date,
    parse_request,
    xml,
)
from serverless_bench.features.loopback.shaping import Pace
from serverless_bench.features.loopback.state import StoreState
from serverless_bench.job.defaults import CONTROL_PREFIX
from serverless_bench.job.keys import declared_size

FIRST_REQUEST_S: Final = 30.0
"""Time after which a connection is closed if it has sent no request."""
_MAX_DOCUMENT: Final = 1 << 23
"""Limit on the size of a document; a list of 10,000 parts takes 1 MB."""
_LINGER_S: Final = 2.0
_XML: Final = "application/xml"


class Hangup(ConnectionError):
    """The server has closed the connection deliberately."""


class HttpConnection(BaseHTTPRequestHandler):
    """A connection that serves consecutive requests.

    Parameters
    ----------
    connection, client_address, server
        Arguments that the standard library passes.
    state
        State of the store.
    """

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def __init__(
        self,
        connection: socket.socket,
        client_address: tuple[str, int],
        server: socketserver.BaseServer,
        state: StoreState,
    ) -> None:
        self.state = state
        # The constructor of the base class serves all requests of the connection.
        super().__init__(connection, client_address, server)

    def setup(self) -> None:
        """Wrap the connection in TLS if configured, and install the server's own reader."""
        tls = self.state.tls
        self.request.settimeout(FIRST_REQUEST_S)
        if tls is not None:
            self.request = tls.wrap_socket(self.request, server_side=True)
        super().setup()
        self.rfile.close()
        reader = SocketReader(self.connection, whole=tls is None)
        self._source: BufferedReader = BufferedReader(reader, HEAD)
        self.rfile = self._source
        self.buffer = memoryview(bytearray(self.state.block_bytes))
        rate = self.state.settings.shape.connection_bytes_per_s
        self._pace = None if rate is None else Pace(rate)
        self._connection_number = next(self.state.connection_numbers)
        self._within = is_loopback(self.connection.getsockname())
        self.state.counters.add(connections=1)

    def handle(self) -> None:
        """Serve requests until the client or the server hangs up."""
        try:
            super().handle()
        except OSError:
            # Resets, and clients that went away: the log has the reason.
            self.close_connection = True

    def finish(self) -> None:
        """Close; written data is sent first, unless the connection was reset."""
        self.connection.close()
        self.state.request_log.flush()

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: the log of faults and the statistics replace this log."""

    def handle_expect_100(self) -> bool:
        """Delay ``100 Continue`` until the body is needed."""
        self._expecting = True
        return True

    def parse_request(self) -> bool:
        """Record the time at which the request arrived, and read the rest of the head."""
        self._expecting = False
        self._received_ns = monotonic_ns()
        is_request = super().parse_request()
        # Between later requests a client may be silent indefinitely.
        self.connection.settimeout(None)
        return is_request

    def refused(self) -> bool:
        """Reject a request from a web page, without counting or examining it.

        This applies on loopback only: a store that listens on the network is open to others by
        choice.
        """
        host, origin = self.headers.get("Host", ""), self.headers.get("Origin")
        if not self._within or not from_a_page(host, origin):
            return False
        error = S3Error(
            403,
            "AccessDenied",
            "this store rejects requests from web pages; use 127.0.0.1 or localhost as its host",
        )
        body = error_xml(error, self.path, "")
        head = f"HTTP/1.1 403 Forbidden\r\nContent-Type: {_XML}\r\nConnection: close\r\n"
        self.close_connection = True
        self.connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode())
        self.connection.sendall(b"" if self.command == "HEAD" else body)
        self._linger()
        return True

    def start_request(self) -> S3Request:
        """Parse the request and return it; call this once per request."""
        self.body: Body | None = None
        self.fault: PlannedFault | None = None
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.s3_request = request = parse_request(self.command, self.path, headers)
        self.logged = StoreRequest(
            request=next(self.state.request_numbers),
            connection=self._connection_number,
            worker=request.function,
            bucket=request.bucket,
            key=request.key or request.query.get("prefix", ""),
            part=request.part,
            head_ns=self._received_ns,
        )
        return request

    def open_body(self) -> Body:
        """Return the body of the request, and have the client send it.

        Raises
        ------
        S3Error
            If the request does not declare the length of the body.
        """
        if self.body is None:
            self.body = Body(self._source, self.s3_request.headers)
            if self._expecting:
                self._expecting = False
                self.connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        return self.body

    def read_document(self) -> bytes:
        """Return a body that is a document.

        Raises
        ------
        S3Error
            If the body is too long.
        """
        body, text = self.open_body(), bytearray()
        while count := body.fill(self.buffer):
            text += self.buffer[:count]
            if len(text) > _MAX_DOCUMENT:
                raise S3Error(400, "EntityTooLarge", "the document is too long")
        return bytes(text)

    def receive(self, inspector: Inspector, limit: int | None = None) -> int:
        """Pass the body, or ``limit`` bytes of it, to ``inspector``; return the number received."""
        body, received = self.open_body(), 0
        try:
            while count := self._fill(body, None if limit is None else limit - received):
                inspector.take(self.buffer[:count])
                received += count
                self.throttle(count, upload=True)
        finally:
            self.state.counters.add(in_bytes=received)
        return received

    def _fill(self, body: Body, limit: int | None) -> int:
        """Fill the buffer, and record the arrival of the first and the last byte of the body."""
        buffer, first = self.buffer[:limit], 0
        if self.logged.first_in_ns is None:
            first = body.fill(buffer[:1])
            self.logged.received(first)
        count = body.fill(buffer[first:])
        self.logged.received(count)
        return first + count

    def send_block(self, block: memoryview) -> None:
        """Send bytes of an object."""
        self.logged.sending()
        while block:
            # Not `sendall`, which does not tell how much it sent before an error.
            count = self.connection.send(block)
            self.logged.out_bytes += count
            block = block[count:]

    def throttle(self, count: int, *, upload: bool) -> None:
        """Wait for as long as ``count`` bytes take on the connection and in the function."""
        shaper, now_ns = self.state.shaper, monotonic_ns()
        wait_ns = 0 if self._pace is None else self._pace.wait_ns(count, now_ns)
        name = self.logged.worker or "{}:{}".format(*self.client_address)
        bucket = shaper.function(name, upload=upload, now_ns=now_ns)
        if bucket is not None:
            wait_ns = max(wait_ns, bucket.wait_ns(count, now_ns))
        if wait_ns:
            clock.sleep(wait_ns / NS_PER_S)

    def drain_body(self) -> None:
        """Read the rest of the request, so that the next request starts at the right place.

        A client still waiting for ``100 Continue`` will either send no body, or send it after the
        response, so that connection is closed.
        """
        try:
            if not self._expecting:
                self.open_body().drain(self.buffer)
        except S3Error:
            # The chunks are malformed, so the start of the next request is unknown.
            self._expecting = True
        self.close_connection = self.close_connection or self._expecting

    def reply(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        """Send a complete response."""
        self.drain_body()
        self.send_head(status, {"Content-Length": str(len(body)), **(headers or {})}, body)
        if self._expecting:
            self._linger()

    def send_head(self, status: int, headers: dict[str, str], body: bytes = b"") -> None:
        """Send the head of a response, with the body if it is short."""
        settings, shaper = self.state.settings, self.state.shaper
        if settings.shape.latency:
            rng = derived_rng(settings.seed, "latency", self.logged.request)
            clock.sleep(shaper.latency_s(rng))
        if self.s3_request.key and settings.shape.queue:
            rng = derived_rng(settings.seed, "queue", self.logged.request)
            clock.sleep(shaper.queue_ns(rng, self._received_ns, monotonic_ns()) / NS_PER_S)
        if self.s3_request.key and (stall_ns := shaper.stall_ns(monotonic_ns())):
            clock.sleep(stall_ns / NS_PER_S)
        request_id = self.logged.request_id
        ids = {"x-amz-request-id": request_id, "x-amz-id-2": f"loopback/{request_id}"}
        fields = {
            **({"x-guploader-uploadid": request_id} if self.s3_request.google else ids),
            "Server": "sbench",
            "Date": http_date(wall_ns() / NS_PER_S + settings.clock_skew_s),
            **headers,
        }
        if self.close_connection:
            fields["Connection"] = "close"
        lines = [
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
            *(f"{name}: {value}" for name, value in fields.items()),
        ]
        text = "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"
        self.logged.status, self.logged.answered_ns = status, monotonic_ns()
        self.connection.sendall(text if self.command == "HEAD" else text + body)

    def reply_error(self, error: S3Error) -> None:
        """Send an error response."""
        text = error_xml(error, self.s3_request.path, self.logged.request_id)
        # This status has no body.
        text = b"" if error.status == HTTPStatus.NOT_MODIFIED else text
        self.reply(error.status, text, {"Content-Type": _XML})

    def reply_document(
        self, name: str, children: Sequence[Element], headers: Mapping[str, str] | None = None
    ) -> None:
        """Send an XML document."""
        self.reply(200, xml(name, children), {"Content-Type": _XML, **(headers or {})})

    def hang_up(self, *, reset: bool) -> None:
        """Close the connection; a reset sends RST instead of FIN.

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
        """Read for a while longer: closing with unread bytes would destroy the response."""
        self.connection.shutdown(socket.SHUT_WR)
        self.connection.settimeout(_LINGER_S)
        while self.connection.recv_into(self.buffer):
            pass


REFUSALS: Final[Mapping[FaultKind, tuple[int, str, str]]] = {
    FaultKind.SLOWDOWN: (503, "SlowDown", "Please reduce your request rate."),
    FaultKind.ERROR: (500, "InternalError", "We encountered an internal error."),
    FaultKind.MISSING: (404, "NoSuchKey", "The specified key does not exist."),
    **dict.fromkeys(
        (FaultKind.LIST_ERROR, FaultKind.DELETE_ERROR),
        (503, "SlowDown", "Please reduce your request rate."),
    ),
}
"""Faults that consist only of an error response."""


class S3Connection(HttpConnection):
    """Connection with the operations that all handlers use."""

    def check_limits(self, name: str) -> None:
        """Check a request against the rate limit of the prefix.

        Raises
        ------
        S3Error
            If it exceeds the limit.
        """
        request = self.s3_request
        prefix = f"{request.bucket}/{request.key.rpartition('/')[0]}"
        if request.key and not self.state.shaper.admits(
            prefix, write=request.writes, now_ns=monotonic_ns()
        ):
            self.state.counters.add(limited=1)
            self._log_event("limit", "put" if request.writes else "get", name)
            raise S3Error(*REFUSALS[FaultKind.SLOWDOWN])

    def plan_fault(self, name: str) -> None:
        """Choose the fault of a request.

        Raises
        ------
        S3Error
            If the fault is an error response.
        """
        self._name = name
        request, key = self.s3_request, self.logged.key
        if key.startswith(CONTROL_PREFIX):
            return
        # Most faults are limited to objects of a benchmark; markers and the like are no part of it.
        is_foreign = declared_size(key) is None and not is_shared_key(key)
        plan = self.state.foreign_plan if is_foreign else self.state.fault_plan
        where = str(request.part or request.headers.get("range", ""))
        self.fault = plan.decide(name, key, where)
        if self.fault and self.fault.kind in REFUSALS:
            self.inject(self.fault)
            raise S3Error(*REFUSALS[self.fault.kind])

    def send_head(self, status: int, headers: dict[str, str], body: bytes = b"") -> None:
        """Send the head of a response, unless the response is to be lost."""
        fault = self.fault
        if fault is not None and fault.kind is FaultKind.LOST_ANSWER and status < 300:
            self.inject(fault)
            self.hang_up(reset=False)
        super().send_head(status, headers, body)

    def inject(self, fault: PlannedFault, **fields: Any) -> None:
        """Write a fault to the log, just before it reaches the client."""
        self.state.counters.count("faults", fault.kind)
        self.logged.fault = fault.kind
        self._log_event("fault", fault.kind, self._name, number=fault.number, **fields)

    def receive_upload(self, *, offset: int | None) -> UploadCheck:
        """Receive an upload, or the part of it before a reset.

        Parameters
        ----------
        offset
            Offset in the object at which the upload has to start; None for a part.

        Raises
        ------
        S3Error
            If the bytes are wrong.
        """
        verifies, headers = self.state.settings.verifies, self.s3_request.headers
        inspector = Inspector(self.s3_request.key, offset=offset, verifies=verifies, sums=headers)
        fault = self.fault
        if fault and fault.kind is FaultKind.RESET_PUT:
            size = self.open_body().size or declared_size(self.s3_request.key) or 1
            self.inject(fault, received_bytes=self.receive(inspector, fault.cut(size)))
            self.hang_up(reset=True)
        self.receive(inspector)
        check = inspector.result()
        self.logged.offset = check.offset
        self.state.counters.add(checked_put_bytes=check.checked_bytes)
        if check.bad_bytes:
            self.reject(check, f"{check.bad_bytes} bytes differ from the content of the key")
        return check

    def reject(self, check: UploadCheck, message: str) -> NoReturn:
        """Reject an upload with wrong bytes.

        Raises
        ------
        S3Error
            Always.
        """
        self.state.counters.add(bad_puts=1, bad_put_bytes=check.bad_bytes or check.size)
        raise S3Error(400, "BadDigest", message)

    def _log_event(self, event: str, kind: str, name: str, **fields: Any) -> None:
        request = self.s3_request
        self.state.fault_log.add(
            event=event,
            kind=kind,
            request=name,
            request_id=self.logged.request_id,
            bucket=request.bucket,
            key=request.key,
            part=request.part,
            range=request.headers.get("range"),
            **fields,
        )
