"""Where objects live."""

from dataclasses import dataclass
from enum import StrEnum

from serverless_bench.job.endpoint import refuse_password
from serverless_bench.job.types import check_types


class Addressing(StrEnum):
    """Where a request names its bucket."""

    AUTO = "auto"
    """Host name on AWS, path elsewhere."""
    PATH = "path"
    VIRTUAL = "virtual"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where objects live, and which library reaches them.

    Parameters
    ----------
    client
        Library that moves the bytes: wire, boto3, or another one of docs/clients.md.
    bucket
        Name of the bucket, which must be there.
    prefix
        Goes before every new key; existing keys in a key file already have theirs.
    endpoint_url
        ``http(s)://host[:port]`` of the store, without the bucket; empty for AWS, where it is
        found out.
    region
        Region of the bucket. Without an endpoint it is found out.
    addressing
        Where a request names its bucket: auto, path or virtual.
    store
        Which store sbench runs here itself; None for any other. ``embedded_target`` sets it.
    options
        The client library's own options, as names and values; docs/clients.md has them.

    Examples
    --------
    >>> sbench.Target(bucket="mine", endpoint_url="https://store.example:9000").region
    'us-east-1'
    """

    client: str = "wire"
    bucket: str
    prefix: str = "sbench/"
    endpoint_url: str = ""
    region: str = "us-east-1"
    addressing: Addressing = Addressing.AUTO
    store: str | None = None
    options: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        check_types(self)
        refuse_password(self.endpoint_url)
        # JSON has no tuples, and a target is a key of dictionaries.
        object.__setattr__(self, "options", tuple((n, v) for n, v in self.options))
