"""Location of objects, and their transfer: connections, parts, retries, source of the size."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final

from serverless_bench.base.errors import UsageError
from serverless_bench.base.units import GIB, KIB, MIB, format_size
from serverless_bench.job.endpoint import refuse_password
from serverless_bench.job.operations import OperationKind
from serverless_bench.job.types import Limits, Specification, check_types, wrong

MAX_PARTS: Final = 10_000
MIN_PART_BYTES: Final = 5 * MIB
MAX_PART_BYTES: Final = 5 * GIB
"""Amazon S3 user guide, "Amazon S3 multipart upload limits"."""
DEFAULT_PART_BYTES: Final = 64 * MIB
"""1,800 functions at 95 MB/s make 2,550 UploadPart/s at 64 MiB, below the 3,500 PUT/s of one S3
partition; at boto3's 8 MiB it would be 20,400."""


class Verify(StrEnum):
    """Fraction of the bytes read that is compared with the bytes written."""

    FULL = "full"
    SAMPLE = "sample"
    """One block in sixteen, and the first and the last."""
    NONE = "none"


class Stat(StrEnum):
    """Source of the size of an object before it is read."""

    KEY = "key"
    """The size declared in the key: no request."""
    EACH = "each"
    """A HEAD before each get, as in libraries that split reads into ranges."""
    BEFORE = "before"
    """All HEADs before the first get, and none after (sai3-bench's pre-stat)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer(metaclass=Specification):
    """Parts, retries and verification of an object's transfer.

    Parameters
    ----------
    connections
        Requests of one operation in flight at the same time.
    part_size
        Size of an upload's parts and of a download's ranges; None to transfer objects in one piece.
    block_size
        Bytes generated, transferred and compared at a time.
    verify
        Amount of the bytes read to check against the bytes written: full, sample or none.
    retries
        Further attempts after a transient failure; 0 for none.
    timeout
        An attempt ends when no byte has moved for this long.
    min_split_size
        Objects below this size are read in one piece, regardless of ``part_size``.
    stat
        Source of the size of an object before it is read: key, each or before.

    Examples
    --------
    >>> transfer = sbench.Transfer(part_size=8 << 20, connections=4)
    >>> transfer.verify.value, transfer.retries
    ('full', 4)
    """

    # Per operation: at most a connection for each part.
    connections: Annotated[int, Limits(1, MAX_PARTS)] = 1
    part_size: int | None = None
    block_size: int = MIB
    verify: Verify = Verify.FULL
    retries: Annotated[int, Limits(0)] = 4
    timeout: Annotated[float, Limits(positive=True)] = 60.0
    min_split_size: Annotated[int | None, Limits(1)] = None
    stat: Stat = Stat.KEY

    def __post_init__(self) -> None:
        check_types(self)
        if self.block_size < KIB:
            raise wrong("block_size", f"must be at least 1 KiB, got {self.block_size} bytes")
        if self.part_size is not None and not (KIB <= self.part_size <= MAX_PART_BYTES):
            raise wrong(
                "part_size",
                f"must be between 1 KiB and 5 GiB, got {format_size(self.part_size)}",
                hint="S3 accepts parts of 5 MiB to 5 GiB; ranges of a read may be smaller",
            )

    def part_length(self, kind: OperationKind, size: int) -> int | None:
        """Return the size of a part or range of an object, or None for a single request.

        Several connections need parts, and so does a put of more than 5 GiB (Amazon S3 user guide,
        "Uploading objects"): in both cases a missing part size is chosen here.
        """
        if kind is OperationKind.GET and size < (self.min_split_size or 0):
            return None
        chosen = self.part_size
        if chosen is None and self.connections > 1:
            share = -(-size // self.connections)
            chosen = max(MIN_PART_BYTES, min(DEFAULT_PART_BYTES, -(-share // MIB) * MIB))
        if chosen is None and kind is OperationKind.PUT and size > MAX_PART_BYTES:
            chosen = DEFAULT_PART_BYTES
        return None if chosen is None or size <= chosen else max(chosen, -(-size // MAX_PARTS))


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
    sse
        Encryption that requests for new objects ask for: AES256, aws:kms or aws:kms:KEY; empty for
        the default of the bucket.
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
    sse: str = ""
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
