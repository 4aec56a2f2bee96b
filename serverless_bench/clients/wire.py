"""The thin client: S3 over a socket, and nothing between.

``sigv4`` signs, ``wire_response`` reads heads, and ``wire_connection`` moves the bytes:
from the keystream's buffer straight to the socket, and from the socket into a buffer
that is used again. docs/decisions/0003 and 0036 have the measurements behind that.

The payload is not hashed (``UNSIGNED-PAYLOAD``), unless an option asks for it: a store is
checked by reading back, by a reader that knows what the bytes have to be.
"""

import hashlib
import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Final, Literal
from urllib.parse import SplitResult, quote, urlsplit

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
from serverless_bench.clients.sigv4 import UNSIGNED_PAYLOAD, Keys, Signer
from serverless_bench.clients.wire_connection import WireConnection
from serverless_bench.clients.wire_response import Response
from serverless_bench.errors import AccessDenied, BadResponse
from serverless_bench.job.target import Target
from serverless_bench.job.transfer import Transfer
from serverless_bench.process import user_agent
from serverless_bench.rundir.record import Shown
from serverless_bench.units import MIB

_SMALL: Final = MIB
"""Responses that are read into memory (errors, ids) are at most this long."""
_LISTING: Final = 64 * MIB
"""A thousand keys of 1,024 bytes, each byte of which may be encoded as three, and more."""


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
        self._signer = Signer(target.region)
        self._keys = _find_keys()
        self._idle: deque[WireConnection] = deque()
        self._name = user_agent()
        self._go_to(target.endpoint_url)

    def _go_to(self, endpoint_url: str) -> None:
        """Send requests to this endpoint from now on."""
        self._endpoint = endpoint = urlsplit(endpoint_url)
        bucket = self._target.bucket
        if is_virtual(self._target.addressing, endpoint.hostname or "", bucket):
            self._host, self._path = f"{bucket}.{endpoint.netloc}", ""
        else:
            self._host, self._path = endpoint.netloc, f"/{bucket}"

    def move(self, *, region: str | None, endpoint_url: str | None) -> None:
        url = self._endpoint.geturl()
        there = moved_endpoint(url, self._signer.region, region, endpoint_url)
        if there != url:
            self._go_to(there)
            self.close()
        if region:
            self._signer = Signer(region)

    def put(self, key: str, source: Source, exchange: Exchange, *, if_absent: bool = False) -> None:
        """Write one object; with ``if_absent``, one that is there is refused with 412."""
        headers = {"if-none-match": "*"} if if_absent else None
        self._request("PUT", key, exchange, headers=headers, body=source)

    def get(
        self,
        key: str,
        sink: Sink,
        exchange: Exchange,
        *,
        offset: int = 0,
        length: int | None = None,
    ) -> None:
        headers = None
        if length is not None:
            headers = {"range": f"bytes={offset}-{offset + length - 1}"}

        def receive(connection: WireConnection, response: Response) -> bytes:
            # By the header: rclone responds to a range with status 200.
            if length is not None and "content-range" not in response.headers:
                raise BadResponse("the store ignored the range", status=response.status)
            connection.receive(response, sink, exchange)
            return b""

        self._request("GET", key, exchange, headers=headers, receive=receive)

    def get_head(self, key: str, length: int, exchange: Exchange) -> tuple[bytes, str, str]:
        """Return an object's first bytes, its entity tag and its ``Content-Range``."""
        headers = {"range": f"bytes=0-{length - 1}"}
        receive = partial(WireConnection.read, most=length, exchange=exchange)
        data, found = self._request("GET", key, exchange, headers=headers, receive=receive)
        return data, found.get("etag", ""), found.get("content-range", "")

    def head(self, key: str, exchange: Exchange) -> int:
        _, headers = self._request("HEAD", key, exchange)
        size = headers.get("content-length", "")
        if not size.isdigit():
            raise BadResponse("the store says no size")
        return int(size)

    def delete_many(self, keys: Sequence[str], exchange: Exchange) -> None:
        body, headers = deletion(keys)
        text, _ = self._request("POST", "", exchange, query="delete=", headers=headers, body=body)
        check_success(text)

    def copy(self, source: str, key: str, exchange: Exchange) -> None:
        headers = {"x-amz-copy-source": quote(f"{self._target.bucket}/{source}", safe="/")}
        text, _ = self._request("PUT", key, exchange, headers=headers)
        check_success(text)

    def delete(self, key: str, exchange: Exchange, *, etag: str = "") -> None:
        """Delete one object; with an entity tag, only if that is still its own."""
        self._request("DELETE", key, exchange, headers={"if-match": etag} if etag else None)

    def list_keys(self, prefix: str, after: str, exchange: Exchange) -> tuple[list[str], bool]:
        """Return up to a thousand keys behind ``after``, and whether there are more."""
        query = listing_query(prefix, after)
        receive = partial(WireConnection.read, most=_LISTING, exchange=exchange)
        text, _ = self._request("GET", "", exchange, query=query, receive=receive)
        return listed(text, 200)

    def create_multipart(self, key: str, exchange: Exchange) -> str:
        text, _ = self._request("POST", key, exchange, query="uploads=")
        upload_id = element(text, "UploadId")
        if not upload_id:
            raise BadResponse("the store gave no UploadId")
        return upload_id

    def upload_part(
        self, key: str, upload_id: str, number: int, source: Source, exchange: Exchange
    ) -> str:
        query = f"partNumber={number}&uploadId={quote(upload_id, safe='')}"
        _, headers = self._request("PUT", key, exchange, query=query, body=source)
        return headers.get("etag", "")

    def complete_multipart(
        self, key: str, upload_id: str, etags: Sequence[str], exchange: Exchange
    ) -> None:
        query = f"uploadId={quote(upload_id, safe='')}"
        text, _ = self._request("POST", key, exchange, query=query, body=parts_body(etags))
        check_success(text)

    def abort_multipart(self, key: str, upload_id: str, exchange: Exchange) -> None:
        query = f"uploadId={quote(upload_id, safe='')}"
        self._request("DELETE", key, exchange, query=query)

    def close(self) -> None:
        # A request that is under way finds that its list is no longer the client's.
        idle, self._idle = self._idle, deque()
        _close_all(idle)

    def _request(
        self,
        method: str,
        key: str,
        exchange: Exchange,
        *,
        query: str = "",
        headers: Mapping[str, str] | None = None,
        body: Source | bytes = b"",
        receive: Callable[[WireConnection, Response], bytes] | None = None,
    ) -> tuple[bytes, dict[str, str]]:
        """Make one request.

        Parameters
        ----------
        method, key, query, headers, body
            Of the request.
        exchange
            Told of everything that happens.
        receive
            Returns the body; without it a small one is returned.

        Returns
        -------
        bytes, dict
            The response's body and headers.

        Raises
        ------
        OperationError
            If there is no response, or it says that the request failed.
        """
        idle = self._idle
        connection = self._connect(exchange, idle)
        try:
            head = self._head(method, key, query, headers, body, connection)
            response = connection.send_request(method, head, body, exchange)
            exchange.answered(response.status, response.headers)
            if response.status >= 300:
                raise response_error(
                    response.status,
                    connection.read(response, _SMALL, exchange),
                    response.headers,
                    self._endpoint,
                    self._target.bucket,
                )
            if receive is not None:
                return receive(connection, response), response.headers
            return connection.read(response, _SMALL, exchange), response.headers
        finally:
            if not connection.is_reusable:
                connection.close()
            else:
                idle.append(connection)
                if idle is not self._idle:
                    # The client was closed, or has moved, meanwhile.
                    _close_all(idle)

    def _connect(self, exchange: Exchange, idle: deque[WireConnection]) -> WireConnection:
        # The one that was used last is the least likely to have been closed. Not "while there
        # is one": between the question and the response another thread may take it.
        while connection := _pop(idle):
            if not connection.is_stale():
                exchange.connected(connection.remote, reused=True)
                return connection
            connection.close()
        url = self._endpoint._replace(netloc=self._host)
        connection = WireConnection(
            url,
            proxy=_find_proxy(url),
            block_bytes=self._transfer.block_bytes,
            timeout_s=self._transfer.timeout_s,
        )
        exchange.connected(connection.remote, reused=False)
        return connection

    def _head(
        self,
        method: str,
        key: str,
        query: str,
        headers: Mapping[str, str] | None,
        body: Source | bytes,
        connection: WireConnection,
    ) -> bytes:
        """Return the head of a request, signed."""
        if (keys := self._keys()) is None:
            raise AccessDenied("no credentials: set AWS_ACCESS_KEY_ID or AWS_PROFILE")
        path = self._path + quote(f"/{key}", safe="/~")
        sent = {"host": self._host, "user-agent": self._name}
        if headers:
            sent.update(headers)
        if method in {"PUT", "POST"}:
            sent["content-length"] = str(len(body) if isinstance(body, bytes) else body.size)
        payload = self._hash(body) if self._hashes else UNSIGNED_PAYLOAD
        signed = self._signer.sign(keys, method, path, query, sent, payload)
        if connection.proxy_headers:
            signed.update(connection.proxy_headers)
        if connection.absolute:
            path = f"{self._endpoint.scheme}://{self._host}{path}"
        if query:
            path = f"{path}?{query}"
        lines = "".join([f"{name}: {value}\r\n" for name, value in signed.items()])
        return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode()

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


def _find_keys() -> Callable[[], Keys | None]:
    """Return what returns the keys of the moment, or None if there are none.

    The environment stands first in the AWS chain, and on Lambda it is all there is; botocore
    would cost every cold start 100 ms, so it is imported when needed.
    """
    access_key = os.environ.get("AWS_ACCESS_KEY_ID")
    secret_key = os.environ.get("AWS_SECRET_ACCESS_KEY")
    if access_key and secret_key and "AWS_CREDENTIAL_EXPIRATION" not in os.environ:
        keys = Keys(access_key, secret_key, os.environ.get("AWS_SESSION_TOKEN") or None)
        return lambda: keys
    from botocore.session import Session  # noqa: PLC0415

    credentials = Session().get_credentials()

    def look() -> Keys | None:
        if credentials is None:
            return None
        frozen = credentials.get_frozen_credentials()
        if not frozen.access_key or not frozen.secret_key:
            return None
        return Keys(frozen.access_key, frozen.secret_key, frozen.token)

    return look


def _find_proxy(url: SplitResult) -> str | None:
    """Return the URL of the proxy that the environment has for a URL."""
    if not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    # It knows the rules of NO_PROXY, and takes half a cold start to import.
    from botocore.utils import get_environ_proxies  # noqa: PLC0415

    proxy: str | None = get_environ_proxies(url.geturl()).get(url.scheme)
    return proxy


def _close_all(idle: deque[WireConnection]) -> None:
    while connection := _pop(idle):
        connection.close()


def _pop(idle: deque[WireConnection]) -> WireConnection | None:
    try:
        return idle.pop()
    except IndexError:
        return None
