"""How a connection of the wire client comes about: TCP, a proxy's tunnel, TLS.

Who answers may send a byte now and then for hours. Each receive takes a tick at most, so that a
number of them is a time, and the caller's deadline is minded.

TLS is ours for a megabyte at a time. ``ssl.SSLSocket`` hands the kernel one record of 16 KiB per
call, and reads two calls per record: 65,000 to 130,000 system calls per GiB, each of which gives
the interpreter lock away. Here OpenSSL works on memory, and the socket moves whole blocks. On one
connection that cost 0.67 instead of 0.85 core-s/GiB to send, on four 0.93 instead of 1.10 to
receive and compare (docs/decisions/0004-tls-in-memory.md).
"""

import socket
import ssl
import struct
from base64 import b64encode
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import SplitResult, unquote, urlsplit

from serverless_bench.clients.base import Exchange
from serverless_bench.clients.environment import CA_HINT, PROXY_HINT, ca_bundle
from serverless_bench.clients.wire.response import END_OF_HEAD, Response
from serverless_bench.errors import ConnectionLost
from serverless_bench.units import KIB

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

TICK_S: Final = 0.05
"""A receive or a send returns after this long, with what there is."""
_SEALED_AT_ONCE: Final = 7 * 16 * KIB
"""Bytes of plaintext encrypted at a time: seven records. Of all sizes that were tried it costs the
least; why is not known for certain (docs/decisions/0004)."""
_FRUITLESS: Final = 64
"""Receives that may end without a byte of plaintext; a record comes in twelve packets."""


class TlsStream:
    """A TLS connection over a socket, with the two methods of it that a connection calls.

    It is ready once ``shake_hands`` has returned True.

    Parameters
    ----------
    raw
        A connected socket; the caller closes it.
    context, host
        What the certificate is checked with and against.
    block_bytes
        Ciphertext received at a time.
    """

    def __init__(
        self, raw: socket.socket, context: ssl.SSLContext, host: str, *, block_bytes: int
    ) -> None:
        self._raw = raw
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self._room = memoryview(bytearray(block_bytes))
        self._sealed = memoryview(b"")
        """Ciphertext that the socket has not taken yet."""
        self._plain = 0
        """Bytes of plaintext in there that ``send`` has not reported yet."""

    def shake_hands(self) -> bool:
        """Go on with the handshake as far as one receive leads; return whether it is done.

        Raises
        ------
        OSError
            If the certificate is not trusted, or the other end does not speak TLS
            (``ssl.SSLError``).
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
        """Encrypt ``data`` and send some of it; call again with the rest.

        As ``socket.send``, and as ``SSLSocket.send`` after ``SSLWantWriteError``: what was
        taken once must come again at the front until it is reported.

        Returns
        -------
        int
            Bytes of plaintext whose ciphertext the socket has taken.
        """
        if not self._sealed:
            self._plain = self._tls.write(data[:_SEALED_AT_ONCE])
            self._sealed = memoryview(self._outgoing.read())
        before = len(self._sealed)
        self._sealed = self._sealed[self._raw.send(self._sealed) :]
        # In proportion, and whatever is left with the last of it.
        sent = self._plain * (before - len(self._sealed)) // before
        self._plain -= sent
        return sent

    def recv_into(self, buffer: "WriteableBuffer") -> int:
        """Fill ``buffer`` with what has arrived, waiting for some; 0 at the end."""
        view = memoryview(buffer).cast("B")
        filled = fruitless = 0
        while filled < len(view):
            # An exception costs more than to ask, and a small object would meet two.
            if not (self._incoming.pending or self._tls.pending()):
                if filled:
                    break
                self._receive()
            try:
                # With a buffer to fill, read() returns how much it filled.
                count = cast("int", self._tls.read(len(view) - filled, view[filled:]))
            except ssl.SSLWantReadError:
                # What came was less than a record, or nothing for us. The caller, who minds the
                # time, is told now and then.
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
    """Return a socket that leads to a server, or to the proxy in front of it.

    Raises
    ------
    ConnectionLost
        If there is no such place.
    OSError
        If nobody answers there.
    """
    via = urlsplit(proxy) if proxy else url
    if via.scheme not in {"http", "https"} or (proxy and via.scheme != "http"):
        raise ConnectionLost(
            f"cannot talk {via.scheme!r} to {via.hostname}", hint=PROXY_HINT if proxy else ""
        )
    try:
        port = via.port or (443 if via.scheme == "https" else 80)
    except ValueError:
        raise ConnectionLost(f"there is no such port: {via.netloc}") from None
    line = socket.create_connection((via.hostname or "", port), timeout_s)
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    line.settimeout(None)
    tick = struct.pack("ll", 0, round(TICK_S * 1e6))
    for option in (socket.SO_SNDTIMEO, socket.SO_RCVTIMEO):
        line.setsockopt(socket.SOL_SOCKET, option, tick)
    return line


def open_tunnel(
    line: socket.socket, url: SplitResult, lines: str, timeout_s: float, exchange: Exchange
) -> None:
    """Have the proxy connect us (RFC 9110, section 9.3.6); ``lines`` are headers for it.

    Raises
    ------
    ConnectionLost
        If it does not.
    OSError
        If it does not answer.
    """
    there = f"{url.hostname}:{url.port or 443}"
    head = "\r\n".join([f"CONNECT {there} HTTP/1.1", f"host: {there}", lines, ""])
    line.sendall(head.encode())
    data = b""
    for _ in _ticks(timeout_s):
        with suppress(BlockingIOError):
            data += (more := line.recv(4 * KIB))
            if not more or END_OF_HEAD in data:
                break
        exchange.moved(0)
    else:
        raise TimeoutError
    status = Response(data.partition(END_OF_HEAD)[0], "CONNECT").status
    if not 200 <= status < 300:
        raise ConnectionLost(
            f"the proxy does not connect to {there}: status {status}", hint=PROXY_HINT
        )


def secure(
    line: socket.socket, url: SplitResult, block_bytes: int, timeout_s: float, exchange: Exchange
) -> TlsStream:
    """Return the TLS connection over a socket.

    Raises
    ------
    OSError
        If the handshake does not end in time, or the certificate is not trusted
        (``ssl.SSLError``).
    """
    bundle, host = ca_bundle(), url.hostname or ""
    try:
        context = _tls_context(bundle)
    except OSError as exc:
        raise ConnectionLost(f"cannot read AWS_CA_BUNDLE, {bundle}: {exc}", hint=CA_HINT) from exc
    stream = TlsStream(line, context, host, block_bytes=block_bytes)
    for _ in _ticks(timeout_s):
        if stream.shake_hands():
            return stream
        exchange.moved(0)
    raise TimeoutError


def authorization(proxy: str) -> str:
    """Return the header that a proxy with a name and a password wants, as a line."""
    parts = urlsplit(proxy)
    if parts.username is None:
        return ""
    user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return f"proxy-authorization: Basic {b64encode(user.encode()).decode()}\r\n"


def _ticks(timeout_s: float) -> range:
    return range(max(round(timeout_s / TICK_S), 1))


@cache
def _tls_context(cafile: Path | None) -> ssl.SSLContext:
    # OpenSSL itself honours SSL_CERT_FILE.
    return ssl.create_default_context(cafile=cafile)
