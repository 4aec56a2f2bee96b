"""The thin client: S3 over ``http.client``, signed by botocore, and nothing between.

``http.client`` speaks HTTP, botocore signs, and ``wire_connection`` moves the bytes:
from the keystream's buffer straight to the socket, and from the socket into a buffer
that is used again. docs/decisions/0003-wire.md has the measurements behind that split.

The payload is not hashed (``UNSIGNED-PAYLOAD``), unless an option asks for it: a store is
checked by reading back, by a reader that knows what the bytes have to be.
"""

import hashlib
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPResponse
from typing import ClassVar, Final, Literal
from urllib.parse import SplitResult, urlsplit

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials, EnvProvider, ReadOnlyCredentials
from botocore.utils import get_environ_proxies

from serverless_bench.clients.base import ClientInfo, Exchange, Sink, Source
from serverless_bench.clients.options import option
from serverless_bench.clients.s3_http import (
    METHODS,
    NO_HEADERS,
    S3HttpClient,
    S3Response,
    byte_range,
    response_error,
)
from serverless_bench.clients.wire_connection import WireConnection, translated
from serverless_bench.errors import AccessDenied, BadResponse
from serverless_bench.job.target import Target
from serverless_bench.job.transfer import Transfer
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


class WireClient(S3HttpClient[WireOptions]):
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
        self._idle: deque[WireConnection] = deque()
        super().__init__(target, transfer)
        self._hashes = self._options.payload_signing == "sha256"
        self._credentials = _find_credentials()

    def _open(self) -> None:
        self._server = urlsplit(f"{self._endpoint.scheme}://{self._host}")
        # What is idle leads to where the bucket was.
        self.close()

    def put(self, key: str, source: Source, exchange: Exchange, *, if_absent: bool = False) -> None:
        """Write one object; with ``if_absent``, one that is there is refused with 412."""
        headers = {"if-none-match": "*"} if if_absent else NO_HEADERS
        self._send("PutObject", key, exchange, headers=headers, body=source)

    def get(
        self,
        key: str,
        sink: Sink,
        exchange: Exchange,
        *,
        offset: int = 0,
        length: int | None = None,
    ) -> None:
        self._send("GetObject", key, exchange, headers=byte_range(offset, length), sink=sink)

    def get_head(self, key: str, length: int, exchange: Exchange) -> tuple[bytes, str, str]:
        """Return an object's first bytes, its entity tag and its ``Content-Range``."""
        response = self._send("GetObject", key, exchange, headers=byte_range(0, length))
        found = response.headers
        return response.text[:length], found.get("etag", ""), found.get("content-range", "")

    def delete(self, key: str, exchange: Exchange, *, etag: str = "") -> None:
        """Delete one object; with an entity tag, only if that is still its own."""
        headers = {"if-match": etag} if etag else NO_HEADERS
        self._send("DeleteObject", key, exchange, headers=headers)

    def close(self) -> None:
        # A request that is under way finds that its list is no longer the client's.
        idle, self._idle = self._idle, deque()
        _close_all(idle)

    def _send(
        self,
        operation: str,
        key: str,
        exchange: Exchange,
        *,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: Source | bytes = b"",
        sink: Sink | None = None,
    ) -> S3Response:
        """Make one request; the connection is kept if its response was read to the end."""
        method, path = METHODS[operation], self._path(key, query)
        server, idle = self._server, self._idle
        url = f"{server.scheme}://{server.netloc}{path}"
        request_headers = {"Host": server.netloc, "User-Agent": self._name, **headers}
        if method in {"PUT", "POST"}:
            size = len(body) if isinstance(body, bytes) else body.size
            request_headers["Content-Length"] = str(size)
        request_headers = self._signed(method, url, request_headers, body)
        connection = self._connect(server, exchange, idle)
        response: HTTPResponse | None = None
        try:
            request_headers.update(connection.proxy_headers)
            line = url if connection.absolute else path
            response = connection.send_request(method, line, request_headers, body, exchange)
            status = response.status
            answered = {name.lower(): value for name, value in response.headers.items()}
            exchange.answered(status, answered)
            if sink is None or status >= 300:
                # A listing that ends too early is an error, and not a shorter listing.
                limit = None if operation == "ListObjectsV2" and status < 300 else _SMALL
                with translated():
                    text = response.read(limit)
                if status >= 300:
                    raise response_error(status, text, answered, self._endpoint, self._bucket)
                return S3Response(status, answered, text)
            # By the header: rclone responds to a range with status 200.
            if "range" in headers and "content-range" not in answered:
                raise BadResponse("the store ignored the range", status=status)
            connection.receive(response, sink, exchange)
            return S3Response(status, answered, b"")
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
        self, server: SplitResult, exchange: Exchange, idle: deque[WireConnection]
    ) -> WireConnection:
        # The one that was used last is the least likely to have been closed. Not "while there
        # is one": between the question and the response another thread may take it.
        while connection := _pop(idle):
            if not connection.is_stale():
                exchange.connected(connection.remote, reused=True)
                return connection
            connection.close()
        connection = WireConnection(
            server,
            proxy=get_environ_proxies(server.geturl()).get(server.scheme),
            block_bytes=self._transfer.block_bytes,
            timeout_s=self._transfer.timeout_s,
        )
        exchange.connected(connection.remote, reused=False)
        return connection

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
        for block in self._blocks(body):
            hashed.update(block)
        return hashed.hexdigest()


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
