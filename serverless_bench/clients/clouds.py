"""Stores other than S3: the settings that obstore needs to reach them.

obstore moves the bytes and lists, reads and deletes. The provider's library sends the requests that
obstore lacks (delete on a condition, query a bucket, read the ``Date`` header), one at a time and
without retries: the ``requests`` of each provider, with objects that threads may share. A
provider is a feature, named like its protocol in the table ``clouds``.
"""

from collections.abc import Callable
from typing import Any, Final, Literal, Protocol

from serverless_bench.base.plugins import Registry
from serverless_bench.job.target import StoreProtocol, Target


class Cloud(Protocol):
    """A provider with the credentials of the environment."""

    extra: str
    """Extra of this package with its libraries."""
    signing: str
    """How its requests are signed, for ``run.json``."""
    credentials_hint: str
    version_field: Literal["e_tag", "version"]
    """Metadata field that identifies a version of an object."""
    requests: Callable[[Target, str, float], Any]
    """Takes the target, the user agent and the timeout in seconds."""

    def endpoint(self) -> str:
        """Return the endpoint of the account in the environment.

        Raises
        ------
        UsageError
            If no account is set.
        """

    def has_credentials(self, endpoint_url: str = "") -> bool:
        """Return whether credentials are set for an endpoint."""

    def open_store(self, target: Target, endpoint_url: str, client_options: Any) -> Any:
        """Return obstore's store for a bucket, without retries."""


CLOUDS: Final = Registry[Cloud]("clouds", {})
"""Providers by protocol, for all that use a protocol other than S3."""


def cloud_of(protocol: StoreProtocol) -> Cloud | None:
    """Return the provider of a protocol; None for S3."""
    return CLOUDS.load(protocol) if protocol in CLOUDS else None
