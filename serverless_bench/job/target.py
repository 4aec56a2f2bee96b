"""Where objects live."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from serverless_bench.errors import UsageError
from serverless_bench.job.endpoint import refuse_password
from serverless_bench.job.types import check_types


class StoreProtocol(StrEnum):
    """What a store speaks; also the scheme of its URLs."""

    S3 = "s3"
    """Amazon S3's API, of whatever store."""
    AZ = "az"
    """Azure Blob Storage's API."""
    GS = "gs"
    """Google Cloud Storage's own API."""


DEFAULT_CLIENTS: Final = {
    StoreProtocol.S3: "wire",
    StoreProtocol.AZ: "obstore",
    StoreProtocol.GS: "obstore",
}
"""The client that moves the bytes if nobody names one."""


class Addressing(StrEnum):
    """Where a request names its bucket."""

    AUTO = "auto"
    """Host name on AWS, path elsewhere."""
    PATH = "path"
    VIRTUAL = "virtual"


EMBEDDED: Final = "seaweedfs"
"""The store that starts by itself, as runs name it."""
EMBEDDED_BUCKET: Final = "sbench"
"""The bucket that sbench makes in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where objects live, and which library reaches them.

    Parameters
    ----------
    client
        Library that moves the bytes: wire, boto3, or another one of docs/clients.md; empty for
        the default of the protocol.
    bucket
        Name of the bucket, or of the container on Azure, which must be there.
    protocol
        What the store speaks: s3, az (Azure Blob Storage) or gs (Google Cloud Storage).
    prefix
        Goes before every new key; existing keys in a key file already have theirs.
    endpoint_url
        ``http(s)://host[:port]`` of the store, without the bucket; empty for the cloud's own,
        which is found out.
    region
        Region of the bucket. Without an endpoint it is found out, and looked for here first; empty
        for the AWS configuration's, and where the protocol is not s3.
    addressing
        Where a request names its bucket: auto, path or virtual.
    store
        Which store sbench runs here itself; None for any other. ``embedded_target`` sets it, and
        the address, which is empty until the store runs.
    asks_kms
        Whether S3 asks KMS for a key at each request of an object, which costs; found out.
    client_option
        The client library's own options, as names and values; docs/clients.md has them.

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
    asks_kms: bool = False
    client_option: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        check_types(self)
        refuse_password(self.endpoint_url)
        if not self.client:
            object.__setattr__(self, "client", DEFAULT_CLIENTS[self.protocol])
        if self.protocol is not StoreProtocol.S3:
            object.__setattr__(self, "region", "")
        # JSON has no tuples, and a target is a key of dictionaries.
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
"""For arrays in files, which need no bucket: at the discard port nothing answers."""


def parse_bucket(text: str) -> tuple[StoreProtocol, str, str]:
    """Return protocol, bucket and prefix of ``az://BUCKET[/PREFIX]``, or of a name alone.

    Raises
    ------
    UsageError
        If nobody speaks the protocol, or no bucket is named.
    """
    scheme, is_url, rest = text.partition("://")
    if not is_url:
        return StoreProtocol.S3, text, ""
    if scheme not in set(StoreProtocol):
        known = ", ".join(f"{protocol}://" for protocol in StoreProtocol)
        raise UsageError(f"{text!r} is no URL of a bucket", hint=f"known: {known}")
    bucket, _, prefix = rest.partition("/")
    if not bucket:
        raise UsageError(f"{text!r} names no bucket", hint=f"{scheme}://BUCKET")
    return StoreProtocol(scheme), bucket, prefix
