"""Azure Blob Storage and Google Cloud Storage: the settings that obstore needs to reach them.

obstore moves the bytes and lists, reads and deletes. The provider's library sends the requests that
obstore lacks (delete on a condition, query a bucket, read the ``Date`` header), one at a time and
without retries: the ``requests`` of each provider, a class whose objects threads may share. Adding
a provider takes a file and an entry in ``CLOUDS``.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from serverless_bench.features.azure.client import Azure
from serverless_bench.features.google.client import Google
from serverless_bench.job.target import StoreProtocol

Cloud = Azure | Google
"""A provider with the credentials of the environment."""
CLOUDS: Final[Mapping[StoreProtocol, Cloud]] = MappingProxyType(
    {StoreProtocol.AZ: Azure(), StoreProtocol.GS: Google()}
)
"""Provider by protocol, for all that use a protocol other than S3."""
