"""A client as another package adds one: Python's own ``http.client`` below ``S3HttpClient``."""

from collections.abc import Mapping
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Any, ClassVar

from serverless_bench.base.errors import BadResponse, ConnectionLost, TimedOut
from serverless_bench.clients.base import ClientInfo, Exchange, NoOptions, Sink, Source
from serverless_bench.clients.environment import find_keys, no_keys
from serverless_bench.clients.library import LONG_TEXT
from serverless_bench.clients.s3_http import (
    METHODS,
    NO_HEADERS,
    S3HttpClient,
    S3Response,
    byte_range,
    check_success,
    response_error,
)
from serverless_bench.clients.sigv4 import Signer
from serverless_bench.rundir.record import Shown


class OutsideClient(S3HttpClient[NoOptions]):
    """A new connection for each request."""

    info: ClassVar[ClientInfo] = ClientInfo(
        attempts="exact",
        progress="body",
        shows=frozenset({Shown.CONTENT_RANGE}),
        signing="SigV4, UNSIGNED-PAYLOAD",
        checksum="none",
    )

    def put(self, key: str, source: Source, exchange: Exchange) -> None:
        self._send("PutObject", key, exchange, body=source)

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

    def _open(self) -> None:
        self._signer = Signer(self._region, self._host)

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
        if (keys := find_keys()) is None:
            raise no_keys()
        method = METHODS[operation]
        signed = self._signer.sign(keys, method, self._path(key), query, headers)
        with closing(HTTPConnection(self._host, timeout=self._transfer.timeout)) as connection:
            try:
                connection.putrequest(
                    method, self._path(key, query), skip_host=True, skip_accept_encoding=True
                )
                for line in signed.splitlines():
                    connection.putheader(*line.split(": ", 1))
                connection.putheader("user-agent", self._name)
                self._send_body(connection, body, exchange)
                return self._receive(connection.getresponse(), headers, sink, exchange)
            except TimeoutError as exc:
                raise TimedOut(str(exc)) from exc
            except (OSError, HTTPException) as exc:
                raise ConnectionLost(f"{type(exc).__name__}: {exc}") from exc

    def _send_body(
        self, connection: HTTPConnection, body: Source | bytes, exchange: Exchange
    ) -> None:
        size = len(body) if isinstance(body, bytes) else body.size
        connection.putheader("content-length", str(size))
        connection.endheaders()
        if isinstance(body, bytes):
            connection.send(body)
            return
        for block in self._blocks(body):
            connection.send(block)
            exchange.moved(len(block))

    def _receive(
        self,
        response: HTTPResponse,
        wanted: Mapping[str, str],
        sink: Sink | None,
        exchange: Exchange,
    ) -> S3Response:
        status = response.status
        headers = {name.lower(): value for name, value in response.getheaders()}
        exchange.answered(status, headers)
        if status >= 300 or sink is None:
            text = response.read(LONG_TEXT)
            if status >= 300:
                raise response_error(status, text, headers, self._endpoint, self._bucket)
            check_success(text)
            return S3Response(status, headers, text)
        if "range" in wanted and "content-range" not in headers:
            raise BadResponse("the store ignored the range", status=status)
        buffer: Any = memoryview(bytearray(self._transfer.block_size))
        position = 0
        while count := response.readinto(buffer):
            exchange.moved(count)
            sink.write_at(position, buffer[:count])
            position += count
        if response.length:
            raise ConnectionLost("the connection ended before the object did")
        return S3Response(status, headers, b"")
