"""An HTTP/1.1 connection of the wire client, and the loops that move bytes over it.

The socket stays blocking, with SO_RCVTIMEO and SO_SNDTIMEO set to ``TICK_S``: the kernel then
returns the available data at least twenty times a second. This reports progress within a slow
block, detects a stalled transfer, and lets a function stop at its deadline, without a poll before
every call. Heads and bodies share a reused buffer: a small object takes one send and usually one
receive.
"""

import re
import select
import socket
import ssl
import struct
from collections.abc import Callable
from contextlib import suppress
from fcntl import ioctl
from termios import FIONREAD
from typing import Final, TypeVar
from urllib.parse import SplitResult

from serverless_bench.base.errors import (
    BadResponse,
    ConnectionLost,
    DeadlineExceeded,
    OperationError,
    TimedOut,
)
from serverless_bench.base.units import KIB
from serverless_bench.clients.base import Exchange, Sink, Source
from serverless_bench.clients.environment import PROXY_HINT, refusal, without_user
from serverless_bench.clients.send_queue import AT_ONCE, STAMPED_FROM, SendQueue
from serverless_bench.clients.wire.connect import (
    TICK_S,
    Opening,
    TlsStream,
    authorization,
    connect,
    open_tunnel,
    secure,
)
from serverless_bench.clients.wire.response import END_OF_HEAD, Response

_CONNECT_S: Final = 10.0
_EARLY_RESPONSE_S: Final = 1.0
_HEAD_BYTES: Final = 64 * KIB
"""Space for a head before the block in the buffer; S3 accepts heads of 8 KiB."""

_LINE_BYTES: Final = 4 * KIB
"""Size limit of a line between chunks or after the last one; S3's lines have about ten bytes."""
_TRAILERS: Final = 64
_CHUNK_SIZE: Final = re.compile(rb"[0-9a-fA-F]{1,15}")

B = TypeVar("B", bound=bytes | memoryview)


class WireConnection:
    """A connection with its TLS session and its buffer.

    Parameters
    ----------
    url
        Scheme, host and port of the server.
    proxy
        URL of the proxy to use; None for a direct connection.
    block_bytes
        Size of the blocks in which a body is produced or compared.
    timeout_s
        Time limit for a wait without progress.
    exchange
        Receives calls while the client waits for a proxy or TLS.
    connected
        Returns a connected socket, given a time limit; None to connect here.

    Raises
    ------
    OperationError
        If the connection cannot be opened.
    """

    def __init__(
        self,
        url: SplitResult,
        *,
        proxy: str | None,
        block_bytes: int,
        timeout_s: float,
        exchange: Opening,
        connected: Callable[[float], socket.socket] | None = None,
    ) -> None:
        self._timeout_s = timeout_s
        self._block_bytes = block_bytes
        self._room = bytearray(_HEAD_BYTES + block_bytes)
        self._buffer = memoryview(self._room)
        self._begin = self._end = 0
        """Range of the buffer with received bytes that are not consumed yet."""
        self.absolute = bool(proxy) and url.scheme == "http"
        """Whether requests have to contain the full URL, as required by a proxy."""
        self.proxy_lines = authorization(proxy) if proxy else ""
        """Headers for the proxy, as lines."""
        connect_s = min(timeout_s, _CONNECT_S)
        try:
            self.socket = connected(connect_s) if connected else connect(url, proxy, connect_s)
            self._queue = SendQueue(self.socket)
            self._stream: socket.socket | TlsStream = self.socket
            try:
                if url.scheme == "https":
                    if proxy:
                        open_tunnel(self.socket, url, self.proxy_lines, connect_s, exchange)
                        self.proxy_lines = ""
                    self._stream = secure(self.socket, url, block_bytes, connect_s, exchange)
                self.socket.settimeout(None)
                peer = self.socket.getpeername()
            except BaseException:
                self.close()
                raise
        except OSError as exc:
            raise _unconnected(exc, proxy) from exc
        self.remote = f"{peer[0]}:{peer[1]}" + (" (proxy)" if proxy else "")
        self._poll = select.poll()
        self._poll.register(self.socket, select.POLLIN)
        self.is_reusable = False
        """Whether the last request and the response are complete."""

    def is_stale(self) -> bool:
        """Return whether the store has closed the idle connection or sent unexpected data."""
        return bool(self._poll.poll(0))

    def close(self) -> None:
        """Close the socket; the send queue keeps the number of unacknowledged bytes."""
        self._queue.look()
        self.socket.close()
        self.is_reusable = False

    def ask(self, head: bytes, exchange: Exchange) -> None:
        """Send a request without a body, for ``take_response``."""
        self.is_reusable = False
        self._begin = self._end = 0
        try:
            self._send_all(head, len(head), exchange)
        except OSError as exc:
            raise _lost(exc) from exc
        exchange.sent()

    def take_response(self, exchange: Exchange) -> Response | None:
        """Return the head of the response to ``ask``, without waiting; None until it is complete.

        Raises
        ------
        OperationError
            If the connection breaks.
        """
        self.socket.settimeout(0)
        try:
            # A wait of a tick is already too long.
            return self._response("GET", exchange, TICK_S / 2)
        except TimedOut:
            return None
        finally:
            self.socket.settimeout(None)

    def give_up(self, exchange: Exchange) -> None:
        """Close, and report what had arrived of the response to ``ask``.

        Of encrypted bytes only those of one receive are counted: the rest is not decrypted.
        """
        try:
            with suppress(OperationError):
                if (response := self.take_response(exchange)) is not None:
                    exchange.answered(response.status, response.headers)
                    arrived = self._end - self._begin
                    if self._stream is self.socket:
                        arrived += struct.unpack("i", ioctl(self.socket, FIONREAD, bytes(4)))[0]
                    # The text of an error is not part of an object.
                    exchange.moved(min(arrived, response.length or 0) * (response.status < 300))
        finally:
            self.close()

    def send_request(
        self, method: str, head: bytes, body: Source | bytes, exchange: Exchange
    ) -> Response:
        """Send a request and return the head of the response.

        Parameters
        ----------
        method, head
            HTTP method, and the head ready to be sent.
        body
            The bytes of an object, which are counted, or other bytes, which are not.
        exchange
            Receives all events of the request.

        Raises
        ------
        OperationError
            If the connection breaks, or no byte moves for too long.
        """
        self.is_reusable = False
        self._begin = self._end = 0
        try:
            self._send(head, body, exchange)
            exchange.sent()
            if not isinstance(body, bytes) and body.size > AT_ONCE:
                self._queue.wait_early(lambda wait_s: self._poll.poll(wait_s * 1e3), exchange)
        except (BrokenPipeError, ConnectionResetError) as exc:
            return self._early_response(method, exchange, exc)
        except OSError as exc:
            raise _lost(exc) from exc
        response = self._response(method, exchange, self._timeout_s)
        if self._queue.is_stamped and (instant_ns := self._queue.take_stamp()) is not None:
            exchange.acknowledged(instant_ns)
        if response.length == 0:
            self.is_reusable = self._begin == self._end and not response.will_close
        return response

    def receive(self, response: Response, sink: Sink, exchange: Exchange) -> None:
        """Move the body of ``response`` into ``sink``.

        Raises
        ------
        ConnectionLost
            If the connection is closed before the end of the body.
        """
        size = response.length
        if size is None:
            raise BadResponse("the object has no Content-Length", status=response.status)
        # Less than a block arrived with the head.
        begin, received = self._begin, self._end - self._begin
        offset, filled = 0, min(received, size)
        if filled:
            exchange.first_byte()
            exchange.moved(filled)
        while offset < size:
            want = min(self._block_bytes, size - offset)
            while filled < want:
                count = self._receive(self._buffer[begin + filled : begin + want], exchange)
                if offset == filled == 0:
                    exchange.first_byte()
                exchange.moved(count)
                filled += count
            sink.write_at(offset, self._buffer[begin : begin + want])
            offset, begin, filled = offset + want, 0, 0
        self.is_reusable = received <= size and not response.will_close

    def read(self, response: Response, most: int, exchange: Exchange) -> bytes:
        """Return the body of ``response``, limited to its first ``most`` bytes."""
        if response.chunked:
            data, is_complete = self._read_chunks(most, exchange)
        else:
            length = response.length
            data = self._read(most if length is None else min(length, most), exchange)
            is_complete = length is not None and len(data) == length
            if length is not None and len(data) < min(length, most):
                raise ConnectionLost("the connection was closed in the middle of the response")
        self.is_reusable = is_complete and not response.will_close and self._begin == self._end
        return data

    # Sending

    def _send(self, head: bytes, body: Source | bytes, exchange: Exchange) -> None:
        if isinstance(body, bytes):
            self._send_all(head + body, len(head) + len(body), exchange)
            return
        if len(head) > _HEAD_BYTES:
            self._send_all(head, len(head), exchange)
            head = b""
        if body.size > AT_ONCE:
            exchange.sending(self._queue.look)
        buffer, first = self._buffer, len(head)
        buffer[:first] = head
        is_stamped = body.size >= STAMPED_FROM
        for offset in range(0, body.size or 1, self._block_bytes):
            end = first + min(self._block_bytes, body.size - offset)
            body.readinto_at(offset, buffer[first:end])
            if is_stamped and offset + self._block_bytes >= body.size:
                self._queue.stamp(on=True)
            self._send_all(buffer[:end], first, exchange)
            first = 0
        if is_stamped:
            self._queue.stamp(on=False)

    def _send_all(self, data: bytes | memoryview, uncounted: int, exchange: Exchange) -> None:
        """Send ``data``; its first ``uncounted`` bytes do not belong to an object."""
        send: Callable[[bytes | memoryview], int] = self._stream.send
        while True:
            try:
                count = send(data)
            except BlockingIOError:
                count = self._patiently(send, data, exchange, self._timeout_s)
            if count > uncounted:
                exchange.moved(count - uncounted)
            if count == len(data):
                return
            data = memoryview(data)[count:]
            uncounted = max(0, uncounted - count)

    # Receiving

    def _response(self, method: str, exchange: Exchange, patience_s: float) -> Response:
        """Return the next final head; the bytes after it stay in the buffer."""
        begin, end = self._begin, self._end
        while True:
            if end == begin or (head_end := self._room.find(END_OF_HEAD, begin, end)) < 0:
                if end > _HEAD_BYTES:
                    raise BadResponse("the head of the response is too long")
                if end > self._begin:
                    # Let the exchange check the deadline: the head may arrive in small pieces.
                    exchange.moved(0)
                # At most a block, so that the first block of the body fits after the head.
                room = self._buffer[end : end + self._block_bytes]
                end += self._receive(room, exchange, patience_s)
                self._end = end
                continue
            response = Response(self._room[begin:head_end], method)
            begin = head_end + len(END_OF_HEAD)
            if begin > _HEAD_BYTES:
                raise BadResponse("the head of the response is too long")
            if not response.is_interim:
                self._begin, self._end = begin, end
                return response

    def _read(self, most: int, exchange: Exchange) -> bytes:
        """Return ``most`` bytes, or fewer at the end."""
        data = bytearray()
        while len(data) < most and (self._begin < self._end or self._refill(exchange)):
            piece = self._buffer[self._begin : min(self._end, self._begin + most - len(data))]
            self._begin += len(piece)
            data += piece
        return bytes(data)

    def _read_chunks(self, most: int, exchange: Exchange) -> tuple[bytes, bool]:
        """Return a chunked body (RFC 9112, section 7.1), and whether it is complete."""
        data = bytearray()
        while size := self._chunk_size(exchange):
            part = self._read(min(size, most - len(data)), exchange)
            data += part
            if len(data) == most:
                return bytes(data), False
            if len(part) < size or self._line(exchange):
                raise ConnectionLost("the connection was closed in the middle of a chunk")
        for _ in range(_TRAILERS):
            if not self._line(exchange):
                return bytes(data), True
        raise BadResponse("the trailer of the response is too long")

    def _chunk_size(self, exchange: Exchange) -> int:
        text = self._line(exchange).partition(b";")[0].strip()
        if not _CHUNK_SIZE.fullmatch(text):
            raise BadResponse(f"{text[:100]!r} is not a chunk size")
        return int(text, 16)

    def _line(self, exchange: Exchange) -> bytes:
        line = b""
        while not line.endswith(b"\n"):
            byte = self._read(1, exchange)
            if not byte:
                raise ConnectionLost("the connection was closed in the middle of the response")
            line += byte
            if len(line) > _LINE_BYTES:
                raise BadResponse("a line of the response is too long")
        return line.rstrip(b"\r\n")

    def _refill(self, exchange: Exchange) -> bool:
        """Receive the next data into the empty buffer; return False at the end."""
        exchange.moved(0)
        self._begin = 0
        self._end = self._receive_some(self._buffer, exchange, self._timeout_s)
        return self._end > 0

    def _receive(
        self, buffer: memoryview, exchange: Exchange, patience_s: float | None = None
    ) -> int:
        count = self._receive_some(buffer, exchange, patience_s or self._timeout_s)
        if not count:
            raise ConnectionLost("the store closed the connection before the end of its response")
        return count

    def _receive_some(self, buffer: memoryview, exchange: Exchange, patience_s: float) -> int:
        """Receive the available or the next data; return 0 at the end."""
        receive = self._stream.recv_into
        try:
            try:
                return receive(buffer)
            except BlockingIOError:
                return self._patiently(receive, buffer, exchange, patience_s)
        except OSError as exc:
            raise _lost(exc) from exc

    def _patiently(
        self, do: Callable[[B], int], data: B, exchange: Exchange, patience_s: float
    ) -> int:
        """Repeat an operation that timed out after its first tick."""
        waited_s = TICK_S
        while True:
            if waited_s > patience_s:
                raise TimedOut(f"no byte moved for {patience_s:g} s")
            exchange.moved(0)
            waited_s += TICK_S
            try:
                return do(data)
            except BlockingIOError:
                pass

    def _early_response(self, method: str, exchange: Exchange, cause: OSError) -> Response:
        """Return the response sent by a store before it closed the connection during an upload."""
        try:
            response = self._response(method, exchange, _EARLY_RESPONSE_S)
        except DeadlineExceeded:
            raise
        except OperationError:
            raise _lost(cause) from cause
        response.will_close = True
        return response


def _unconnected(exc: OSError, proxy: str | None) -> OperationError:
    """Return the error for a connection that could not be opened."""
    via = f", through the proxy {without_user(proxy)}" if proxy else ""
    if isinstance(exc, ssl.SSLCertVerificationError):
        return refusal(str(exc))
    hint = PROXY_HINT if proxy else ""
    if isinstance(exc, TimeoutError):
        return TimedOut(f"the connection timed out{via}", hint=hint)
    return ConnectionLost(f"{type(exc).__name__}: {exc}{via}", hint=hint)


def _lost(exc: OSError) -> ConnectionLost:
    """Return the error for an exception of a socket or of TLS."""
    return ConnectionLost(f"{type(exc).__name__}: {exc}")
