"""Azure Blob Storage and Google Cloud Storage: what obstore has to be told to reach them.

obstore moves the bytes and lists, reads and deletes. What it cannot do (delete on a condition,
ask for a bucket itself, show a response's ``Date``) the provider's own library does, a single
request at a time that is not tried again: the ``requests`` of each cloud, a class whose objects
threads may share. To add a provider is one file and a line in ``CLOUDS``.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from serverless_bench.clients.clouds.azure import Azure
from serverless_bench.clients.clouds.google import Google
from serverless_bench.job.target import StoreProtocol

Cloud = Azure | Google
"""One provider, as its credentials in the environment show it."""
CLOUDS: Final[Mapping[StoreProtocol, Cloud]] = MappingProxyType(
    {StoreProtocol.AZ: Azure(), StoreProtocol.GS: Google()}
)
"""By protocol, every provider that is reached by its own API and not by S3's."""
