"""A certificate that proves to the parts of one store that they belong together."""

from datetime import UTC, datetime, timedelta  # noqa: TID251 - what x509 takes
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from serverless_bench.clock import wall_ns
from serverless_bench.units import NS_PER_S

_DAYS: Final = 3650
"""For as long as a store may run; its key is gone with it."""


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
