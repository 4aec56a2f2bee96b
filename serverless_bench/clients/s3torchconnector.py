"""The client under Amazon's S3 connector for PyTorch: Mountpoint's, on the AWS Common Runtime.

``s3torchconnectorclient`` needs no torch. Every put is an upload in parts, however small
the object, and every get asks for ranges of ``part_mb`` side by side; the library tries
again by itself, at least once (``max_attempts=1`` means four attempts to it, so that 2 is the
fewest), and shows neither status nor timing: attempts are hidden. The payload is never hashed:
the runtime signs ``UNSIGNED-PAYLOAD``, over http, too, and has no switch for it.

It takes only ``bytes``, so that each block of a put is copied once, and gives out parts as
``bytes``. It has no timeout: a connection ends when no byte moved for 30 s.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import ClassVar, Final
from urllib.parse import quote

from s3torchconnectorclient._mountpoint_s3_client import (
    ListObjectStream,
    MountpointS3Client,
    S3Exception,
)

from serverless_bench.clients.base import ClientInfo, Exchange, Sink, Source
from serverless_bench.clients.crt_errors import crt_error
from serverless_bench.clients.environment import ca_bundle, find_keys, names_bucket_in_host, no_keys
from serverless_bench.clients.options import option, parse
from serverless_bench.clients.s3_errors import s3_error
from serverless_bench.clients.s3_http import moved_endpoint
from serverless_bench.errors import (
    AccessDenied,
    BadResponse,
    NotFound,
    OperationError,
    ServerFault,
    Throttled,
    WrongRegion,
)
from serverless_bench.job.target import Target
from serverless_bench.job.transfer import Transfer
from serverless_bench.process import environment, user_agent
from serverless_bench.units import MIB

_PAGE: Final = 1000
"""Keys of one response to a listing."""
_CRT: Final = re.compile(r"CRT error \d+: [\w-]+: (AWS_\w+), (.*)")
_CERTIFICATES: Final = "SSL_CERT_FILE"
_ENDED: Final = "AWS_ERROR_S3_REQUEST_HAS_COMPLETED"
_STATUS: Final = re.compile(r"response_status: (\d{3})")
_CODE: Final = re.compile(r"<Code>([^<]*)</Code>")
_MESSAGE: Final = re.compile(r"<Message>([^<]*)</Message>")
_REGION: Final = re.compile(r"Wrong region \(expecting ([\w-]+)\)")
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
"""What the library's messages have in common; the first match wins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class S3TorchConnectorOptions:
    """What can be set of the connector."""

    part_mb: int = option(8, "MiB of a part of a put and of a range of a get", least=5)
    throughput_gbps: float = option(10.0, "Gbit/s to aim at: decides connections", least=0.001)
    max_attempts: int = option(2, "attempts of one request; the connector's own: 10", least=2)


class S3TorchConnectorClient:
    """Requests through ``MountpointS3Client``.

    Parameters
    ----------
    target, transfer
        Where objects live and how they are moved.

    Raises
    ------
    UsageError
        If an option of the target is none of the connector's.
    """

    info: ClassVar[ClientInfo] = ClientInfo(
        attempts="hidden",
        progress="body",
        signing="SigV4, UNSIGNED-PAYLOAD",
        checksum="none",
        forkable=False,
        operations=frozenset({"put", "get", "range", "head", "list", "delete", "copy"}),
        options=S3TorchConnectorOptions,
    )

    def __init__(self, target: Target, transfer: Transfer) -> None:
        self._target = target
        self._transfer = transfer
        self._options = parse(S3TorchConnectorOptions, target)
        self._open(target.region, target.endpoint_url)

    def move(self, *, region: str | None, endpoint_url: str | None) -> None:
        url = moved_endpoint(self._endpoint_url, self._region, region, endpoint_url)
        self._open(region or self._region, url)

    def put(self, key: str, source: Source, exchange: Exchange) -> None:
        """Write by an upload in parts, which the library gives up if it fails."""
        block = memoryview(bytearray(min(self._transfer.block_bytes, source.size)))
        with _translated():
            writer = self._client.put_object(self._target.bucket, key)
            for offset in range(0, source.size, len(block) or 1):
                view = block[: source.size - offset]
                source.readinto_at(offset, view)
                writer.write(bytes(view))
                exchange.moved(len(view))
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
        end = None if length is None else offset + length
        try:
            self._receive(key, sink, exchange, offset=None if end is None else offset, end=end)
        except OperationError as exc:
            # Asked for ranges, an empty object has none.
            if exc.status != 416 or length is not None or self.head(key, exchange):
                raise

    def head(self, key: str, exchange: Exchange) -> int:
        with _translated():
            return self._client.head_object(self._target.bucket, key).size

    def list_keys(self, prefix: str, after: str, exchange: Exchange) -> tuple[list[str], bool]:
        """Go on where an earlier call ended.

        The library cannot begin behind a key: it goes on where an earlier call ended, or
        lists what comes before, too, and leaves it out.
        """
        pages = self._listings.pop((prefix, after), None)
        if pages is None:
            pages = self._client.list_objects(self._target.bucket, prefix, max_keys=_PAGE)
        keys: list[str] = []
        with _translated():
            while not keys:
                page = next(pages, None)
                if page is None:
                    break
                keys = [entry.key for entry in page.object_info if entry.key > after]
        more = bool(keys) and not pages.complete
        if more:
            self._listings[prefix, keys[-1]] = pages
        return keys, more

    def delete(self, key: str, exchange: Exchange) -> None:
        with _translated():
            self._client.delete_object(self._target.bucket, key)

    def copy(self, source: str, key: str, exchange: Exchange) -> None:
        """Copy: a HEAD, and then one request or parts."""
        bucket = self._target.bucket
        with _translated():
            # The library puts the name into a header, and into a URL, as it is.
            self._client.copy_object(bucket, quote(source, safe="/~"), bucket, key)

    def close(self) -> None:
        """Release the client: the runtime ends its threads when it is forgotten."""
        self._listings.clear()
        del self._client

    def _open(self, region: str, endpoint_url: str) -> None:
        self._region, self._endpoint_url = region, endpoint_url
        self._listings: dict[tuple[str, str], ListObjectStream] = {}
        with _translated(), _trusted():
            self._client = MountpointS3Client(
                region=region,
                user_agent_prefix=user_agent(),
                throughput_target_gbps=self._options.throughput_gbps,
                part_size=self._options.part_mb * MIB,
                endpoint=endpoint_url,
                force_path_style=not names_bucket_in_host(self._target, endpoint_url),
                max_attempts=self._options.max_attempts,
            )

    def _receive(
        self, key: str, sink: Sink, exchange: Exchange, *, offset: int | None, end: int | None
    ) -> None:
        position = 0
        with _translated():
            for chunk in self._client.get_object(self._target.bucket, key, offset, end):
                exchange.moved(len(chunk))
                sink.write_at(position, memoryview(chunk))
                position += len(chunk)


def _trusted() -> AbstractContextManager[None]:
    """Name ``AWS_CA_BUNDLE`` as the runtime wants it, which looks once."""
    bundle = ca_bundle()
    return environment({} if bundle is None else {_CERTIFICATES: str(bundle)})


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except S3Exception as exc:
        raise error_of(str(exc)) from exc


def error_of(text: str) -> OperationError:
    """Return what an error text of the connector stands for; it has no other form."""
    short = text[:200]
    if _ENDED in text:
        # An upload that failed behind our back; the library keeps the reason to itself.
        return no_keys() if find_keys() is None else ServerFault(short)
    if found := _CRT.search(text):
        return crt_error(found[1], found[2])
    if found := _REGION.search(text):
        return WrongRegion(short, region=found[1])
    if found := _STATUS.search(text):
        code, message = _CODE.search(text), _MESSAGE.search(text)
        return s3_error(int(found[1]), code[1] if code else "", message[1] if message else "", {})
    kind = next((error for sign, error in _SIGNS.items() if sign in text), OperationError)
    return kind(short)
