"""One HTTP/1.1 connection of the wire client, and the loops that move bytes over it.

The socket stays blocking, with SO_RCVTIMEO and SO_SNDTIMEO at ``TICK_S``: the kernel
then returns what it has at least twenty times a second. So progress is known while a
slow block is under way, a stalled transfer is noticed, and a function can stop at its
deadline, without a poll before every call. Bodies are read below ``http.client``'s own
reader, straight into a buffer that is used again.
"""

import os
import select
import socket
import ssl
import struct
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from serverless_bench.clients.base import Exchange, Sink, Source
from serverless_bench.clients.wire_tls import TlsStream
from serverless_bench.errors import BadResponse, ConnectionLost, TimedOut

TICK_S: Final = 0.05
_CONNECT_S: Final = 10.0
_EARLY_RESPONSE_S: Final = 1.0


@contextmanager
def translated() -> Iterator[None]:
    """Turn what sockets, TLS and HTTP raise into ``OperationError``."""
    try:
        yield
    except BlockingIOError as exc:
        raise TimedOut("the response stopped in the middle") from exc
    except TimeoutError as exc:
        raise TimedOut("no connection in time") from exc
    except OSError as exc:
        raise ConnectionLost(f"{type(exc).__name__}: {exc}") from exc
    except HTTPException as exc:
        raise BadResponse(f"{type(exc).__name__}: {exc}"[:200]) from exc


class WireConnection:
    """A connection, its TLS session and its buffer.

    Parameters
    ----------
    url
        Scheme, host and port to talk to.
    proxy
        URL of the proxy that stands in between; None for a direct connection.
    block_bytes
        Size of the buffer.
    timeout_s
        A wait without any byte ends after this long.

    Raises
    ------
    OperationError
        If no connection comes about.
    """

    def __init__(
        self, url: SplitResult, *, proxy: str | None, block_bytes: int, timeout_s: float
    ) -> None:
        self._timeout_s = timeout_s
        self._buffer = memoryview(bytearray(block_bytes))
        self.absolute = bool(proxy) and url.scheme == "http"
        """Whether requests have to name the whole URL, as a proxy wants it."""
        self.proxy_headers: Mapping[str, str] = {}
        with translated():
            self._http = _http_connection(url, proxy, min(timeout_s, _CONNECT_S))
            if proxy:
                self._go_through(proxy, url)
            self._http.connect()
            self._socket: socket.socket = self._http.sock
            self._stream: socket.socket | TlsStream = self._socket
            try:
                if url.scheme == "https":
                    self._http.sock = self._stream = TlsStream(
                        self._socket, _tls_context(), url.hostname or "", block_bytes=block_bytes
                    )
                self._socket.settimeout(None)
                self._set_timeout(socket.SO_SNDTIMEO, TICK_S)
                self._set_timeout(socket.SO_RCVTIMEO, timeout_s)
                peer = self._socket.getpeername()
            except OSError:
                self.close()
                raise
        self.remote = f"{peer[0]}:{peer[1]}" + (" (proxy)" if proxy else "")
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)
        self._whole = False
        """Whether the last request went out to its end before the response came."""

    def is_stale(self) -> bool:
        """Return whether the store closed the idle connection, or sent something on it."""
        return bool(self._poll.poll(0))

    def is_reusable(self, response: HTTPResponse) -> bool:
        """Tell whether nothing is left on the line of ``response`` and of its request."""
        return self._whole and response.isclosed() and not response.will_close

    def close(self) -> None:
        """Close the socket."""
        self._http.close()
        self._socket.close()

    def send_request(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: Source | bytes,
        exchange: Exchange,
    ) -> HTTPResponse:
        """Send one request and return the head of its response.

        Parameters
        ----------
        method, path, headers
            Of the request, ready to send.
        body
            An object's bytes, which are counted, or others, which are not.
        exchange
            Told of everything that happens.

        Raises
        ------
        OperationError
            If the connection breaks, or nothing moves for too long.
        """
        self._whole = False
        with translated():
            self._http.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in headers.items():
                self._http.putheader(name, value)
            self._http.endheaders(body if isinstance(body, bytes) else None)
            try:
                if not isinstance(body, bytes):
                    self._send(body, exchange)
                exchange.sent()
                self._await(exchange)
            except (BrokenPipeError, ConnectionResetError) as exc:
                return self._early_response(exc)
            response = self._http.getresponse()
        self._whole = True
        return response

    def receive(self, response: HTTPResponse, sink: Sink, exchange: Exchange) -> None:
        """Move the body of ``response`` into ``sink``.

        Raises
        ------
        ConnectionLost
            If the connection ends before the body does.
        """
        if response.length is None:
            raise BadResponse("an object came without Content-Length")
        self._set_timeout(socket.SO_RCVTIMEO, TICK_S)
        with translated():
            size = response.length
            offset, filled = 0, self._lead(response)
            if filled:
                exchange.first_byte()
                exchange.moved(filled)
            while offset < size:
                want = min(len(self._buffer), size - offset)
                while filled < want:
                    count = self._recv(self._buffer[filled:want], exchange)
                    if offset == filled == 0:
                        exchange.first_byte()
                    exchange.moved(count)
                    filled += count
                sink.write_at(offset, self._buffer[:want])
                offset, filled = offset + want, 0
        # Before the response is closed: with it goes the socket, if the store wants that.
        self._set_timeout(socket.SO_RCVTIMEO, self._timeout_s)
        response.close()

    def _send(self, source: Source, exchange: Exchange) -> None:
        for offset in range(0, source.size, len(self._buffer)):
            block = self._buffer[: source.size - offset]
            source.readinto_at(offset, block)
            while block:
                count = self._ticking(self._stream.send, block, exchange)
                exchange.moved(count)
                block = block[count:]

    def _recv(self, buffer: memoryview, exchange: Exchange) -> int:
        count = self._ticking(self._stream.recv_into, buffer, exchange)
        if not count:
            raise ConnectionLost("the connection ended before the object did")
        return count

    def _ticking(
        self, do: Callable[[memoryview], int], view: memoryview, exchange: Exchange
    ) -> int:
        waited_s = 0.0
        while True:
            try:
                return do(view)
            except BlockingIOError:
                waited_s = self._tick(waited_s, exchange)

    def _await(self, exchange: Exchange) -> None:
        waited_s = 0.0
        while not self._poll.poll(TICK_S * 1000):
            waited_s = self._tick(waited_s, exchange)

    def _tick(self, waited_s: float, exchange: Exchange) -> float:
        if waited_s > self._timeout_s:
            raise TimedOut(f"no byte moved for {self._timeout_s:g} s")
        exchange.moved(0)
        return waited_s + TICK_S

    def _lead(self, response: HTTPResponse) -> int:
        """Take what ``http.client`` read of the body together with the head."""
        try:
            waiting = response.fp.peek()
        except BlockingIOError:
            return 0
        lead = response.fp.read1(len(waiting)) if waiting else b""
        self._buffer[: len(lead)] = lead
        return len(lead)

    def _early_response(self, cause: OSError) -> HTTPResponse:
        """Return the response that a store gave before it closed on an upload."""
        self._set_timeout(socket.SO_RCVTIMEO, _EARLY_RESPONSE_S)
        try:
            return self._http.getresponse()
        except (OSError, HTTPException):
            raise cause from None

    def _set_timeout(self, option: int, seconds: float) -> None:
        whole, fraction = divmod(round(seconds * 1e6), 1_000_000)
        self._socket.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", whole, fraction))

    def _go_through(self, proxy: str, url: SplitResult) -> None:
        parts = urlsplit(proxy)
        headers = {}
        if parts.username is not None:
            user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            headers["Proxy-Authorization"] = "Basic " + b64encode(user.encode()).decode()
        if url.scheme == "https":
            self._http.set_tunnel(url.hostname or "", url.port or 443, headers)
        else:
            self.proxy_headers = headers


def _http_connection(url: SplitResult, proxy: str | None, timeout_s: float) -> HTTPConnection:
    via = urlsplit(proxy) if proxy else url
    if via.scheme not in {"http", "https"} or (proxy and via.scheme != "http"):
        raise ConnectionLost(f"cannot talk {via.scheme!r} to {via.hostname}")
    port = via.port or (443 if via.scheme == "https" else 80)
    # Plain also for https: TLS comes on top once the connection, or the tunnel, stands.
    return HTTPConnection(via.hostname or "", port, timeout=timeout_s)


@cache
def _tls_context() -> ssl.SSLContext:
    # The same variable that the AWS SDKs read; OpenSSL itself honours SSL_CERT_FILE.
    return ssl.create_default_context(cafile=os.environ.get("AWS_CA_BUNDLE") or None)
