"""The thin client parses heads and bodies, however a store splits them."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serverless_bench.base.errors import BadResponse, ConnectionLost, OperationError
from serverless_bench.base.units import KIB
from serverless_bench.clients.wire.connection import WireConnection
from serverless_bench.clients.wire.response import Response
from serverless_bench.features.testing.client_parts import Collector, PatientMeter

BODY = bytes(range(256)) * 20


@contextmanager
def answering(*pieces: bytes, close: bool = True) -> Iterator[WireConnection]:
    """Connect to a store that sends these pieces for any request."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            line, _ = server.accept()
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            # A client that has seen enough hangs up.
            with line, suppress(ConnectionError):
                line.recv(64 * KIB)
                for piece in pieces:
                    line.sendall(piece)
                if not close:
                    line.recv(1)

        thread = threading.Thread(target=answer)
        thread.start()
        url = urlsplit(f"http://127.0.0.1:{server.getsockname()[1]}")
        connection = WireConnection(
            url, proxy=None, block_bytes=KIB, timeout_s=10, exchange=PatientMeter()
        )
        try:
            yield connection
        finally:
            connection.close()
            thread.join()


def asked(connection: WireConnection, method: str = "GET") -> Response:
    return connection.send_request(method, b"GET / HTTP/1.1\r\n\r\n", b"", PatientMeter())


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """Return ``data`` in pieces."""
    ends = [0, *sorted({place % len(data) for place in places}), len(data)]
    return [data[begin:end] for begin, end in pairwise(ends) if begin < end]


def in_chunks(data: bytes, lengths: list[int]) -> bytes:
    made, offset = b"", 0
    for length in lengths:
        if part := data[offset : offset + length]:
            made += b"%x;note=1\r\n%s\r\n" % (len(part), part)
            offset += length
    rest = data[offset:]
    return (
        made + (b"%x\r\n%s\r\n" % (len(rest), rest) if rest else b"") + b"0\r\nTrailer: a\r\n\r\n"
    )


cuts = st.lists(st.integers(0, 10_000), max_size=4)


@given(cuts, st.integers(0, len(BODY)))
def test_an_object_however_it_is_cut(places: list[int], size: int) -> None:
    data = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + BODY[:size]
    with answering(*cut(data, places), close=False) as connection:
        response, sink, meter = asked(connection), Collector(), PatientMeter()
        connection.receive(response, sink, meter)
        assert sink.joined() == BODY[:size]
        assert meter.bytes == size
        assert connection.is_reusable


@given(cuts, st.lists(st.integers(1, 900), max_size=5))
def test_a_body_in_chunks_however_it_is_cut(places: list[int], lengths: list[int]) -> None:
    head = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    with answering(*cut(head + in_chunks(BODY, lengths), places), close=False) as connection:
        response = asked(connection)
        assert connection.read(response, 1 << 20, PatientMeter()) == BODY
        assert connection.is_reusable


def test_a_body_that_ends_with_the_connection() -> None:
    with answering(b"HTTP/1.0 403 No\r\n\r\n", BODY) as connection:
        response = asked(connection)
        assert connection.read(response, 1 << 20, PatientMeter()) == BODY
        assert not connection.is_reusable


def test_a_partial_read_leaves_the_rest_on_the_connection() -> None:
    data = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY
    with answering(data, close=False) as connection:
        response = asked(connection)
        assert connection.read(response, 10, PatientMeter()) == BODY[:10]
        assert not connection.is_reusable


@pytest.mark.parametrize(
    ("head", "reusable"),
    [
        (b"HTTP/1.1 204 No Content\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nConnection: Close\r\n\r\n", False),
        (b"HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n", False),
        (b"HTTP/1.0 200 OK\r\ncontent-length: 0\r\nConnection: keep-alive\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\nsurplus", False),
    ],
)
def test_when_a_connection_is_kept(head: bytes, *, reusable: bool) -> None:
    with answering(head, close=False) as connection:
        asked(connection)
        assert connection.is_reusable is reusable


def test_a_head_has_no_body_for_any_length() -> None:
    with answering(b"HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n", close=False) as connection:
        response = asked(connection, "HEAD")
        assert (response.length, response.headers["content-length"]) == (0, "900")
        assert connection.is_reusable


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", ConnectionLost),
        (b"HTTP/1.1 200 OK\r\ncontent-len", ConnectionLost),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n123", ConnectionLost),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\n12", ConnectionLost),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nnine\r\n12", BadResponse),
        (b"HTTP/1.1 200 OK\r\ncontent-length: nine\r\n\r\n", BadResponse),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n12", BadResponse),
        (b"HTTP/1.1 OK\r\n\r\n", BadResponse),
        (b"SSH-2.0-OpenSSH\r\n\r\n", BadResponse),
        (b"HTTP/1.1 200 OK\r\nno header\r\n\r\n", BadResponse),
        (b"HTTP/1.1 200 OK\r\na: " + bytes(100 * KIB), BadResponse),
        (b"HTTP/1.1 200 OK\r\na: " + bytes(100 * KIB) + b"\r\n\r\n", BadResponse),
    ],
)
def test_an_invalid_response_is_reported(data: bytes, error: type[OperationError]) -> None:
    with answering(data) as connection, pytest.raises(error):
        connection.read(asked(connection), 1 << 20, PatientMeter())


def test_an_object_of_no_stated_length_is_refused() -> None:
    data = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"
    with answering(data) as connection, pytest.raises(BadResponse, match="Content-Length"):
        connection.receive(asked(connection), Collector(), PatientMeter())
