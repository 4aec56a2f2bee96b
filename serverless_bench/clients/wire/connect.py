"""How a connection of the wire client comes about: TCP, a proxy's tunnel, TLS.

Who answers may send a byte now and then for hours. Each receive takes a tick at most, so that a
number of them is a time, and the caller's deadline is minded.
"""

import socket
import ssl
import struct
from base64 import b64encode
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from serverless_bench.clients.base import Exchange
from serverless_bench.clients.environment import ca_bundle
from serverless_bench.clients.wire.response import END_OF_HEAD, Response
from serverless_bench.clients.wire.tls import TlsStream
from serverless_bench.errors import ConnectionLost
from serverless_bench.units import KIB

TICK_S: Final = 0.05
"""A receive or a send returns after this long, with what there is."""


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
        raise ConnectionLost(f"cannot talk {via.scheme!r} to {via.hostname}")
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
        raise ConnectionLost(f"the proxy does not connect to {there}: status {status}")


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
    context, host = _tls_context(ca_bundle()), url.hostname or ""
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
