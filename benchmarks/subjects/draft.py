"""Lowest cost of an object: a plain draft in Python, a bare socket, and the bytes."""

import hashlib
import hmac
import os
import socket
import ssl
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Final
from urllib.parse import quote, urlsplit

from benchmarks.common import bare_request
from serverless_bench.base.clock import monotonic_ns, utc_stamp, wall_ns
from serverless_bench.base.units import KIB, MIB, NS_PER_S
from serverless_bench.payload.keystream import PIECE, Keystream

BUCKET, REGION = "bench", "us-east-1"
Run = Callable[[str, Sequence[str]], None]
"""Puts or gets the objects of some keys."""
_UNSIGNED: Final = "UNSIGNED-PAYLOAD"
_SIGNED: Final = "host;x-amz-content-sha256;x-amz-date"


class Draft:
    """Writes and reads objects over one connection, with almost no records.

    A signature with a cached key, one send, as few receives as the response allows, every byte
    generated or compared, and four times kept for each operation.

    Parameters
    ----------
    url
        URL of the store.
    size
        Size of the largest object, in bytes.
    """

    def __init__(self, url: str, size: int) -> None:
        parts = urlsplit(url)
        self._host = parts.netloc
        self._line = connected(url)
        self._room = memoryview(bytearray(size + 8 * KIB))
        self._scratch = bytearray(min(size, PIECE))
        self._second = 0
        self.rows: list[tuple[str, int, int, int, int, int, str | None, bool]] = []

    def put(self, key: str, size: int) -> None:
        """Write one object."""
        begin_ns = monotonic_ns()
        head = self._head("PUT", key, f"Content-Length: {size}\r\n")
        body = self._room[len(head) : len(head) + size]
        self._room[: len(head)] = head
        Keystream(key).readinto_at(0, body)
        self._line.sendall(self._room[: len(head) + size])
        sent_ns = monotonic_ns()
        status, headers, _, _ = self._response()
        row = (begin_ns, sent_ns, monotonic_ns(), status, headers.get("x-amz-request-id"), True)
        self.rows.append((key, size, *row))

    def get(self, key: str, size: int) -> None:  # noqa: ARG002 - as of put
        """Read one object and compare it."""
        begin_ns = monotonic_ns()
        self._line.sendall(self._head("GET", key))
        status, headers, begin, filled = self._response()
        first_ns = monotonic_ns()
        end = begin + int(headers["content-length"])
        while filled < end:
            filled += self._line.recv_into(self._room[filled:end])
        last_ns = monotonic_ns()
        agrees = Keystream(key).agrees(0, self._room[begin:end])
        row = (begin_ns, first_ns, last_ns, status, headers.get("x-amz-request-id"), agrees)
        self.rows.append((key, end - begin, *row))

    def put_pieces(self, key: str, size: int) -> None:
        """Write one object with a send for each piece of its keystream, and keep nothing."""
        begin, made = 0, Keystream(key)
        head = self._head("PUT", key, f"Content-Length: {size}\r\n")
        self._room[: len(head)] = head
        for at in range(0, size, MIB):
            begin = 0 if at else len(head)
            end = begin + min(MIB, size - at)
            made.readinto_at(at, self._room[begin:end])
            self._line.sendall(self._room[:end])
        assert self._response()[0] == HTTPStatus.OK

    def get_pieces(self, key: str, size: int) -> None:
        """Read one object, compare it piece by piece, and keep nothing."""
        self._line.sendall(self._head("GET", key))
        status, headers, begin, end = self._response()
        assert (status, headers["content-length"]) == (HTTPStatus.OK, str(size))
        made, piece = Keystream(key), self._room[begin:]
        at, filled = 0, end - begin
        while at < size:
            while filled < min(MIB, size - at):
                filled += self._line.recv_into(piece[filled : min(MIB, size - at)])
            assert made.agrees(at, piece[:filled], self._scratch)
            at, filled = at + filled, 0

    def _head(self, method: str, key: str, extra: str = "") -> bytes:
        path, date, host = quote(f"/{BUCKET}/{key}", safe="/~"), self._date(), self._host
        canonical = (
            f"{method}\n{path}\n\nhost:{host}\nx-amz-content-sha256:{_UNSIGNED}\n"
            f"x-amz-date:{date}\n\n{_SIGNED}\n{_UNSIGNED}"
        )
        hashed = hashlib.sha256(canonical.encode()).hexdigest()
        text = f"AWS4-HMAC-SHA256\n{date}\n{self._scope}\n{hashed}"
        signature = hmac.digest(self._key, text.encode(), "sha256").hex()
        return (
            f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nx-amz-content-sha256: {_UNSIGNED}\r\n"
            f"x-amz-date: {date}\r\nAuthorization: AWS4-HMAC-SHA256 Credential="
            f"{os.environ['AWS_ACCESS_KEY_ID']}/{self._scope}, SignedHeaders={_SIGNED}, "
            f"Signature={signature}\r\n{extra}\r\n"
        ).encode()

    def _date(self) -> str:
        second = wall_ns() // NS_PER_S
        if second != self._second:
            self._second = second
            self._amz_date = utc_stamp(second * NS_PER_S)
            day = self._amz_date[:8]
            self._scope = f"{day}/{REGION}/s3/aws4_request"
            self._key = ("AWS4" + os.environ["AWS_SECRET_ACCESS_KEY"]).encode()
            for part in self._scope.split("/"):
                self._key = hmac.digest(self._key, part.encode(), "sha256")
        return self._amz_date

    def _response(self) -> tuple[int, dict[str, str], int, int]:
        """Return status, headers, the start of the body, and the end of the received bytes."""
        filled = 0
        while True:
            filled += self._line.recv_into(self._room[filled:])
            head, end, _ = bytes(self._room[: min(filled, 8 * KIB)]).partition(b"\r\n\r\n")
            if end:
                break
        lines = head.decode("latin-1").split("\r\n")
        pairs = (line.partition(":") for line in lines[1:])
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        return int(lines[0][9:12]), headers, len(head) + 4, filled


def connected(url: str) -> socket.socket:
    """Return a connection to the store."""
    parts = urlsplit(url)
    line = socket.create_connection((parts.hostname, parts.port))
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if parts.scheme == "https":
        context = ssl.create_default_context(cafile=os.environ["AWS_CA_BUNDLE"])
        line = context.wrap_socket(line, server_hostname=parts.hostname)
    return line


def in_threads(move: Callable[[int, str, str], None], threads: int) -> Run:
    """Return a function that gives every thread its keys, for ``move(thread, kind, key)``."""

    def run(kind: str, keys: Sequence[str]) -> None:
        def work(number: int) -> None:
            for key in keys[number::threads]:
                move(number, kind, key)

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(work, range(threads)))

    return run


def drafted(url: str, size: int, threads: int) -> Run:
    """Return a function that moves objects with the draft, over a connection per thread."""
    lanes = [Draft(url, size) for _ in range(threads)]

    def move(number: int, kind: str, key: str) -> None:
        getattr(lanes[number], kind)(key, size)
        row = lanes[number].rows[-1]
        assert (row[5], row[7]) == (200, True)

    return in_threads(move, threads)


def pieced(url: str, size: int, threads: int) -> Run:
    """Return a function that only generates and sends pieces, or receives and compares them."""
    lanes = [Draft(url, MIB) for _ in range(threads)]
    moves = {"put": Draft.put_pieces, "get": Draft.get_pieces}
    return in_threads(lambda number, kind, key: moves[kind](lanes[number], key, size), threads)


def over_socket(url: str, size: int, threads: int) -> Run:
    """Return a function that sends one buffer, or receives into one, without reading bytes."""
    lanes = [connected(url) for _ in range(threads)]
    room = memoryview(bytearray(MIB))
    blocks = [room[: min(MIB, size - at)] for at in range(0, size, MIB)]

    def move(number: int, kind: str, key: str) -> None:
        sent = blocks if kind == "put" else ()
        bare_request(lanes[number], kind.upper(), f"/{BUCKET}/{key}", size, room, sent)

    return in_threads(move, threads)


def made(url: str, size: int, threads: int) -> Run:  # noqa: ARG001 - as of the others
    """Return a function that generates or compares the bytes of objects, without transfers."""
    room = memoryview(bytearray(size))
    Keystream(f"bytes.{size}").readinto_at(0, room)
    block = memoryview(bytearray(min(size, MIB)))

    def move(_: int, kind: str, key: str) -> None:
        keystream = Keystream(key if kind == "put" else f"bytes.{size}")
        for at in range(0, size, MIB):
            if kind == "put":
                keystream.readinto_at(at, block[: size - at])
            else:
                assert keystream.agrees(at, room[at : at + MIB])

    return in_threads(move, threads)
