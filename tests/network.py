"""Things that stand between a client and a store: TLS, and a forward proxy."""

import datetime as dt  # noqa: TID251 - certificates want it
import ipaddress
import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def certificate(directory: Path) -> Path:
    """Write a key and a certificate of its own for 127.0.0.1 and localhost into one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
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


class Forwarder:
    """Accepts connections and joins each to another one, byte for byte.

    ``connect`` takes the accepted socket and returns both ends to join: it may speak TLS
    on one of them, or read a CONNECT line from it.
    """

    def __init__(
        self, connect: Callable[[socket.socket], tuple[socket.socket, socket.socket]]
    ) -> None:
        self._connect = connect
        self.accepted = 0

    def __enter__(self) -> Self:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = int(self._listener.getsockname()[1])
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._spawn(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        for held in (self._listener, *self._sockets):
            with suppress(OSError):
                held.shutdown(socket.SHUT_RDWR)
            held.close()
        for thread in self._threads:
            thread.join()

    def _spawn(self, target: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=target, args=args)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                accepted, _ = self._listener.accept()
            except OSError:
                return
            self.accepted += 1
            self._spawn(self._join, accepted)

    def _join(self, accepted: socket.socket) -> None:
        try:
            ours, theirs = self._connect(accepted)
        except OSError:
            accepted.close()
            return
        self._sockets += [ours, theirs]
        self._spawn(self._pump, theirs, ours)
        self._pump(ours, theirs)

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(1 << 16):
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


def tls_in_front_of(endpoint_url: str, context: ssl.SSLContext) -> Forwarder:
    """Return a forwarder that speaks TLS to clients and plain HTTP to a store."""
    parts = urlsplit(endpoint_url)

    def connect(accepted: socket.socket) -> tuple[socket.socket, socket.socket]:
        ours = context.wrap_socket(accepted, server_side=True)
        return ours, socket.create_connection((parts.hostname, parts.port))

    return Forwarder(connect)


def forward_proxy() -> Forwarder:
    """Return an HTTP proxy: CONNECT for https, whole URLs for http."""

    def connect(accepted: socket.socket) -> tuple[socket.socket, socket.socket]:
        head = b""
        while b"\r\n\r\n" not in head:
            piece = accepted.recv(1 << 16)
            if not piece:
                raise ConnectionResetError
            head += piece
        method, url, version = head.split(b"\r\n", 1)[0].decode().split(" ")
        if method == "CONNECT":
            host, _, port = url.partition(":")
            theirs = socket.create_connection((host, int(port)))
            accepted.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
            return accepted, theirs
        parts = urlsplit(url)
        theirs = socket.create_connection((parts.hostname, parts.port or 80))
        path = url.split(parts.netloc, 1)[1]
        theirs.sendall(f"{method} {path} {version}\r\n".encode() + head.split(b"\r\n", 1)[1])
        return accepted, theirs

    return Forwarder(connect)
