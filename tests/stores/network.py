"""Servers between a client and a store: TLS, and a forward proxy."""

import asyncio
import datetime as dt  # noqa: TID251 - certificates want it
import ipaddress
import ssl
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from inspect import signature
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

    ``days`` of validity before and after now may be negative.
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
    path.write_bytes(_pem(key) + signed.public_bytes(serialization.Encoding.PEM))
    return path


def bundle_of(path: Path) -> Path:
    """Write the certificate without its key, because the AWS runtime accepts no other bundle."""
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
    a CONNECT line first. One thread moves all bytes: a TLS connection must not be read by
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
    # Send the bytes first that the other end has not taken yet.
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


class InspectingProxy:
    """A company's proxy: it opens TLS with certificates of its own authority.

    Hosts may have any name; requests are forwarded over plain HTTP to a server that stands for AWS.

    Parameters
    ----------
    directory
        Gets ``ca.pem``, which clients have to trust.
    stands_for
        URL of a server on this machine, by the beginning of a host's name; empty is the default.
    """

    def __init__(self, directory: Path, stands_for: Mapping[str, str]) -> None:
        self._directory, self._stands_for = directory, stands_for
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "The company")])
        ca = self._signed(self._name, self._key, x509.BasicConstraints(ca=True, path_length=0))
        self.ca = directory / "ca.pem"
        self.ca.write_bytes(ca.public_bytes(serialization.Encoding.PEM))
        self._hosts: dict[ssl.SSLContext, str] = {}
        self.asked: list[str] = []
        """Hosts whose certificate a client accepted, in the order of its connections."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.sni_callback = self._show
        self._inside = Forwarder(self._reach, context)
        self._outside = Forwarder(self._tunnel)

    def __enter__(self) -> Self:
        self._inside.__enter__()
        self._outside.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._outside.__exit__()
        self._inside.__exit__()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._outside.port}"

    async def _tunnel(self, accepted: Ends) -> Ends:
        try:
            head = await accepted[0].readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError as exc:
            raise ConnectionResetError from exc
        assert head.startswith(b"CONNECT "), head
        inside = await asyncio.open_connection("127.0.0.1", self._inside.port)
        accepted[1].write(b"HTTP/1.1 200 Connected\r\n\r\n")
        return inside

    def _show(self, line: ssl.SSLObject | ssl.SSLSocket, name: str | None, _: object) -> None:
        """Show a certificate for the requested name."""
        host = name or "nobody"
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host[:64])])
        whose = x509.SubjectAlternativeName([x509.DNSName(host)])
        leaf = self._signed(subject, key, x509.BasicConstraints(ca=False, path_length=None), whose)
        path = self._directory / f"{host}.pem"
        path.write_bytes(_pem(key) + leaf.public_bytes(serialization.Encoding.PEM))
        context = server_context(path)
        self._hosts[context] = host
        line.context = context

    async def _reach(self, accepted: Ends) -> Ends:
        host = self._hosts[accepted[1].get_extra_info("ssl_object").context]
        self.asked.append(host)
        name = max(filter(host.startswith, self._stands_for), key=len)
        parts = urlsplit(self._stands_for[name])
        return await asyncio.open_connection(parts.hostname, parts.port)

    def _signed(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        constraints: x509.BasicConstraints,
        *more: x509.ExtensionType,
    ) -> x509.Certificate:
        """Return a certificate that Python 3.13 also accepts, which requires key identifiers."""
        now = dt.datetime.now(dt.UTC)
        identifier = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
        issuer = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(days=1))
            .not_valid_after(now + dt.timedelta(days=1))
            .add_extension(constraints, critical=True)
            .add_extension(issuer, critical=False)
        )
        if constraints.ca:
            flags = dict.fromkeys(signature(x509.KeyUsage).parameters, False)
            usage = x509.KeyUsage(**{**flags, "key_cert_sign": True, "crl_sign": True})
            builder = builder.add_extension(identifier, critical=False)
            builder = builder.add_extension(usage, critical=True)
        for extension in more:
            builder = builder.add_extension(extension, critical=False)
        return builder.sign(self._key, hashes.SHA256())


def refusing_proxy() -> Forwarder:
    """Return a proxy that wants a name and a password."""

    async def connect(accepted: Ends) -> Ends:
        await accepted[0].readuntil(b"\r\n\r\n")
        accepted[1].write(
            b"HTTP/1.1 407 Proxy Authentication Required\r\nproxy-authenticate: Basic\r\n"
            b"content-length: 0\r\nconnection: close\r\n\r\n"
        )
        await accepted[1].drain()
        accepted[1].close()
        await accepted[1].wait_closed()
        raise ConnectionResetError

    return Forwarder(connect)


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
