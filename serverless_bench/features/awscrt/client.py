"""The S3 client of the AWS Common Runtime: event loops in C, and automatic splitting of requests.

A large put or get becomes several parallel requests, whose size and number the runtime derives from
``throughput_gbps``; they cannot be observed separately, so attempts count as hidden. Its retries
are disabled. With ``split=no`` a call is one request, as with the other clients, but a put is then
kept in memory completely. The payload is never hashed: the runtime signs ``UNSIGNED-PAYLOAD``, also
over http, and has no switch for it.

Bytes are produced and verified in the threads of the runtime. It reads a body a part ahead of the
network, so the progress of a put is ahead by up to a part per request.
"""

import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from awscrt.auth import (
    AwsCredentialsProvider,
    AwsSignedBodyHeaderType,
    AwsSigningAlgorithm,
    AwsSigningConfig,
)
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

from serverless_bench.base.errors import ConnectionLost, TimedOut, UsageError
from serverless_bench.base.units import GIB, MIB
from serverless_bench.clients.base import ClientInfo, Exchange, Sink, Source
from serverless_bench.clients.environment import ca_bundle
from serverless_bench.clients.library import check_range
from serverless_bench.clients.options import option
from serverless_bench.clients.s3_http import (
    METHODS,
    NO_HEADERS,
    S3HttpClient,
    S3Response,
    byte_range,
    check_success,
    response_error,
)
from serverless_bench.features.awscrt.request import CrtRequest, CrtRequestBody
from serverless_bench.features.library_clients.errors import look
from serverless_bench.job.endpoint import is_directory_bucket
from serverless_bench.rundir.record import Shown

_NO_SUCH_RANGE: Final = 416
"""HTTP status; stores also return it for the first range of an empty object."""
_SPLIT: Final = {"GetObject": S3RequestType.GET_OBJECT, "PutObject": S3RequestType.PUT_OBJECT}
"""Request type that the runtime splits, by operation."""
_CHECKED: Final = frozenset({"PutObject", "UploadPart"})
"""Operations that carry a checksum of the written data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsCrtOptions:
    """The options of the runtime."""

    split: bool = option(
        default=True, about="let the runtime make several requests of one large put or get"
    )
    part_mb: int | None = option(None, "MiB of one of those requests", least=5)
    throughput_gbps: float | None = option(
        None, "Gbit/s to aim at: decides part size and connections", least=0.001
    )
    connections: int | None = option(None, "connections of one put or get at most", least=1)
    threads: int | None = option(None, "event loop threads; its own: one per CPU", least=1)
    memory_gb: int | None = option(None, "GiB of buffers at most", least=1)
    checksum: Literal["none", "crc32", "crc32c", "crc64nvme", "sha1", "sha256"] = option(
        "none", "checksum of written bytes"
    )
    checksum_in: Literal["header", "trailer"] = option(
        "trailer", "place of the checksum: the header needs a pass over the part before it is sent"
    )


class AwsCrtClient(S3HttpClient[AwsCrtOptions]):
    """Requests through ``awscrt.s3.S3Client``.

    A client serves a single endpoint: the runtime caches addresses by host name, without the port.

    Raises
    ------
    UsageError
        If the runtime does not have an option of the target, or cannot use ``AWS_CA_BUNDLE``.
    """

    info: ClassVar[ClientInfo] = ClientInfo(
        attempts="hidden",
        progress="body",
        shows=frozenset({Shown.CONTENT_RANGE}),
        signing="SigV4, UNSIGNED-PAYLOAD",
        checksum="none unless checksum is set",
        forkable=False,
        express=True,
        encrypts=True,
        options=AwsCrtOptions,
        quirks=frozenset({"looks_up_names", "own_attempts", "ranges_always", "takes_all"}),
    )

    def put(self, key: str, source: Source, exchange: Exchange) -> None:
        """Write an object; the runtime chooses the number of requests, unless ``split=no``."""
        self._send("PutObject", key, exchange, headers=self._encryption, body=source)

    def get(
        self,
        key: str,
        sink: Sink,
        exchange: Exchange,
        *,
        offset: int = 0,
        length: int | None = None,
    ) -> None:
        """Read an object; the runtime chooses the number of requests, unless ``split=no``."""
        crt_request = CrtRequest(exchange, sink=sink, start=offset)
        self._perform(crt_request, "GetObject", key, headers=byte_range(offset, length))
        if length is None and crt_request.status == _NO_SUCH_RANGE:
            # An empty object has no ranges, so it is requested without one.
            crt_request = CrtRequest(exchange, sink=sink)
            self._perform(crt_request, "GetObject", key, split=False)
        self._check(crt_request)
        wanted = byte_range(offset, length).get("range", "")
        check_range(wanted, crt_request.status, crt_request.headers)

    def close(self) -> None:
        """Release the client: the runtime stops the threads after the last request."""
        del self._client

    def _open(self) -> None:
        options, region = self._options, self._region
        self._checks = _checksum(options)
        # Separate event loops, so that their number is per client and they stop with it.
        loops = EventLoopGroup(options.threads)
        bootstrap = ClientBootstrap(loops, DefaultHostResolver(loops))
        secure = self._endpoint.scheme == "https"
        self._client = S3Client(
            bootstrap=bootstrap,
            region=region,
            tls_mode=S3RequestTlsMode.ENABLED if secure else S3RequestTlsMode.DISABLED,
            tls_connection_options=_trust().new_connection_options() if secure else None,
            signing_config=_signing(
                region,
                AwsCredentialsProvider.new_default_chain(bootstrap),
                express=is_directory_bucket(self._bucket),
            ),
            enable_s3express=is_directory_bucket(self._bucket),
            part_size=options.part_mb and options.part_mb * MIB,
            throughput_target_gbps=options.throughput_gbps,
            memory_limit=options.memory_gb and options.memory_gb * GIB,
            max_active_connections_override=options.connections,
            retry_config=S3RetryConfig(retry_mode=S3RetryMode.NONE),
            connect_timeout_ms=round(self._connect_s * 1000),
        )

    def _send(
        self,
        operation: str,
        key: str,
        exchange: Exchange,
        *,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: Source | bytes = b"",
    ) -> S3Response:
        crt_request = CrtRequest(exchange)
        self._perform(crt_request, operation, key, query=query, headers=headers, body=body)
        self._check(crt_request)
        return S3Response(crt_request.status, crt_request.headers, crt_request.text)

    def _perform(
        self,
        crt_request: CrtRequest,
        operation: str,
        key: str,
        *,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: Source | bytes = b"",
        split: bool = True,
    ) -> None:
        """Send a request and return when its response has arrived, even if it is an error."""
        method = METHODS[operation]
        request = HttpRequest(method, self._path(key, query))
        sent = {"Host": self._host, "User-Agent": self._name, **headers}
        if isinstance(body, bytes):
            request.body_stream, size = io.BytesIO(body), len(body)
        else:
            request.body_stream, size = CrtRequestBody(crt_request, body), body.size
        if method in {"PUT", "POST"}:
            sent["Content-Length"] = str(size)
        for name, value in sent.items():
            request.headers.add(name, value)
        kind = _SPLIT.get(operation) if split and self._options.split else None
        s3_request = self._client.make_request(
            type=kind or S3RequestType.DEFAULT,
            request=request,
            operation_name=operation,
            checksum_config=self._checks if operation in _CHECKED else None,
            on_headers=crt_request.on_headers,
            on_body=crt_request.on_body,
            on_done=crt_request.on_done,
        )
        try:
            crt_request.wait(s3_request, self._transfer.timeout)
        except (ConnectionLost, TimedOut) as exc:
            if not crt_request.status and (refused := look(self._server)):
                raise refused from exc
            raise

    def _check(self, crt_request: CrtRequest) -> None:
        if crt_request.refused:
            # The runtime checks successful responses for errors, too, as below.
            status = crt_request.status if crt_request.status >= 300 else 500
            raise response_error(
                status, crt_request.text, crt_request.headers, self._endpoint, self._bucket
            )
        check_success(crt_request.text)


def _signing(region: str, provider: AwsCredentialsProvider, *, express: bool) -> AwsSigningConfig:
    """Return the signing configuration; with ``express`` the runtime creates sessions."""
    if not express:
        return create_default_s3_signing_config(region=region, credential_provider=provider)
    return AwsSigningConfig(
        algorithm=AwsSigningAlgorithm.V4_S3EXPRESS,
        service="s3express",
        region=region,
        credentials_provider=provider,
        use_double_uri_encode=False,
        should_normalize_uri_path=False,
        signed_body_value="UNSIGNED-PAYLOAD",
        signed_body_header_type=AwsSignedBodyHeaderType.X_AMZ_CONTENT_SHA_256,
    )


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
            hint="set AWS_CA_BUNDLE to a file that contains only PEM certificates",
        ) from exc
