"""The thin client: S3 over ``http.client``, signed by botocore, and nothing between.

``http.client`` speaks HTTP, botocore signs, and ``wire_connection`` moves the bytes:
from the keystream's buffer straight to the socket, and from the socket into a buffer
that is used again. docs/decisions/0003-wire.md has the measurements behind that split.

The payload is not hashed (``UNSIGNED-PAYLOAD``), unless an option asks for it: a store is
checked by reading back, by a reader that knows what the bytes have to be.
"""

import hashlib
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPResponse
from typing import ClassVar, Final, Literal
from urllib.parse import SplitResult, quote, urlsplit

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials, EnvProvider, ReadOnlyCredentials
from botocore.utils import get_environ_proxies

from serverless_bench.clients.base import (
    ClientInfo,
    Exchange,
    Sink,
    Source,
    is_virtual,
)
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
from serverless_bench.clients.wire_connection import WireConnection, translated
from serverless_bench.errors import AccessDenied, BadResponse
from serverless_bench.job.target import Target
from serverless_bench.job.transfer import Transfer
from serverless_bench.process import user_agent
from serverless_bench.rundir.record import Shown

_SMALL: Final = 1 << 20
"""Answers that are read into memory (errors, ids) are at most this long."""


class _Auth(S3SigV4Auth):
    """Signature version 4 with what stands for the body given, also over plain HTTP.

    botocore would hash the whole body when the URL is not https; S3 takes
    ``UNSIGNED-PAYLOAD`` either way (Amazon S3 API reference, "Authenticating requests").
    """

    def __init__(self, credentials: ReadOnlyCredentials, region: str, payload: str) -> None:
        super().__init__(credentials, "s3", region)
        self._payload = payload

    def payload(self, request: AWSRequest) -> str:
        """Return what stands for the body in the signature."""
        return self._payload


@dataclass(frozen=True, slots=True, kw_only=True)
class WireOptions:
    """What can be set of this client."""

    payload_signing: Literal["unsigned", "sha256"] = option(
        "unsigned", "what stands for the body in the signature; its hash makes the bytes twice"
    )


class WireClient:
    """Single S3 requests over persistent connections.

    Parameters
    ----------
    target, transfer
        Where objects live and how they are moved.
    """

    info: ClassVar[ClientInfo] = ClientInfo(
        attempts="exact",
        progress="wire",
        shows=frozenset(Shown),
        signing="SigV4, UNSIGNED-PAYLOAD unless payload_signing=sha256",
        checksum="none",
        options=WireOptions,
    )

    def __init__(self, target: Target, transfer: Transfer) -> None:
        self._hashes = parse(WireOptions, target).payload_signing == "sha256"
        self._target = target
        self._transfer = transfer
        self._region = target.region
        self._endpoint = urlsplit(target.endpoint_url)
        self._credentials = _find_credentials()
        self._idle: deque[WireConnection] = deque()
        self._name = user_agent()

    def move(self, *, region: str | None, endpoint_url: str | None) -> None:
        url = self._endpoint.geturl()
        there = moved_endpoint(url, self._region, region, endpoint_url)
        if there != url:
            self._endpoint = urlsplit(there)
            self.close()
        self._region = region or self._region

    def put(self, key: str, source: Source, exchange: Exchange, *, if_absent: bool = False) -> None:
        """Write one object; with ``if_absent``, one that is there is refused with 412."""
        headers = {"If-None-Match": "*"} if if_absent else {}
        with self._request("PUT", key, exchange, headers=headers, body=source) as (response, _):
            _text(response)

    def get(
        self,
        key: str,
        sink: Sink,
        exchange: Exchange,
        *,
        offset: int = 0,
        length: int | None = None,
    ) -> None:
        headers = {}
        if length is not None:
            headers["Range"] = f"bytes={offset}-{offset + length - 1}"
        with self._request("GET", key, exchange, headers=headers) as (response, connection):
            # By the header: rclone responses a range with status 200.
            if length is not None and "Content-Range" not in response.headers:
                raise BadResponse("the store ignored the range", status=response.status)
            connection.receive(response, sink, exchange)

    def get_head(self, key: str, length: int, exchange: Exchange) -> tuple[bytes, str, str]:
        """Return an object's first bytes, its entity tag and its ``Content-Range``."""
        request_headers = {"Range": f"bytes=0-{length - 1}"}
        with (
            self._request("GET", key, exchange, headers=request_headers) as (response, _),
            translated(),
        ):
            data = response.read(length)
            found = response.headers
            return data, found.get("ETag", ""), found.get("Content-Range", "")

    def head(self, key: str, exchange: Exchange) -> int:
        with self._request("HEAD", key, exchange) as (response, _):
            size = response.headers.get("Content-Length", "")
            response.read()
        if not size.isdigit():
            raise BadResponse("the store says no size", status=response.status)
        return int(size)

    def delete_many(self, keys: Sequence[str], exchange: Exchange) -> None:
        body, headers = deletion(keys)
        with self._request("POST", "", exchange, query="delete=", headers=headers, body=body) as (
            response,
            _,
        ):
            text = _text(response)
        check_success(text)

    def copy(self, source: str, key: str, exchange: Exchange) -> None:
        headers = {"x-amz-copy-source": quote(f"{self._target.bucket}/{source}", safe="/")}
        with self._request("PUT", key, exchange, headers=headers) as (response, _):
            text = _text(response)
        check_success(text)

    def delete(self, key: str, exchange: Exchange, *, etag: str = "") -> None:
        """Delete one object; with an entity tag, only if that is still its own."""
        headers = {"If-Match": etag} if etag else {}
        with self._request("DELETE", key, exchange, headers=headers) as (response, _):
            _text(response)

    def list_keys(self, prefix: str, after: str, exchange: Exchange) -> tuple[list[str], bool]:
        """Return up to a thousand keys behind ``after``, and whether there are more."""
        query = listing_query(prefix, after)
        with self._request("GET", "", exchange, query=query) as (response, _), translated():
            text = response.read()
        return listed(text, response.status)

    def create_multipart(self, key: str, exchange: Exchange) -> str:
        with self._request("POST", key, exchange, query="uploads=") as (response, _):
            upload_id = element(_text(response), "UploadId")
        if not upload_id:
            raise BadResponse("the store gave no UploadId")
        return upload_id

    def upload_part(
        self, key: str, upload_id: str, number: int, source: Source, exchange: Exchange
    ) -> str:
        query = f"partNumber={number}&uploadId={quote(upload_id, safe='')}"
        with self._request("PUT", key, exchange, query=query, body=source) as (response, _):
            _text(response)
            return response.headers.get("ETag", "")

    def complete_multipart(
        self, key: str, upload_id: str, etags: Sequence[str], exchange: Exchange
    ) -> None:
        query = f"uploadId={quote(upload_id, safe='')}"
        body = parts_body(etags)
        with self._request("POST", key, exchange, query=query, body=body) as (response, _):
            text = _text(response)
        check_success(text)

    def abort_multipart(self, key: str, upload_id: str, exchange: Exchange) -> None:
        query = f"uploadId={quote(upload_id, safe='')}"
        with self._request("DELETE", key, exchange, query=query) as (response, _):
            _text(response)

    def close(self) -> None:
        # A request that is under way finds that its list is no longer the client's.
        idle, self._idle = self._idle, deque()
        _close_all(idle)

    @contextmanager
    def _request(
        self,
        method: str,
        key: str,
        exchange: Exchange,
        *,
        query: str = "",
        headers: Mapping[str, str] | None = None,
        body: Source | bytes = b"",
    ) -> Iterator[tuple[HTTPResponse, WireConnection]]:
        """Send one request; the connection is kept if its response was read to the end."""
        url = self._url(key, query)
        parts = urlsplit(url)
        request_headers = {"Host": parts.netloc, "User-Agent": self._name, **(headers or {})}
        if method in {"PUT", "POST"}:
            request_headers["Content-Length"] = str(
                len(body) if isinstance(body, bytes) else body.size
            )
        request_headers = self._signed(method, url, request_headers, body)
        idle = self._idle
        connection = self._connect(parts, exchange, idle)
        response: HTTPResponse | None = None
        try:
            request_headers.update(connection.proxy_headers)
            path = url if connection.absolute else url.split(parts.netloc, 1)[1]
            response = connection.send_request(method, path, request_headers, body, exchange)
            exchange.answered(response.status, {k.lower(): v for k, v in response.headers.items()})
            if response.status >= 300:
                raise self._error(response)
            yield response, connection
        finally:
            if response is not None and connection.is_reusable(response):
                idle.append(connection)
                if idle is not self._idle:
                    # The client was closed, or has moved, meanwhile.
                    _close_all(idle)
            else:
                if response is not None:
                    # A response that is the last on its connection holds the socket open.
                    response.close()
                connection.close()

    def _connect(
        self, url: SplitResult, exchange: Exchange, idle: deque[WireConnection]
    ) -> WireConnection:
        # The one that was used last is the least likely to have been closed. Not "while there
        # is one": between the question and the response another thread may take it.
        while connection := _pop(idle):
            if not connection.is_stale():
                exchange.connected(connection.remote, reused=True)
                return connection
            connection.close()
        connection = WireConnection(
            url,
            proxy=get_environ_proxies(url.geturl()).get(url.scheme),
            block_bytes=self._transfer.block_bytes,
            timeout_s=self._transfer.timeout_s,
        )
        exchange.connected(connection.remote, reused=False)
        return connection

    def _url(self, key: str, query: str) -> str:
        endpoint, bucket = self._endpoint, self._target.bucket
        path = quote("/" + key, safe="/~")
        if is_virtual(self._target.addressing, endpoint.hostname or "", bucket):
            base = f"{endpoint.scheme}://{bucket}.{endpoint.netloc}"
        else:
            base = f"{endpoint.scheme}://{endpoint.netloc}/{bucket}"
        return f"{base}{path}?{query}" if query else base + path

    def _signed(
        self, method: str, url: str, headers: Mapping[str, str], body: Source | bytes
    ) -> dict[str, str]:
        if self._credentials is None:
            raise AccessDenied("no credentials: set AWS_ACCESS_KEY_ID or AWS_PROFILE")
        request = AWSRequest(method=method, url=url, headers=headers)
        frozen = self._credentials.get_frozen_credentials()
        payload = self._hash(body) if self._hashes else "UNSIGNED-PAYLOAD"
        _Auth(frozen, self._region, payload).add_auth(request)
        return dict(request.headers.items())

    def _hash(self, body: Source | bytes) -> str:
        if isinstance(body, bytes):
            return hashlib.sha256(body).hexdigest()
        hashed = hashlib.sha256()
        buffer = memoryview(bytearray(min(self._transfer.block_bytes, body.size)))
        for offset in range(0, body.size, len(buffer) or 1):
            block = buffer[: body.size - offset]
            body.readinto_at(offset, block)
            hashed.update(block)
        return hashed.hexdigest()

    def _error(self, response: HTTPResponse) -> Exception:
        headers = {name.lower(): value for name, value in response.headers.items()}
        return response_error(
            response.status, _text(response), headers, self._endpoint, self._target.bucket
        )


def _find_credentials() -> Credentials | None:
    # The environment stands first in the AWS chain, and on Lambda it is all there is; a
    # whole session would cost every cold start 100 ms, so it is imported when needed.
    if from_environment := EnvProvider().load():
        return from_environment
    from botocore.session import Session  # noqa: PLC0415

    return Session().get_credentials()


def _close_all(idle: deque[WireConnection]) -> None:
    while connection := _pop(idle):
        connection.close()


def _pop(idle: deque[WireConnection]) -> WireConnection | None:
    try:
        return idle.pop()
    except IndexError:
        return None


def _text(response: HTTPResponse) -> bytes:
    """Return a small response's body; reading it to the end frees the connection."""
    with translated():
        return response.read(_SMALL)
