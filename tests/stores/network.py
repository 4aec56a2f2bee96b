"""Things that stand between a client and a store: TLS, and a forward proxy."""

import asyncio
import datetime as dt  # noqa: TID251 - certificates want it
import ipaddress
import ssl
import threading
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Self, TypeVar
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

T = TypeVar("T")


def certificate(
    directory: Path, *names: str, address: str = "127.0.0.1", since_days: int = 1, days: int = 1
) -> Path:
    """Write a key and a certificate of its own into one file; for localhost without ``names``.

    It is valid since so many days and for so many more, which may be less than none.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    whose: list[x509.GeneralName] = [x509.DNSName(each) for each in names or ("localhost",)]
    whose.append(x509.IPAddress(ipaddress.ip_address(address)))
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=since_days))
        .not_valid_after(now + dt.timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName(whose), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = directory / "certificate.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + signed.public_bytes(serialization.Encoding.PEM)
    )
    return path


def bundle_of(path: Path) -> Path:
    """Write the certificate without its key: the AWS runtime takes no bundle with more in it."""
    bundle = path.with_name("bundle.pem")
    bundle.write_text(path.read_text().partition("-----END PRIVATE KEY-----\n")[2])
    return bundle


def server_context(path: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context


Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Forwarder:
    """Accepts connections and joins each to another one, byte for byte.

    ``connect`` takes an accepted connection and returns the one to join it to: it may read
    a CONNECT line first. One thread moves all bytes: a TLS connection is not to be read by
    one thread while another one writes.
    """

    def __init__(
        self, connect: Callable[[Ends], Awaitable[Ends]], tls: ssl.SSLContext | None = None
    ) -> None:
        self._connect = connect
        self._tls = tls
        self.accepted = 0

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._joins: set[asyncio.Task[None]] = set()
        self._server = self._do(asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=self._tls))
        self.port = int(self._server.sockets[0].getsockname()[1])
        return self

    def __exit__(self, *_: object) -> None:
        self._do(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _do(self, what: Coroutine[None, None, T]) -> T:
        return asyncio.run_coroutine_threadsafe(what, self._loop).result()

    async def _close(self) -> None:
        self._server.close()
        for join in self._joins:
            join.cancel()
        await asyncio.gather(*self._joins, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        join = self._loop.create_task(self._join((reader, writer)))
        self._joins.add(join)
        join.add_done_callback(self._joins.discard)

    async def _join(self, ours: Ends) -> None:
        writers = [ours[1]]
        with suppress(OSError):
            try:
                theirs = await self._connect(ours)
                writers.append(theirs[1])
                await asyncio.gather(_pump(ours[0], theirs[1]), _pump(theirs[0], ours[1]))
            finally:
                for writer in writers:
                    writer.transport.abort()


class _OverError(OSError):
    """One end has closed."""


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while data := await source.read(1 << 16):
        sink.write(data)
        await sink.drain()
    # What the other end has not taken yet goes first.
    sink.close()
    await sink.wait_closed()
    raise _OverError


def tls_in_front_of(endpoint_url: str, context: ssl.SSLContext) -> Forwarder:
    """Return a forwarder that speaks TLS to clients and plain HTTP to a store."""
    parts = urlsplit(endpoint_url)

    async def connect(_: Ends) -> Ends:
        return await asyncio.open_connection(parts.hostname, parts.port)

    return Forwarder(connect, context)


def forward_proxy() -> Forwarder:
    """Return an HTTP proxy: CONNECT for https, whole URLs for http."""

    async def connect(accepted: Ends) -> Ends:
        reader, writer = accepted
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError as exc:
            raise ConnectionResetError from exc
        method, url, version = head.split(b"\r\n", 1)[0].decode().split(" ")
        if method == "CONNECT":
            host, _, port = url.partition(":")
            theirs = await asyncio.open_connection(host, int(port))
            writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
            return theirs
        parts = urlsplit(url)
        theirs = await asyncio.open_connection(parts.hostname, parts.port or 80)
        path = url.split(parts.netloc, 1)[1]
        theirs[1].write(f"{method} {path} {version}\r\n".encode() + head.split(b"\r\n", 1)[1])
        return theirs

    return Forwarder(connect)
