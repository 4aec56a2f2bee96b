"""The thin client: S3 directly over a socket.

``sigv4`` signs, ``response`` parses heads, and ``connection`` moves the bytes: from the buffer of
the keystream straight to the socket, and from the socket into a reused buffer. The measurements
behind this design are in docs/decisions/0004.

The payload is not hashed (``UNSIGNED-PAYLOAD``) unless an option requests it: a store is verified
by reading the objects back and comparing them with the expected bytes.
"""

import hashlib
import socket
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Final, Literal

from serverless_bench.base.errors import AccessDenied, BadResponse, OperationError
from serverless_bench.base.plugins import Registry
from serverless_bench.clients.base import ClientInfo, Exchange, HedgedExchange, Sink, Source
from serverless_bench.clients.environment import find_proxy, lasting_keys
from serverless_bench.clients.library import LONG_TEXT, SHORT_TEXT, check_range
from serverless_bench.clients.options import option
from serverless_bench.clients.s3_http import (
    METHODS,
    NO_HEADERS,
    OpenUpload,
    S3HttpClient,
    S3Response,
    byte_range,
    check_success,
    read_uploads,
    response_error,
    uploads_query,
)
from serverless_bench.clients.sigv4 import UNSIGNED_PAYLOAD, Keys, Signer
from serverless_bench.clients.wire.connect import Opening
from serverless_bench.clients.wire.connection import WireConnection
from serverless_bench.clients.wire.response import Response
from serverless_bench.job.endpoint import is_directory_bucket
from serverless_bench.job.target import Target, Transfer
from serverless_bench.rundir.record import Shown

_RACES: Final = Registry[Any]("races", {})
"""How a second request may overtake the first, by client."""
_SESSIONS: Final = Registry[Any]("sessions", {})
"""Temporary keys for directory buckets, by client."""
_WITH_BODY: Final = frozenset({"PUT", "POST"})
_OF_MANY: Final = frozenset(
    {"DeleteObjects", "ListMultipartUploads", "ListObjectVersions", "ListObjectsV2"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WireOptions:
    """The options of this client."""

    payload_signing: Literal["unsigned", "sha256"] = option(
        "unsigned",
        "value for the body in the signature; its hash needs a second pass to generate the bytes",
    )


class WireClient(S3HttpClient[WireOptions]):
    """Single S3 requests over persistent connections."""

    info: ClassVar[ClientInfo] = ClientInfo(
        attempts="exact",
        progress="wire",
        shows=frozenset(Shown),
        signing="SigV4, UNSIGNED-PAYLOAD unless payload_signing=sha256",
        checksum="none",
        options=WireOptions,
        quirks=frozenset({"bare_puts"}),
        express=True,
        conditional=True,
        encrypts=True,
        versions=True,
        hedges=True,
    )

    def __init__(self, target: Target, transfer: Transfer, *, called: str = "") -> None:
        self._idle: deque[WireConnection] = deque()
        self._is_closed = False
        super().__init__(target, transfer, called=called)
        self._hashes = self._options.payload_signing == "sha256"
        self._keys = self._find_keys()

    def _open(self) -> None:
        host, service, self._sessions = self._server.netloc, "s3", None
        if is_directory_bucket(self._bucket):
            sessions = _SESSIONS.load("wire")(self._region, host, self._create_session)
            self._sessions, service = sessions, sessions.service
        self._signer = Signer(self._region, host, service=service)
        # Idle connections lead to the previous endpoint.
        self._close_idle()

    def _find_keys(self) -> Callable[[], Keys | None]:
        """Return a function that returns the current keys, or None without any."""
        return _find_keys()

    def put(
        self,
        key: str,
        source: Source,
        exchange: Exchange,
        *,
        if_absent: bool = False,
        condition: Mapping[str, str] = NO_HEADERS,
    ) -> None:
        """Write an object; with ``if_absent``, an existing one causes an error with status 412."""
        headers = {**({"if-none-match": "*"} if if_absent else condition), **self._encryption}
        self._send("PutObject", key, exchange, headers=headers, body=source)

    def put_if(self, key: str, source: Source, exchange: Exchange, *, etag: str | None) -> None:
        self.put(key, source, exchange, if_absent=etag is None, condition={"if-match": etag or ""})

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

    def get_hedged(
        self,
        key: str,
        sink: Sink,
        exchange: HedgedExchange,
        *,
        offset: int = 0,
        length: int | None = None,
    ) -> None:
        headers = byte_range(offset, length)
        self._send("GetObject", key, exchange, headers=headers, sink=sink, hedge=exchange)

    def get_tagged(self, key: str, sink: Sink, exchange: Exchange) -> str:
        return self._send("GetObject", key, exchange, sink=sink).headers.get("etag", "")

    def get_head(
        self, key: str, length: int, exchange: Exchange, *, query: str = ""
    ) -> tuple[bytes, str, str]:
        """Return the first bytes of an object, its entity tag and its ``Content-Range``."""
        headers = byte_range(0, length) if length else NO_HEADERS
        response = self._send("GetObject", key, exchange, query=query, headers=headers)
        fields, data = response.headers, response.text[: length or None]
        return data, fields.get("etag", ""), fields.get("content-range", "")

    def delete(self, key: str, exchange: Exchange, *, etag: str = "") -> bool:
        """Delete an object, and return whether the bucket keeps it as an older version."""
        headers = {"if-match": etag} if etag else NO_HEADERS
        response = self._send("DeleteObject", key, exchange, headers=headers)
        return response.headers.get("x-amz-delete-marker") == "true"

    def list_uploads(
        self, prefix: str, after: OpenUpload | None, exchange: Exchange
    ) -> tuple[list[OpenUpload], OpenUpload | None]:
        """Return a page of open uploads, and the last upload before the next page."""
        query = uploads_query(prefix, after)
        response = self._send("ListMultipartUploads", "", exchange, query=query)
        return read_uploads(response.text, prefix)

    def close(self) -> None:
        self._is_closed = True
        self._close_idle()

    def _close_idle(self) -> None:
        # A request in progress detects by its list that the client has moved or closed.
        idle, self._idle = self._idle, deque()
        _close_all(idle)

    def _send(  # noqa: PLR0913 - the parts of a request
        self,
        operation: str,
        key: str,
        exchange: Exchange,
        *,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: Source | bytes = b"",
        sink: Sink | None = None,
        hedge: HedgedExchange | None = None,
    ) -> S3Response:
        """Send a request; the connection is kept if its response was read completely.

        With ``hedge``, which is ``exchange``, the response may be that of a second request.
        """
        signing = self._signing(operation, exchange)
        idle = self._idle
        connection = self._connect(exchange, idle)
        try:
            method = METHODS[operation]
            head = self._head(signing, method, self._path(key), query, headers, body, connection)
            if hedge is None:
                response = connection.send_request(method, head, body, exchange)
                exchange.answered(response.status, response.headers)
            else:
                refusal = partial(self._refusal, operation, signing[1])
                race = _RACES.load("wire")(connection, hedge, self._transfer.timeout, refusal)
                open_second = partial(self._connect, idle=idle, connect=race.connect)
                connection, exchange, response = race.run(head, open_second)
            status, answered = response.status, response.headers
            if status >= 300:
                raise self._refusal(operation, signing[1], connection, exchange, response)
            if sink is None:
                text = _read_text(operation, response, connection, exchange)
                return S3Response(status, answered, text)
            check_range(headers.get("range", ""), status, answered)
            connection.receive(response, sink, exchange)
            return S3Response(status, answered, b"")
        finally:
            if not connection.is_reusable:
                connection.close()
            else:
                idle.append(connection)
                if self._is_closed or idle is not self._idle:
                    # The client was closed or moved during the request.
                    _close_all(idle)

    def _refusal(
        self,
        operation: str,
        keys: Keys,
        connection: WireConnection,
        exchange: Exchange,
        response: Response,
    ) -> OperationError:
        """Return the error of a response that is not a success."""
        status, answered = response.status, response.headers
        text = connection.read(response, SHORT_TEXT, exchange)
        error = response_error(status, text, answered, self._endpoint, self._bucket)
        if self._sessions is not None:
            error = self._sessions.judge(operation, text, keys, error)
        return error

    def _connect(
        self,
        exchange: Opening,
        idle: deque[WireConnection],
        connect: Callable[[float], socket.socket] | None = None,
    ) -> WireConnection:
        # The most recently used connection is the least likely to have been closed. The list is not
        # checked first, because another thread may empty it in between.
        try:
            while (connection := idle.pop()).is_stale():
                connection.close()
        except IndexError:
            pass
        else:
            exchange.connected(connection.remote, reused=True)
            return connection
        connection = WireConnection(
            self._server,
            proxy=find_proxy(self._server.geturl()),
            block_bytes=self._transfer.block_size,
            timeout_s=self._transfer.timeout,
            exchange=exchange,
            connected=connect,
        )
        exchange.connected(connection.remote, reused=False)
        return connection

    def _create_session(self, exchange: Exchange) -> S3Response:
        mode = {"x-amz-create-session-mode": "ReadWrite"}
        return self._send("CreateSession", "", exchange, query="session=", headers=mode)

    def _signing(self, operation: str, exchange: Exchange) -> tuple[Signer, Keys]:
        """Return the signer of a request and its keys: the client's, or those of a session."""
        if self._sessions is not None and operation not in self._sessions.without:
            return self._sessions.signer, self._sessions.keys(exchange)
        if (keys := self._keys()) is None:
            raise AccessDenied("no credentials: set AWS_ACCESS_KEY_ID or AWS_PROFILE")
        return self._signer, keys

    def _head(
        self,
        signing: tuple[Signer, Keys],
        method: str,
        path: str,
        query: str,
        headers: Mapping[str, str],
        body: Source | bytes,
        connection: WireConnection,
    ) -> bytes:
        """Return the signed head of a request."""
        signer, keys = signing
        payload = self._hash(body) if self._hashes else UNSIGNED_PAYLOAD
        signed = signer.sign(keys, method, path, query, headers, payload)
        other_headers = f"user-agent: {self._name}\r\n{connection.proxy_lines}"
        if method in _WITH_BODY:
            size = len(body) if isinstance(body, bytes) else body.size
            other_headers = f"{other_headers}content-length: {size}\r\n"
        if connection.absolute:
            path = f"{self._server.scheme}://{self._server.netloc}{path}"
        if query:
            path = f"{path}?{query}"
        return f"{method} {path} HTTP/1.1\r\n{signed}{other_headers}\r\n".encode()

    def _hash(self, body: Source | bytes) -> str:
        if isinstance(body, bytes):
            return hashlib.sha256(body).hexdigest()
        hashed = hashlib.sha256()
        for block in self._blocks(body):
            hashed.update(block)
        return hashed.hexdigest()


def _read_text(
    operation: str, response: Response, connection: WireConnection, exchange: Exchange
) -> bytes:
    """Return the body of a successful response, after checking it for an error.

    Raises
    ------
    OperationError
        If it contains an error, or is longer than a valid response can be.
    """
    if response.length == 0:
        return b""
    most = LONG_TEXT if operation in _OF_MANY else SHORT_TEXT
    text = connection.read(response, most, exchange)
    if operation != "GetObject":
        if len(text) == most:
            # A truncated listing is an error, and must not look like a shorter listing.
            raise BadResponse("the store's response is too long", status=response.status)
        if not operation.startswith("List"):
            # The caller parses a listing anyway.
            check_success(text)
    return text


def _find_keys() -> Callable[[], Keys | None]:
    """Return a function that returns the current keys, or None without any.

    The environment comes first in the AWS chain, and is the only source on Lambda. botocore would
    add 100 ms to every cold start, so it is imported only when needed.
    """
    keys = lasting_keys()
    if keys is not None:
        return lambda: keys
    from botocore.exceptions import BotoCoreError

    from serverless_bench.clients.aws_credentials import AwsSession

    session, resolved = AwsSession(), list[Any]()
    # The credentials renew themselves. After an error they are resolved again by the first request,
    # which then reports the error.
    with suppress(BotoCoreError):
        resolved.append(session.get_credentials())

    def look() -> Keys | None:
        try:
            credentials = resolved[0] if resolved else session.get_credentials()
            if credentials is None:
                return None
            frozen = credentials.get_frozen_credentials()
        except BotoCoreError as exc:
            raise AccessDenied(f"the credentials cannot be renewed: {exc}") from exc
        if not frozen.access_key or not frozen.secret_key:
            return None
        return Keys(frozen.access_key, frozen.secret_key, frozen.token)

    return look


def _close_all(idle: deque[WireConnection]) -> None:
    with suppress(IndexError):
        while True:
            idle.pop().close()
