"""Location of objects."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from serverless_bench.base.errors import UsageError
from serverless_bench.job.endpoint import refuse_password
from serverless_bench.job.types import Specification, check_types


class StoreProtocol(StrEnum):
    """API of a store; also the scheme of its URLs."""

    S3 = "s3"
    """Amazon S3's API, on any store."""
    AZ = "az"
    """Azure Blob Storage's API."""
    GS = "gs"
    """Google Cloud Storage's native API."""


DEFAULT_CLIENTS: Final = {
    StoreProtocol.S3: "wire",
    StoreProtocol.AZ: "obstore",
    StoreProtocol.GS: "obstore",
}
"""Default client by protocol."""


class Addressing(StrEnum):
    """Place of the bucket's name in a request."""

    AUTO = "auto"
    """Host name on AWS, path elsewhere."""
    PATH = "path"
    VIRTUAL = "virtual"


_BUCKET: Final = re.compile(r"[a-zA-Z0-9._-]{1,255}")
"""Bucket names that S3 has ever allowed, with the pattern of botocore."""
EMBEDDED: Final = "seaweedfs"
"""Name in run records of the store that sbench starts itself."""
EMBEDDED_BUCKET: Final = "sbench"
"""The bucket that sbench creates in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target(metaclass=Specification):
    """Location of objects, and the library to access them.

    Parameters
    ----------
    client
        Library that transfers the bytes: wire, boto3, or another library of "Clients"
        in the documentation;
        empty for the default of the protocol.
    bucket
        Name of an existing bucket, or container on Azure.
    protocol
        API of the store: s3, az (Azure Blob Storage) or gs (Google Cloud Storage).
    prefix
        Prefix of new keys; existing keys in a key file already include it.
    endpoint_url
        ``http(s)://host[:port]`` of the store, without the bucket; empty to determine the cloud's
        endpoint.
    region
        Region of the bucket. Without an endpoint it is looked up, starting here; empty to use the
        AWS configuration, and for protocols other than s3.
    addressing
        Place of the bucket's name in a request: auto, path or virtual.
    store
        The store that sbench runs here itself; None for any other. ``embedded_target`` sets it, and
        the address, which is empty until the store runs.
    uses_kms
        Whether S3 asks KMS for a key at each request of an object, which costs; found out.
    client_option
        Options of the client library, as names and values; see "Clients" in the documentation.

    Examples
    --------
    >>> sbench.Target(bucket="mine", endpoint_url="https://store.example:9000").region
    'us-east-1'
    """

    client: str = ""
    bucket: str
    protocol: StoreProtocol = StoreProtocol.S3
    prefix: str = "sbench/"
    endpoint_url: str = ""
    region: str = "us-east-1"
    addressing: Addressing = Addressing.AUTO
    store: str | None = None
    uses_kms: bool = False
    client_option: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        check_types(self)
        refuse_password(self.endpoint_url)
        if not self.client:
            object.__setattr__(self, "client", DEFAULT_CLIENTS[self.protocol])
        if self.protocol is not StoreProtocol.S3:
            object.__setattr__(self, "region", "")
        # JSON has no tuples, and a target must be hashable.
        object.__setattr__(self, "client_option", tuple((n, v) for n, v in self.client_option))

    @property
    def bucket_name(self) -> str:
        """The bucket as users write it: with its protocol, unless that is S3."""
        return self.bucket if self.protocol is StoreProtocol.S3 else self._url

    @property
    def url(self) -> str:
        """Bucket and prefix, as in ``az://container/prefix/``."""
        return f"{self._url}/{self.prefix}"

    @property
    def _url(self) -> str:
        return f"{self.protocol}://{self.bucket}"


FILES: Final = Target(bucket="files", endpoint_url="http://127.0.0.1:9")
"""Target for arrays in files, which need no bucket: the discard port never answers."""


def check_bucket(name: str) -> None:
    """Raise an error for a name that no bucket has.

    Raises
    ------
    UsageError
        If S3 has never allowed such a name.
    """
    if not _BUCKET.fullmatch(name):
        raise UsageError(f"{name!r} is not a bucket name")


def parse_bucket(text: str) -> tuple[StoreProtocol, str, str]:
    """Return protocol, bucket and prefix of ``az://BUCKET[/PREFIX]``, or of a bucket's name.

    Raises
    ------
    UsageError
        If the protocol is unknown, or the bucket is missing.
    """
    scheme, is_url, rest = text.partition("://")
    if not is_url:
        return StoreProtocol.S3, text, ""
    if scheme not in set(StoreProtocol):
        schemes = ", ".join(f"{protocol}://" for protocol in StoreProtocol)
        raise UsageError(f"{text!r} is not a URL of a bucket", hint=f"use one of {schemes}")
    bucket, _, prefix = rest.partition("/")
    if not bucket:
        raise UsageError(f"{text!r} has no bucket", hint=f"{scheme}://BUCKET")
    return StoreProtocol(scheme), bucket, prefix
