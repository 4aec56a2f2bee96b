"""boto3 as most applications use it, but without retries.

Checksums and signing keep the library's defaults, so that results match what applications see;
AWS_REQUEST_CHECKSUM_CALCULATION changes them as usual. Over plain http these defaults read a body
up to three times (checksum, signature, upload): only the last pass counts as progress, but all of
them count in ``payload_ns``.
"""

import io
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeVar, cast
from urllib.parse import urlsplit

import boto3
from botocore import exceptions as boto
from botocore.config import Config
from botocore.parsers import ResponseParserError
from urllib3.exceptions import HTTPError
from urllib3.exceptions import TimeoutError as Urllib3Timeout

from serverless_bench.base.errors import (
    AccessDenied,
    BadRequest,
    BadResponse,
    ConnectionLost,
    Corrupt,
    OperationError,
    TimedOut,
)
from serverless_bench.base.units import MIB
from serverless_bench.clients.aws_credentials import AwsSession
from serverless_bench.clients.base import ClientInfo, Exchange, Sink, Source
from serverless_bench.clients.environment import certificate_error
from serverless_bench.clients.library import (
    LibraryClient,
    check_page,
    check_range,
    moved_endpoint,
    read_text,
)
from serverless_bench.clients.options import option
from serverless_bench.clients.s3_errors import s3_error
from serverless_bench.clients.s3_http import check_success, encryption
from serverless_bench.clients.send_queue import AT_ONCE
from serverless_bench.clients.watched_pools import HERE, sending_here, watched
from serverless_bench.job.endpoint import is_aws
from serverless_bench.payload.keystream import KeystreamFile
from serverless_bench.rundir.record import Shown

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer
    from mypy_boto3_s3 import S3Client

R = TypeVar("R")

ERRORS: Final[Mapping[type[Exception], type[OperationError]]] = {
    boto.ConnectTimeoutError: TimedOut,
    boto.ReadTimeoutError: TimedOut,
    boto.IncompleteReadError: ConnectionLost,
    boto.ResponseStreamingError: ConnectionLost,
    boto.HTTPClientError: ConnectionLost,
    boto.ConnectionError: ConnectionLost,
    boto.FlexibleChecksumError: Corrupt,
    boto.ChecksumError: Corrupt,
    boto.NoCredentialsError: AccessDenied,
    boto.PartialCredentialsError: AccessDenied,
    boto.CredentialRetrievalError: AccessDenied,
    boto.LoginError: AccessDenied,
    boto.SSOError: AccessDenied,
    boto.TokenRetrievalError: AccessDenied,
    # Raised for expired temporary credentials.
    RuntimeError: AccessDenied,
    ResponseParserError: BadResponse,
    boto.BotoCoreError: BadRequest,
    # Raised when botocore parses a malformed header as a number.
    ValueError: BadResponse,
}
"""Exceptions of botocore other than ``ClientError``; the first match wins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Boto3Options:
    """The options of boto3."""

    payload_signing: Literal["library", "sha256", "unsigned"] = option(
        "library", "hash of the body in the signature; the library takes one over http"
    )
    checksum: Literal["library", "when_supported", "when_required"] = option(
        "library", "when uploads get a checksum (request_checksum_calculation)"
    )
    max_pool: int = option(64, "connections kept; the library's own pool has 10", least=1)


class Boto3Client(LibraryClient[Boto3Options]):
    """Single S3 requests through ``boto3.client("s3")``."""

    info: ClassVar[ClientInfo] = ClientInfo(
        attempts="exact",
        progress="body",
        shows=frozenset(Shown) - {Shown.CONNECTION},
        signing="library default",
        checksum=os.environ.get("AWS_REQUEST_CHECKSUM_CALCULATION", "library default"),
        options=Boto3Options,
        express=True,
        conditional=True,
        encrypts=True,
    )

    def move(self, *, region: str | None, endpoint_url: str | None) -> None:
        here = self._client.meta.endpoint_url
        new_url = moved_endpoint(here, self._region, region, endpoint_url)
        self.close()
        # On AWS, boto3 derives the endpoint from the region.
        self._go_to(region or self._region, "" if is_aws(here) and not endpoint_url else new_url)

    def put(self, key: str, source: Source, exchange: Exchange, **condition: str) -> None:
        """Write an object, optionally on a condition."""
        with self._body(source, exchange) as body:
            self._call(
                exchange,
                self._client.put_object,
                Key=key,
                Body=body,
                **{**condition, **self._encryption},
            )

    def put_if(self, key: str, source: Source, exchange: Exchange, *, etag: str | None) -> None:
        condition = {"IfNoneMatch": "*"} if etag is None else {"IfMatch": etag}
        self.put(key, source, exchange, **condition)

    def get(
        self,
        key: str,
        sink: Sink,
        exchange: Exchange,
        *,
        offset: int = 0,
        length: int | None = None,
    ) -> None:
        wanted = {} if length is None else {"Range": f"bytes={offset}-{offset + length - 1}"}
        self.get_tagged(key, sink, exchange, **wanted)

    def get_tagged(self, key: str, sink: Sink, exchange: Exchange, **wanted: str) -> str:
        """Read an object, or the range in ``wanted``, and return the entity tag."""
        response = self._call(exchange, self._client.get_object, Key=key, **wanted)
        # Not `with response["Body"]`: that returns urllib3's stream without the checks of botocore.
        with self._translated(exchange), closing(response["Body"]) as stream:
            size = _value(response, "ContentLength")
            if size < 0:
                raise BadResponse("the store sent no size", status=200)
            meta = cast("Any", response)["ResponseMetadata"]
            check_range(wanted.get("Range", ""), meta["HTTPStatusCode"], meta["HTTPHeaders"])
            self._receive(stream, size, sink, exchange)
        return response.get("ETag", "")

    def create_multipart(self, key: str, exchange: Exchange) -> str:
        response = self._call(
            exchange, self._client.create_multipart_upload, Key=key, **self._encryption
        )
        return str(_value(response, "UploadId"))

    def upload_part(
        self, key: str, upload_id: str, number: int, source: Source, exchange: Exchange
    ) -> str:
        with self._body(source, exchange) as body:
            response = self._call(
                exchange,
                self._client.upload_part,
                Key=key,
                UploadId=upload_id,
                PartNumber=number,
                Body=body,
            )
        return str(_value(response, "ETag"))

    def complete_multipart(
        self, key: str, upload_id: str, etags: Sequence[str], exchange: Exchange
    ) -> None:
        parts = [{"PartNumber": n, "ETag": e} for n, e in enumerate(etags, start=1)]
        self._call(
            exchange,
            self._client.complete_multipart_upload,
            Key=key,
            UploadId=upload_id,
            MultipartUpload={"Parts": parts},
        )

    def abort_multipart(self, key: str, upload_id: str, exchange: Exchange) -> None:
        self._call(exchange, self._client.abort_multipart_upload, Key=key, UploadId=upload_id)

    def head(self, key: str, exchange: Exchange) -> int:
        return int(_value(self._call(exchange, self._client.head_object, Key=key), "ContentLength"))

    def list_keys(self, prefix: str, after: str, exchange: Exchange) -> tuple[list[str], bool]:
        # A directory bucket has no order, and does not accept an empty StartAfter.
        behind = {"StartAfter": after} if after else {}
        response = self._call(exchange, self._client.list_objects_v2, Prefix=prefix, **behind)
        keys = [str(_value(entry, "Key")) for entry in response.get("Contents", ())]
        is_truncated = bool(_value(response, "IsTruncated"))
        check_page(keys, prefix, more=is_truncated)
        return keys, is_truncated

    def delete(self, key: str, exchange: Exchange) -> None:
        self._call(exchange, self._client.delete_object, Key=key)

    def delete_many(self, keys: Sequence[str], exchange: Exchange) -> None:
        objects = {"Objects": [{"Key": key} for key in keys], "Quiet": True}
        response = self._call(exchange, self._client.delete_objects, Delete=objects)
        for entry in response.get("Errors", ()):
            raise s3_error(500, entry.get("Code", ""), entry.get("Message", ""), {})

    def copy(self, source: str, key: str, exchange: Exchange) -> None:
        location = {"Bucket": self._bucket, "Key": source}
        self._call(
            exchange, self._client.copy_object, Key=key, CopySource=location, **self._encryption
        )

    def close(self) -> None:
        self._client.close()

    def _open(self) -> None:
        self._encryption = encryption(self._target.sse, ("ServerSideEncryption", "SSEKMSKeyId"))
        s3_settings: Any = {"addressing_style": self._target.addressing.value}
        if self._options.payload_signing != "library":
            s3_settings["payload_signing_enabled"] = self._options.payload_signing == "sha256"
        when = None if self._options.checksum == "library" else self._options.checksum
        # All clients of this process share the same credentials.
        session = boto3.Session(botocore_session=AwsSession())
        self._client: S3Client = session.client(
            "s3",
            region_name=self._region,
            endpoint_url=self._endpoint_url or None,
            config=Config(
                retries={"total_max_attempts": 1},
                connect_timeout=self._connect_s,
                read_timeout=self._transfer.timeout,
                max_pool_connections=max(self._transfer.connections, self._options.max_pool),
                s3=s3_settings,
                request_checksum_calculation=when,
                user_agent_extra=self._name,
            ),
        )
        endpoint: Any = self._client._endpoint  # type: ignore[attr-defined]  # noqa: SLF001
        session = endpoint.http_session
        pools = session._pool_classes_by_scheme  # noqa: SLF001
        pools.update({scheme: watched(pool) for scheme, pool in pools.items()})
        session.send = partial(self._send, session.send)
        # A followed redirect would be another attempt, and the caller decides about attempts.
        self._client.meta.events.register_last("before-parameter-build.s3", _never_redirect)

    def _send(self, send: Callable[[Any], Any], request: Any) -> Any:
        """Send one HTTP request, and limit s3_settings much of its response is read into memory."""
        streamed, request.stream_output = request.stream_output, True
        response = send(request)
        request.stream_output = streamed
        if response.status_code >= 300 or not streamed:
            response.raw = SimpleNamespace(stream=partial(read_text, response.raw, HERE.exchange))
            try:
                text = response.content
            except HTTPError as exc:
                error = TimedOut if isinstance(exc, Urllib3Timeout) else ConnectionLost
                raise error(f"{type(exc).__name__}: {exc}"[:200]) from exc
            if response.status_code < 200:
                raise BadResponse(
                    "the store sent only an interim response", status=response.status_code
                )
            if response.status_code < 300:
                check_success(text)
        return response

    def _body(self, source: Source, exchange: Exchange) -> io.BufferedReader:
        # botocore hashes the body for checksums and the signature first.
        HERE.connection = None
        # Buffered, because urllib3 reads 16 KiB at a time.
        return io.BufferedReader(
            _CountedFile(source, exchange), max(self._transfer.block_size, MIB)
        )

    def _call(self, exchange: Exchange, request: Callable[..., R], **parameters: Any) -> R:
        """Send a request for the bucket, and report its response."""
        HERE.exchange = exchange
        with self._translated(exchange):
            response = request(Bucket=self._bucket, **parameters)
            meta = cast("Any", response)["ResponseMetadata"]
            exchange.answered(meta["HTTPStatusCode"], meta["HTTPHeaders"])
        return response

    @contextmanager
    def _translated(self, exchange: Exchange) -> Iterator[None]:
        try:
            yield
        except boto.ClientError as exc:
            meta = exc.response.get("ResponseMetadata", {})
            status, headers = meta.get("HTTPStatusCode", 0), meta.get("HTTPHeaders", {})
            exchange.answered(status, headers)
            raise self._s3_error(exc, status, headers) from exc
        except (boto.BotoCoreError, ResponseParserError, RuntimeError, ValueError) as exc:
            inner = getattr(exc, "kwargs", {}).get("error")
            # Raised by sbench in the body while botocore was reading it.
            if isinstance(inner, OperationError):
                raise inner from None
            if refused := certificate_error(str(exc)):
                raise refused from exc
            error = next(error for raised, error in ERRORS.items() if isinstance(exc, raised))
            raise error(f"{type(exc).__name__}: {exc}"[:200]) from exc

    def _s3_error(
        self, exc: boto.ClientError, status: int, headers: Mapping[str, str]
    ) -> OperationError:
        error = cast("dict[str, str]", exc.response.get("Error", {}))
        code = error.get("Code", "")
        host = error.get("Endpoint", "").removeprefix(self._bucket + ".")
        return s3_error(
            status,
            "" if code.isdigit() else code,
            error.get("Message", ""),
            headers,
            region=error.get("Region"),
            endpoint=f"{urlsplit(self._client.meta.endpoint_url).scheme}://{host}"
            if host
            else None,
        )

    def _receive(
        self,
        stream: Any,
        size: int,
        sink: Sink,
        exchange: Exchange,
    ) -> None:
        view = memoryview(bytearray(min(self._transfer.block_size, size)))
        offset = 0
        while offset < size:
            filled, want = 0, min(len(view), size - offset)
            if not offset:
                # A read returns only when it is complete, so the first byte is read separately.
                filled = stream.readinto(view[:1])
                if filled:
                    exchange.first_byte()
                    exchange.moved(filled)
            while filled < want:
                count = stream.readinto(view[filled:want])
                if not count:
                    raise ConnectionLost("the connection ended before the object did")
                exchange.moved(count)
                filled += count
            sink.write_at(offset, view[:want])
            offset += want


class _CountedFile(KeystreamFile):
    """A request body that reports to the exchange how much of it botocore has sent."""

    def __init__(self, source: Source, exchange: Exchange) -> None:
        super().__init__(source, source.size)
        self._exchange = exchange

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        """Fill ``buffer``."""
        count = super().readinto(buffer)
        connection = sending_here()
        if connection is not None:
            if count == self.tell() and self._size > AT_ONCE:
                connection.watch(self._exchange, self.tell)
            if count:
                self._exchange.moved(count)
            else:
                # urllib3 reads again only after it has sent all earlier bytes.
                self._exchange.sent()
        return count


def _value(response: Mapping[str, Any], name: str) -> Any:
    """Return a field that every valid response has."""
    try:
        return response[name]
    except KeyError:
        raise BadResponse(f"the store's response has no {name}", status=200) from None


def _never_redirect(context: dict[str, Any], **_: object) -> None:
    """Mark the request as redirected already, so that botocore does not follow redirects."""
    context.setdefault("s3_redirect", {})["redirected"] = True
