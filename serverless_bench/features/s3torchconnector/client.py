"""The client of Amazon's S3 connector for PyTorch: Mountpoint's, on the AWS Common Runtime.

``s3torchconnectorclient`` does not need torch. Every put is an upload in parts, even of a small
object, and every get requests parallel ranges of ``part_mb``. The library always retries at least
once (it takes ``max_attempts=1`` as four attempts, so 2 is the minimum), and exposes neither status
nor timing: attempts are hidden. The payload is never hashed: the runtime signs
``UNSIGNED-PAYLOAD``, also over http, and has no switch for it.

It accepts only ``bytes``, so each block of a put is copied once, and returns parts as ``bytes``. It
has no timeout: a connection is closed when no byte moved for 30 s.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar, Final
from urllib.parse import quote

from s3torchconnectorclient._mountpoint_s3_client import (
    ListObjectStream,
    MountpointS3Client,
    S3Exception,
)

from serverless_bench.base.errors import (
    AccessDenied,
    BadResponse,
    ConnectionLost,
    NotFound,
    OperationError,
    ServerFault,
    Throttled,
    WrongRegion,
)
from serverless_bench.base.process import environment
from serverless_bench.base.units import MIB
from serverless_bench.clients.base import ClientInfo, Exchange, Sink, Source
from serverless_bench.clients.environment import ca_bundle, find_keys, no_keys
from serverless_bench.clients.library import PAGE, LibraryClient, check_page
from serverless_bench.clients.options import option
from serverless_bench.features.library_clients.bodies import hand_on
from serverless_bench.features.library_clients.errors import (
    crt_error,
    error_in_text,
    look,
    translating,
)

_SIGNS: Final[Mapping[str, type[OperationError]]] = {
    "does not exist": NotFound,
    "was not found": NotFound,
    "Forbidden": AccessDenied,
    "No signing credentials": AccessDenied,
    "Request throttled": Throttled,
    "nternal server error": ServerFault,
    "parsing error": BadResponse,
    "Unknown response": BadResponse,
}
"""Fragments of the library's error messages; the first match wins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class S3TorchConnectorOptions:
    """The options of the connector."""

    part_mb: int = option(8, "MiB of a part of a put and of a range of a get", least=5)
    throughput_gbps: float = option(10.0, "Gbit/s to aim at: decides connections", least=0.001)
    max_attempts: int = option(2, "attempts of one request; the connector's own: 10", least=2)


def error_of(text: str) -> OperationError:
    """Return the error for an error text of the connector, which provides no structured form."""
    short = text[:200]
    if "AWS_ERROR_S3_REQUEST_HAS_COMPLETED" in text:
        # An upload failed in the background; the library does not report the reason.
        return no_keys() if find_keys() is None else ServerFault(short)
    if runtime_error := re.search(r"CRT error \d+: [\w-]+: (AWS_\w+), (.*)", text):
        return crt_error(runtime_error[1], runtime_error[2])
    if other_region := re.search(r"Wrong region \(expecting ([\w-]+)\)", text):
        return WrongRegion(short, region=other_region[1])
    if status := re.search(r"response_status: (\d{3})", text):
        return error_in_text(int(status[1]), text)
    kind = next((error for sign, error in _SIGNS.items() if sign in text), OperationError)
    return kind(short)


class S3TorchConnectorClient(LibraryClient[S3TorchConnectorOptions]):
    """Requests through ``MountpointS3Client``."""

    info: ClassVar[ClientInfo] = ClientInfo(
        attempts="hidden",
        progress="body",
        signing="SigV4, UNSIGNED-PAYLOAD",
        checksum="none",
        forkable=False,
        operations=frozenset({"put", "get", "range", "head", "list", "delete", "copy"}),
        options=S3TorchConnectorOptions,
        quirks=frozenset(
            {
                "ignores_no_proxy",
                "looks_up_names",
                "own_attempts",
                "ranges_always",
                "strict_listings",
                "strict_uploads",
            }
        ),
    )

    def put(self, key: str, source: Source, exchange: Exchange) -> None:
        """Write by an upload in parts, which the library aborts after a failure."""
        with self._translated():
            writer = self._client.put_object(self._bucket, key)
            for block in self._blocks(source):
                writer.write(bytes(block))
                exchange.moved(len(block))
            writer.close()

    def get(
        self,
        key: str,
        sink: Sink,
        exchange: Exchange,
        *,
        offset: int = 0,
        length: int | None = None,
    ) -> None:
        """Read in ranges of ``part_mb``."""
        begin, end = (None, None) if length is None else (offset, offset + length)
        try:
            with self._translated():
                hand_on(self._client.get_object(self._bucket, key, begin, end), sink, exchange)
        except OperationError as exc:
            # An empty object has no ranges.
            if exc.status != 416 or length is not None or self.head(key, exchange):
                raise

    def head(self, key: str, exchange: Exchange) -> int:
        with self._translated():
            return self._client.head_object(self._bucket, key).size

    def list_keys(self, prefix: str, after: str, exchange: Exchange) -> tuple[list[str], bool]:
        """Continue the listing where an earlier call stopped.

        The library cannot start after a key: it continues an earlier listing, or lists the
        preceding keys, too, and they are dropped here.
        """
        pages = self._listings.pop((prefix, after), None)
        if pages is None:
            pages = self._client.list_objects(self._bucket, prefix, max_keys=PAGE)
        keys: list[str] = []
        with self._translated():
            for page in pages:
                keys = [entry.key for entry in page.object_info if entry.key > after]
                if keys:
                    break
        check_page(keys, prefix, more=False)
        is_truncated = bool(keys) and not pages.complete
        if is_truncated:
            self._listings[prefix, keys[-1]] = pages
        return keys, is_truncated

    def delete(self, key: str, exchange: Exchange) -> None:
        with self._translated():
            self._client.delete_object(self._bucket, key)

    def copy(self, source: str, key: str, exchange: Exchange) -> None:
        """Copy an object: the library sends a HEAD request, then one request or parts."""
        # The library inserts the name into a header and a URL without encoding.
        name = quote(source, safe="/~")
        with self._translated():
            self._client.copy_object(self._bucket, name, self._bucket, key)

    def close(self) -> None:
        """Release the client: the runtime stops the threads when the object is deleted."""
        self._listings.clear()
        del self._client

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            with translating((S3Exception,), error_of):
                yield
        except ConnectionLost as exc:
            # The runtime does not say what is wrong.
            if "TLS" in str(exc) and (refused := look(self._server)):
                raise refused from exc
            raise

    def _open(self) -> None:
        self._listings: dict[tuple[str, str], ListObjectStream] = {}
        # The runtime loads the certificates only once.
        bundle = ca_bundle()
        with self._translated(), environment({"SSL_CERT_FILE": str(bundle)} if bundle else {}):
            self._client = MountpointS3Client(
                region=self._region,
                user_agent_prefix=self._name,
                throughput_target_gbps=self._options.throughput_gbps,
                part_size=self._options.part_mb * MIB,
                endpoint=self._endpoint_url,
                force_path_style=not self._virtual,
                max_attempts=self._options.max_attempts,
            )
