"""The AWS Common Runtime's S3 client: event loops in C, and requests that split themselves.

A large put or get becomes several requests side by side, of a size and at a number that
the runtime derives from ``throughput_gbps``; they cannot be separated here, so attempts
count as hidden. Its retries are off. With ``split=no`` a call is one request, as with the
other clients, but a put then stands in memory whole. The payload is never hashed: the
runtime signs ``UNSIGNED-PAYLOAD``, over http, too, and has no switch for it.

Bytes are made and compared in the runtime's own threads. It reads a body a part ahead of
the network, so that the progress of a put runs ahead by up to a part per request.
"""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final, Literal
from urllib.parse import quote, urlsplit

from awscrt.auth import AwsCredentialsProvider
from awscrt.http import HttpRequest
from awscrt.io import (
    ClientBootstrap,
    ClientTlsContext,
    DefaultHostResolver,
    EventLoopGroup,
    TlsContextOptions,
)
from awscrt.s3 import (
    S3ChecksumAlgorithm,
    S3ChecksumConfig,
    S3ChecksumLocation,
    S3Client,
    S3RequestTlsMode,
    S3RequestType,
    S3RetryConfig,
    S3RetryMode,
    create_default_s3_signing_config,
)

from serverless_bench.clients.awscrt_request import CrtRequest, CrtRequestBody
from serverless_bench.clients.base import ClientInfo, Exchange, Sink, Source
from serverless_bench.clients.environment import ca_bundle, names_bucket_in_host
from serverless_bench.clients.options import option, parse
from serverless_bench.clients.s3_http import (
    check_success,
    deletion,
    element,
    listed,
    listing_query,
    moved_endpoint,
    parts_body,
    response_error,
)
from serverless_bench.errors import BadResponse, UsageError
from serverless_bench.job.target import Target
from serverless_bench.job.transfer import Transfer
from serverless_bench.process import user_agent
from serverless_bench.rundir.record import Shown
from serverless_bench.units import GIB, MIB

_CONNECT_S: Final = 10.0
_NO_SUCH_RANGE: Final = 416
"""HTTP status; stores give it to the first range of an empty object, too."""
_SPLITTING: Final = {"GetObject": "GET_OBJECT", "PutObject": "PUT_OBJECT"}
"""By operation, the type of request that the runtime splits."""
_CHECKED: Final = frozenset({"PutObject", "UploadPart"})
"""Operations that carry a checksum of what they write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsCrtOptions:
    """What can be set of the runtime."""

    split: bool = option(
        default=True, about="let the runtime make several requests of one large put or get"
    )
    part_mb: int | None = option(None, "MiB of one of those requests", least=5)
    throughput_gbps: float | None = option(
        None, "Gbit/s to aim at: decides part size and connections", least=0.001
    )
    connections: int | None = option(None, "connections of one put or get at most", least=1)
    threads: int | None = option(None, "event loop threads; its own: one per processor", least=1)
    memory_gb: int | None = option(None, "GiB of buffers at most", least=1)
    checksum: Literal["none", "crc32", "crc32c", "crc64nvme", "sha1", "sha256"] = option(
        "none", "checksum of what is written"
    )
    checksum_in: Literal["header", "trailer"] = option(
        "trailer", "where it stands: the header needs a pass over the part before it is sent"
    )


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """One request of the S3 API."""

    operation: str
    """Its name there; the runtime needs it."""
    method: str
    key: str
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Source | bytes | None = None
    kind: S3RequestType = S3RequestType.DEFAULT
    """Whether the runtime may make several requests of it."""


class AwsCrtClient:
    """Requests through ``awscrt.s3.S3Client``.

    One client serves one endpoint: the runtime keeps addresses by host name, without the
    port.

    Parameters
    ----------
    target, transfer
        Where objects live and how they are moved.

    Raises
    ------
    UsageError
        If an option of the target is none of the runtime's, or ``AWS_CA_BUNDLE`` is not.
    """

    info: ClassVar[ClientInfo] = ClientInfo(
        attempts="hidden",
        progress="body",
        shows=frozenset({Shown.CONTENT_RANGE}),
        signing="SigV4, UNSIGNED-PAYLOAD",
        checksum="none unless checksum is set",
        forkable=False,
        options=AwsCrtOptions,
    )

    def __init__(self, target: Target, transfer: Transfer) -> None:
        self._target = target
        self._transfer = transfer
        self._options = parse(AwsCrtOptions, target)
        self._name = user_agent()
        self._checks = _checksum(self._options)
        self._open(target.region, target.endpoint_url)

    def move(self, *, region: str | None, endpoint_url: str | None) -> None:
        url = moved_endpoint(self._endpoint.geturl(), self._region, region, endpoint_url)
        self._open(region or self._region, url)

    def put(self, key: str, source: Source, exchange: Exchange) -> None:
        """Make as many requests as the runtime likes, unless ``split=no``."""
        self._run(CrtRequest(exchange), self._whole("PutObject", "PUT", key, body=source))

    def get(
        self,
        key: str,
        sink: Sink,
        exchange: Exchange,
        *,
        offset: int = 0,
        length: int | None = None,
    ) -> None:
        """Make as many requests as the runtime likes, unless ``split=no``."""
        crt_request = CrtRequest(exchange, sink=sink, start=offset)
        if length is None:
            self._perform(crt_request, self._whole("GetObject", "GET", key))
            if crt_request.status == _NO_SUCH_RANGE:
                # An empty object has no range: it is requested as a whole.
                crt_request = CrtRequest(exchange, sink=sink)
                self._perform(crt_request, ApiRequest("GetObject", "GET", key))
            self._check(crt_request)
            return
        headers = {"Range": f"bytes={offset}-{offset + length - 1}"}
        self._run(crt_request, self._whole("GetObject", "GET", key, headers=headers))
        if "content-range" not in crt_request.headers:
            raise BadResponse("the store ignored the range", status=crt_request.status)

    def create_multipart(self, key: str, exchange: Exchange) -> str:
        crt_request = CrtRequest(exchange)
        self._run(crt_request, ApiRequest("CreateMultipartUpload", "POST", key, query="uploads="))
        if upload_id := element(crt_request.text, "UploadId"):
            return upload_id
        raise BadResponse("the store gave no UploadId")

    def upload_part(
        self, key: str, upload_id: str, number: int, source: Source, exchange: Exchange
    ) -> str:
        """Write one part, which stands in memory whole."""
        query = f"partNumber={number}&uploadId={quote(upload_id, safe='')}"
        crt_request = CrtRequest(exchange)
        self._run(crt_request, ApiRequest("UploadPart", "PUT", key, query=query, body=source))
        return crt_request.headers.get("etag", "")

    def complete_multipart(
        self, key: str, upload_id: str, etags: Sequence[str], exchange: Exchange
    ) -> None:
        query = f"uploadId={quote(upload_id, safe='')}"
        api_request = ApiRequest(
            "CompleteMultipartUpload", "POST", key, query=query, body=parts_body(etags)
        )
        self._run(CrtRequest(exchange), api_request)

    def abort_multipart(self, key: str, upload_id: str, exchange: Exchange) -> None:
        query = f"uploadId={quote(upload_id, safe='')}"
        self._run(
            CrtRequest(exchange), ApiRequest("AbortMultipartUpload", "DELETE", key, query=query)
        )

    def head(self, key: str, exchange: Exchange) -> int:
        crt_request = CrtRequest(exchange)
        self._run(crt_request, ApiRequest("HeadObject", "HEAD", key))
        size = crt_request.headers.get("content-length", "")
        if not size.isdigit():
            raise BadResponse("the store says no size", status=crt_request.status)
        return int(size)

    def list_keys(self, prefix: str, after: str, exchange: Exchange) -> tuple[list[str], bool]:
        crt_request = CrtRequest(exchange)
        api_request = ApiRequest("ListObjectsV2", "GET", "", query=listing_query(prefix, after))
        self._run(crt_request, api_request)
        return listed(crt_request.text, crt_request.status)

    def delete(self, key: str, exchange: Exchange) -> None:
        self._run(CrtRequest(exchange), ApiRequest("DeleteObject", "DELETE", key))

    def delete_many(self, keys: Sequence[str], exchange: Exchange) -> None:
        body, headers = deletion(keys)
        api_request = ApiRequest(
            "DeleteObjects", "POST", "", query="delete=", headers=headers, body=body
        )
        self._run(CrtRequest(exchange), api_request)

    def copy(self, source: str, key: str, exchange: Exchange) -> None:
        headers = {"x-amz-copy-source": quote(f"{self._target.bucket}/{source}", safe="/")}
        self._run(CrtRequest(exchange), ApiRequest("CopyObject", "PUT", key, headers=headers))

    def close(self) -> None:
        """Release the client: the runtime ends its threads when the last request has ended."""
        del self._client

    def _open(self, region: str, endpoint_url: str) -> None:
        self._region, self._endpoint = region, urlsplit(endpoint_url)
        # Event loops of its own, so that their number is this client's and they end with it.
        loops = EventLoopGroup(self._options.threads)
        bootstrap = ClientBootstrap(loops, DefaultHostResolver(loops))
        secure = self._endpoint.scheme == "https"
        self._virtual = names_bucket_in_host(self._target, endpoint_url)
        host = self._endpoint.netloc
        self._host = f"{self._target.bucket}.{host}" if self._virtual else host
        options = self._options
        self._client = S3Client(
            bootstrap=bootstrap,
            region=region,
            tls_mode=S3RequestTlsMode.ENABLED if secure else S3RequestTlsMode.DISABLED,
            tls_connection_options=_trust().new_connection_options() if secure else None,
            signing_config=create_default_s3_signing_config(
                region=region,
                credential_provider=AwsCredentialsProvider.new_default_chain(bootstrap),
            ),
            part_size=options.part_mb and options.part_mb * MIB,
            throughput_target_gbps=options.throughput_gbps,
            memory_limit=options.memory_gb and options.memory_gb * GIB,
            max_active_connections_override=options.connections,
            retry_config=S3RetryConfig(retry_mode=S3RetryMode.NONE),
            connect_timeout_ms=round(min(self._transfer.timeout_s, _CONNECT_S) * 1000),
        )

    def _whole(
        self,
        operation: str,
        method: str,
        key: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: Source | None = None,
    ) -> ApiRequest:
        """Return a request that the runtime may make several of."""
        kind = (
            S3RequestType[_SPLITTING[operation]] if self._options.split else S3RequestType.DEFAULT
        )
        return ApiRequest(operation, method, key, headers=headers or {}, body=body, kind=kind)

    def _run(self, crt_request: CrtRequest, api_request: ApiRequest) -> None:
        self._perform(crt_request, api_request)
        self._check(crt_request)

    def _perform(self, crt_request: CrtRequest, api_request: ApiRequest) -> None:
        """Return when there is a response; it may be an error."""
        request = HttpRequest(api_request.method, self._path(api_request.key, api_request.query))
        for name, value in {
            "Host": self._host,
            "User-Agent": self._name,
            **api_request.headers,
        }.items():
            request.headers.add(name, value)
        if isinstance(api_request.body, bytes):
            request.body_stream = io.BytesIO(api_request.body)
            request.headers.add("Content-Length", str(len(api_request.body)))
        elif api_request.body is not None:
            request.body_stream = CrtRequestBody(crt_request, api_request.body)
            request.headers.add("Content-Length", str(api_request.body.size))
        elif api_request.method in {"PUT", "POST"}:
            request.headers.add("Content-Length", "0")
        made = self._client.make_request(
            type=api_request.kind,
            request=request,
            operation_name=api_request.operation,
            checksum_config=self._checks if api_request.operation in _CHECKED else None,
            on_headers=crt_request.on_headers,
            on_body=crt_request.on_body,
            on_done=crt_request.on_done,
        )
        crt_request.wait(made, self._transfer.timeout_s)

    def _check(self, crt_request: CrtRequest) -> None:
        if crt_request.refused:
            # The runtime looks into responses of success, too, as below.
            status = crt_request.status if crt_request.status >= 300 else 500
            raise response_error(
                status, crt_request.text, crt_request.headers, self._endpoint, self._target.bucket
            )
        check_success(crt_request.text)

    def _path(self, key: str, query: str) -> str:
        path = quote("/" + key, safe="/~")
        if not self._virtual:
            path = f"/{self._target.bucket}{path}"
        return f"{path}?{query}" if query else path


def _checksum(options: AwsCrtOptions) -> S3ChecksumConfig | None:
    if options.checksum == "none":
        return None
    return S3ChecksumConfig(
        algorithm=S3ChecksumAlgorithm[options.checksum.upper()],
        location=S3ChecksumLocation[options.checksum_in.upper()],
    )


def _trust() -> ClientTlsContext:
    options = TlsContextOptions()
    bundle = ca_bundle()
    try:
        if bundle is not None:
            options.override_default_trust_store_from_path(ca_filepath=str(bundle))
        return ClientTlsContext(options)
    except (OSError, RuntimeError) as exc:
        raise UsageError(
            f"the AWS runtime cannot use the certificates of {bundle or 'this system'}",
            hint="AWS_CA_BUNDLE has to hold certificates in PEM form, and nothing else",
        ) from exc
