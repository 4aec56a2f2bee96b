"""The client for what is not measured: claims, records, and what the driver asks of a bucket.

It is the same whatever client is measured: the thin one for S3, obstore for another cloud.
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
    """A client whose requests can depend on what is there."""

    def put(self, key: str, source: Source, exchange: Exchange, *, if_absent: bool = False) -> None:
        """Write one object; with ``if_absent``, one that is there is refused with 412."""

    def get_head(self, key: str, length: int, exchange: Exchange) -> tuple[bytes, str, str]:
        """Return an object's first bytes, its entity tag and its ``Content-Range``.

        Of length 0 is a small object as a whole: an empty one has no first byte to ask for.
        Where another header tells versions of an object apart, that stands for the tag.
        """

    def delete(self, key: str, exchange: Exchange, *, etag: str = "") -> bool:
        """Delete one object; with an entity tag, only if that is still its own.

        Returns
        -------
        bool
            Whether the bucket keeps it as an older version, which goes on costing.
        """


def open_control_client(
    target: Target, transfer: Transfer, *, s3: type[WireClient] = WireClient, called: str = ""
) -> ControlClient:
    """Return the client for small objects of a target that are not measured.

    Parameters
    ----------
    target, transfer
        As for any client; the options of the target are not for this one.
    s3
        The client where S3's requests are understood.
    called
        What it calls itself; empty for what clients of this process do.
    """
    # The options belong to the library that is measured.
    target = replace(target, client="", client_option=())
    if target.protocol is StoreProtocol.S3:
        return s3(target, transfer, called=called)
    # It has no parts, which nobody asks for here.
    own = resolve_name(CLIENTS.load(target.client).info.control)
    return cast("ControlClient", own(target, transfer, called=called))
