"""Connection setup of the wire client: TCP, the tunnel of a proxy, and TLS.

A slow peer may send a byte at long intervals for hours. Each receive therefore takes at most a
tick, so that counting receives limits the time, and the caller can check its deadline.

TLS is implemented here in blocks of up to a megabyte. ``ssl.SSLSocket`` passes records of 16 KiB to
the kernel, with one call per record to send and two to receive: 65,000 to 130,000 system calls per
GiB, each of which releases the interpreter lock. Here OpenSSL works on memory, and the socket moves
full blocks. On one connection this reduced the cost of sending from 0.85 to 0.67 CPU-s/GiB; on
four connections, the cost of receiving and comparing from 1.10 to 0.93
(docs/decisions/0004-thin-client.md).
"""

import socket
import ssl
import struct
from base64 import b64encode
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, cast
from urllib.parse import SplitResult, unquote, urlsplit

from serverless_bench.base.errors import ConnectionLost
from serverless_bench.base.units import KIB
from serverless_bench.clients.environment import CA_HINT, PROXY_HINT, ca_bundle
from serverless_bench.clients.wire.response import END_OF_HEAD, Response

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

TICK_S: Final = 0.05
"""Timeout of a single receive or send, which returns the bytes available by then."""
_SEALED_AT_ONCE: Final = 7 * 16 * KIB
"""Plaintext bytes encrypted at a time: seven records. This size had the lowest cost of all that
were measured; the reason is not known for certain (docs/decisions/0004)."""
_FRUITLESS: Final = 64
"""Maximum number of receives without plaintext; a record arrives in twelve packets."""


class Opening(Protocol):
    """The part of an exchange that takes place while a connection opens."""

    def connected(self, remote: str, *, reused: bool) -> None:
        """Report the connection, as in ``Exchange``."""

    def moved(self, count: int) -> None:
        """Report that nothing arrived within a tick; raises as in ``Exchange``."""


class TlsStream:
    """A TLS connection over a socket, with the two socket methods that a connection uses.

    It is ready once ``shake_hands`` has returned True.

    Parameters
    ----------
    raw
        A connected socket; the caller closes it.
    context, host
        TLS context and host name for checking the certificate.
    block_bytes
        Size of the blocks in which ciphertext is received.
    """

    def __init__(
        self, raw: socket.socket, context: ssl.SSLContext, host: str, *, block_bytes: int
    ) -> None:
        self._raw = raw
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self._room = memoryview(bytearray(block_bytes))
        self._sealed = memoryview(b"")
        """Ciphertext that the socket has not accepted yet."""
        self._plain = 0
        """Bytes of plaintext in ``_sealed`` that ``send`` has not reported yet."""

    def shake_hands(self) -> bool:
        """Continue the handshake by at most one receive; return whether it is complete.

        Raises
        ------
        OSError
            If the certificate is not trusted, or the peer does not speak TLS (``ssl.SSLError``).
        """
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            with suppress(BlockingIOError):
                self._receive()
            return False
        self._flush()
        return True

    def send(self, data: bytes | memoryview) -> int:
        """Encrypt ``data`` and send a part of it; call again with the rest.

        Works like ``socket.send``, or ``SSLSocket.send`` after ``SSLWantWriteError``: accepted data
        must be passed again at the front until it is reported.

        Returns
        -------
        int
            Bytes of plaintext whose ciphertext the socket has accepted.
        """
        if not self._sealed:
            self._plain = self._tls.write(data[:_SEALED_AT_ONCE])
            self._sealed = memoryview(self._outgoing.read())
        before = len(self._sealed)
        self._sealed = self._sealed[self._raw.send(self._sealed) :]
        # Proportionally, with the remainder reported at the end.
        sent = self._plain * (before - len(self._sealed)) // before
        self._plain -= sent
        return sent

    def recv_into(self, buffer: "WriteableBuffer") -> int:
        """Fill ``buffer`` with the available data, waiting for some; return 0 at the end."""
        view = memoryview(buffer).cast("B")
        filled = fruitless = 0
        while filled < len(view):
            # This check is cheaper than an exception; a small object would cause two of them.
            if not (self._incoming.pending or self._tls.pending()):
                if filled:
                    break
                self._receive()
            try:
                # With a buffer argument, read() returns the number of bytes filled.
                count = cast("int", self._tls.read(len(view) - filled, view[filled:]))
            except ssl.SSLWantReadError:
                # Less than a record, or no application data, has arrived. Return to the caller from
                # time to time, so that it can check the time limit.
                fruitless += 1
                if fruitless == _FRUITLESS:
                    raise BlockingIOError from None
                continue
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                break
            if not count:
                break
            filled += count
        return filled

    def _receive(self) -> None:
        count = self._raw.recv_into(self._room)
        if count:
            self._incoming.write(self._room[:count])
        else:
            self._incoming.write_eof()

    def _flush(self) -> None:
        if self._outgoing.pending:
            self._raw.sendall(self._outgoing.read())


def connect(url: SplitResult, proxy: str | None, timeout_s: float) -> socket.socket:
    """Return a socket connected to a server, or to the proxy in front of it.

    Raises
    ------
    ConnectionLost
        If the address is invalid.
    OSError
        If the connection fails.
    """
    via = urlsplit(proxy) if proxy else url
    if via.scheme not in {"http", "https"} or (proxy and via.scheme != "http"):
        raise ConnectionLost(
            f"{via.scheme!r} is not supported for {via.hostname}", hint=PROXY_HINT if proxy else ""
        )
    try:
        port = via.port or (443 if via.scheme == "https" else 80)
    except ValueError:
        raise ConnectionLost(f"{via.netloc} has an invalid port") from None
    line = socket.create_connection((via.hostname or "", port), timeout_s)
    line.settimeout(None)
    set_options(line)
    return line


def set_options(line: socket.socket) -> None:
    """Send at once, and let no send or receive take longer than a tick."""
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    tick = struct.pack("ll", 0, round(TICK_S * 1e6))
    for option in (socket.SO_SNDTIMEO, socket.SO_RCVTIMEO):
        line.setsockopt(socket.SOL_SOCKET, option, tick)


def open_tunnel(
    line: socket.socket, url: SplitResult, lines: str, timeout_s: float, exchange: Opening
) -> None:
    """Let the proxy connect to the server (RFC 9110, section 9.3.6); ``lines`` are headers for it.

    Raises
    ------
    ConnectionLost
        If the proxy refuses.
    OSError
        If the proxy does not respond.
    """
    destination = f"{url.hostname}:{url.port or 443}"
    head = "\r\n".join([f"CONNECT {destination} HTTP/1.1", f"host: {destination}", lines, ""])
    line.sendall(head.encode())
    data = b""
    for _ in ticks(timeout_s):
        with suppress(BlockingIOError):
            data += (received := line.recv(4 * KIB))
            if not received or END_OF_HEAD in data:
                break
        exchange.moved(0)
    else:
        raise TimeoutError
    status = Response(data.partition(END_OF_HEAD)[0], "CONNECT").status
    if not 200 <= status < 300:
        raise ConnectionLost(
            f"the proxy does not connect to {destination}: status {status}", hint=PROXY_HINT
        )


def secure(
    line: socket.socket, url: SplitResult, block_bytes: int, timeout_s: float, exchange: Opening
) -> TlsStream:
    """Return a TLS connection over a socket.

    Raises
    ------
    OSError
        If the handshake is not complete in time, or the certificate is not trusted
        (``ssl.SSLError``).
    """
    bundle, host = ca_bundle(), url.hostname or ""
    try:
        context = _tls_context(bundle)
    except OSError as exc:
        raise ConnectionLost(f"cannot read AWS_CA_BUNDLE, {bundle}: {exc}", hint=CA_HINT) from exc
    stream = TlsStream(line, context, host, block_bytes=block_bytes)
    for _ in ticks(timeout_s):
        if stream.shake_hands():
            return stream
        exchange.moved(0)
    raise TimeoutError


def authorization(proxy: str) -> str:
    """Return the header for a proxy with a user name and a password, as a line."""
    parts = urlsplit(proxy)
    if parts.username is None:
        return ""
    user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return f"proxy-authorization: Basic {b64encode(user.encode()).decode()}\r\n"


def ticks(timeout_s: float) -> range:
    """Return a range with an entry per tick of a time limit."""
    return range(max(round(timeout_s / TICK_S), 1))


@cache
def _tls_context(cafile: Path | None) -> ssl.SSLContext:
    # OpenSSL uses SSL_CERT_FILE by itself.
    return ssl.create_default_context(cafile=cafile)
