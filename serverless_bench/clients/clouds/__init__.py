"""Azure Blob Storage and Google Cloud Storage: what obstore has to be told to reach them.

obstore moves the bytes and lists, reads and deletes. What it cannot do (delete on a condition,
ask for a bucket itself, show a response's ``Date``) the provider's own library does, a single
request at a time: ``CloudRequests``. To add a provider is one file and a line in ``CLOUDS``.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol

from serverless_bench.clients.base import Exchange
from serverless_bench.clients.clouds.azure import Azure
from serverless_bench.clients.clouds.google import Google
from serverless_bench.clients.listings import OpenUpload
from serverless_bench.job.target import StoreProtocol, Target

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import ClientConfig, ObjectStore


class CloudRequests(Protocol):
    """Single requests that obstore does not make; threads may share it.

    None is tried again, and each reports its response to the exchange.
    """

    def head_bucket(self, exchange: Exchange) -> None:
        """Ask whether the bucket is there and ours to use.

        Raises
        ------
        OperationError
            If not; this holds for the other methods, too.
        """

    def create_bucket(self, exchange: Exchange) -> None:
        """Make the bucket; one that is there is refused with status 409."""

    def delete_version(self, key: str, version: str, exchange: Exchange) -> None:
        """Delete one object if it still is the one that ``Cloud.version`` tells of.

        Otherwise that is refused with status 412.
        """

    def list_uploads(
        self, prefix: str, marker: OpenUpload | None, exchange: Exchange
    ) -> tuple[list[OpenUpload], OpenUpload | None]:
        """Return a page of open uploads; status 501 refuses it where there is no such list."""

    def abort_multipart(self, key: str, upload_id: str, exchange: Exchange) -> None:
        """Give up one of these uploads."""

    def close(self) -> None:
        """Release connections."""


class Cloud(Protocol):
    """One provider, as its credentials in the environment show it."""

    signing: str
    """How requests are signed, for a run's provenance."""
    credentials_hint: str
    """Which variables of the environment to set."""

    def endpoint(self) -> str:
        """Return the endpoint of the environment's own account, ``http(s)://host[:port]``.

        Raises
        ------
        UsageError
            If the environment names no account.
        """

    def has_credentials(self, endpoint_url: str = "") -> bool:
        """Tell whether there are credentials for an endpoint, without asking anybody for some.

        An empty one is the cloud's own.
        """

    def open_store(
        self, target: Target, endpoint_url: str, client_options: "ClientConfig"
    ) -> "ObjectStore":
        """Return obstore's store of a bucket, without retries of its own."""

    def version(self, meta: "ObjectMeta") -> str:
        """Return what tells an object from all others that stand at its key before or after."""

    def open_requests(self, target: Target, user_agent: str, timeout_s: float) -> CloudRequests:
        """Return what makes the requests that obstore does not make.

        Raises
        ------
        PluginError
            If the provider's library is not installed.
        """


CLOUDS: Final[Mapping[StoreProtocol, Cloud]] = MappingProxyType(
    {StoreProtocol.AZ: Azure(), StoreProtocol.GS: Google()}
)
"""By protocol, every provider that is reached by its own API and not by S3's."""
