"""The client for requests that are not measured: claims, records, and bucket checks of the driver.

It does not depend on the measured client: the thin client for S3, obstore for other providers.
"""

from dataclasses import replace
from pkgutil import resolve_name
from typing import Protocol, cast

from serverless_bench.clients import CLIENTS
from serverless_bench.clients.base import Client, Exchange, Source
from serverless_bench.clients.wire import WireClient
from serverless_bench.job.target import StoreProtocol, Target
from serverless_bench.job.transfer import Transfer


class ControlClient(Client, Protocol):
    """A client with conditional requests."""

    def put(self, key: str, source: Source, exchange: Exchange, *, if_absent: bool = False) -> None:
        """Write an object; with ``if_absent``, an existing one causes an error with status 412."""

    def get_head(self, key: str, length: int, exchange: Exchange) -> tuple[bytes, str, str]:
        """Return the first bytes of an object, its entity tag and its ``Content-Range``.

        Length 0 requests the full object, which has to be small: an empty object has no first byte.
        If a provider identifies versions by another header, its value replaces the tag.
        """

    def delete(self, key: str, exchange: Exchange, *, etag: str = "") -> bool:
        """Delete an object; with an entity tag, only if the object still has that tag.

        Returns
        -------
        bool
            Whether the bucket keeps it as an older version, which continues to cost money.
        """


def open_control_client(
    target: Target, transfer: Transfer, *, s3: type[WireClient] = WireClient, called: str = ""
) -> ControlClient:
    """Return the client for small objects of a target that are not measured.

    Parameters
    ----------
    target, transfer
        As for any client; the options of the target are ignored.
    s3
        Client class for S3.
    called
        User agent of the client; empty for the default of this process.
    """
    # The options belong to the measured library.
    target = replace(target, client="", client_option=())
    if target.protocol is StoreProtocol.S3:
        return s3(target, transfer, called=called)
    # It supports no uploads in parts, which are not needed here.
    control_class = resolve_name(CLIENTS.load(target.client).info.control)
    return cast("ControlClient", control_class(target, transfer, called=called))
