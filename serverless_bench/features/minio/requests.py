"""Internals of minio-py below its public methods: requests, payload hashes and errors."""

import io
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast
from urllib.parse import quote
from xml.etree.ElementTree import ParseError

import urllib3
from minio import Minio
from minio.error import MinioException
from minio.helpers import sha256_hash
from urllib3.exceptions import HTTPError, NewConnectionError, ProtocolError, SSLError
from urllib3.exceptions import TimeoutError as Urllib3Timeout

from serverless_bench.base.errors import (
    BadRequest,
    BadResponse,
    ConnectionLost,
    OperationError,
    TimedOut,
)
from serverless_bench.base.units import KIB
from serverless_bench.clients.base import Exchange
from serverless_bench.clients.environment import certificate_error
from serverless_bench.clients.library import lower, read_text
from serverless_bench.clients.s3_http import check_success
from serverless_bench.clients.send_queue import AT_ONCE
from serverless_bench.clients.watched_pools import HERE, sending_here, watched

_BODIES: Final = frozenset({200, 204, 206})
"""Statuses of responses whose body the library leaves to its caller."""
_SENT_AT_ONCE: Final = 64 * KIB
"""Size of the blocks of a body; arrival is checked only between blocks."""


class CountedMinio(Minio):
    """minio-py with access to its requests for parts, and with a choice of the payload hash."""

    payload_signing = "library"
    """``library``, ``sha256`` or ``unsigned``."""

    def setup(self, *, payload_signing: str, virtual: bool, name: str) -> None:
        """Set the payload hash, the addressing of the bucket, and the user agent."""
        self.payload_signing = payload_signing
        self._base_url.virtual_style_flag = virtual
        self._user_agent = f"{self._user_agent} {name}"

    create_upload = Minio._create_multipart_upload  # noqa: SLF001 - for access
    send_part = Minio._upload_part  # noqa: SLF001
    complete_upload = Minio._complete_multipart_upload  # noqa: SLF001
    abort_upload = Minio._abort_multipart_upload  # noqa: SLF001

    def copy_in(self, bucket: str, source: str, key: str, encryption: Mapping[str, str]) -> None:
        """Copy in one request; ``copy_object`` would send a HEAD request first."""
        headers = {"x-amz-copy-source": quote(f"/{bucket}/{source}", safe="/"), **encryption}
        self._execute("PUT", bucket, key, headers=cast("Any", headers))

    def _build_headers(
        self,
        host: str,
        headers: Any = None,
        body: bytes | None = None,
        creds: Any = None,
    ) -> Any:
        if self.payload_signing == "library":
            return super()._build_headers(host, headers, body, creds)
        built, date = super()._build_headers(host, headers, None, creds)
        unsigned = self.payload_signing == "unsigned"
        built["x-amz-content-sha256"] = "UNSIGNED-PAYLOAD" if unsigned else sha256_hash(body)
        if body:
            built["Content-Length"] = str(len(body))
        return built, date


class CountedPool(urllib3.PoolManager):
    """urllib3's pool without retries and redirects; it reports the bytes on the wire."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        pools = self.pool_classes_by_scheme.items()
        self.pool_classes_by_scheme = {scheme: watched(pool) for scheme, pool in pools}

    def urlopen(  # type: ignore[override]
        self,
        method: str,
        url: str,
        redirect: bool = True,  # noqa: FBT001, FBT002 - the library's
        **settings: Any,
    ) -> urllib3.BaseHTTPResponse:
        """Send a request, and report it to the exchange of this thread."""
        exchange = HERE.exchange
        body = settings.get("body")
        if body and exchange is not None and method == "PUT":
            settings["body"] = self._counted(body, exchange)
        preload = settings.pop("preload_content", True)
        response: urllib3.BaseHTTPResponse = super().urlopen(
            method, url, redirect=False, retries=False, preload_content=False, **settings
        )
        if preload or response.status not in _BODIES:
            # The library would read the body without a limit, and decode it.
            text = b"".join(read_text(response, exchange))
            if response.status in _BODIES:
                check_success(text)
            response = urllib3.HTTPResponse(
                io.BytesIO(text),
                headers=response.headers,
                status=response.status,
                reason=response.reason,
                preload_content=False,
                decode_content=False,
                enforce_content_length=False,
                request_method=method,
            )
            response.read(cache_content=True)
        HERE.response = response
        if exchange is not None:
            exchange.answered(response.status, lower(response.headers))
        return response

    def _counted(self, body: bytes, exchange: Exchange) -> Iterator[memoryview]:
        view, counted = memoryview(body), 0
        if len(view) > AT_ONCE and (connection := sending_here()) is not None:
            connection.watch(exchange, lambda: counted)
        for offset in range(0, len(view), _SENT_AT_ONCE):
            block = view[offset : offset + _SENT_AT_ONCE]
            yield block
            counted += len(block)
            exchange.moved(len(block))
        if HERE.whole:
            exchange.sent()


ERRORS: Final[Mapping[type[Exception], type[OperationError]]] = {
    # It is a subclass of urllib3's timeouts, too.
    NewConnectionError: ConnectionLost,
    Urllib3Timeout: TimedOut,
    HTTPError: ConnectionLost,
    ValueError: BadRequest,
    MinioException: BadResponse,
    ParseError: BadResponse,
}
"""Exceptions of minio-py without an S3 error response; the first match wins."""


def error_of(exc: Exception) -> OperationError:
    """Return the error for an exception of the library or of urllib3."""
    if isinstance(exc, SSLError) and (refused := certificate_error(str(exc))):
        return refused
    error = next(error for raised, error in ERRORS.items() if isinstance(exc, raised))
    if isinstance(exc, ProtocolError) and any(isinstance(a, TimeoutError) for a in exc.args):
        error = TimedOut
    return error(f"{type(exc).__name__}: {exc}"[:200])
