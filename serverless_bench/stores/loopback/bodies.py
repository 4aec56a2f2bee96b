"""Bodies of requests: from the socket, through up to two layers of chunks, to bytes.

boto3 over https frames an upload twice: HTTP/1.1 chunks around ``aws-chunked`` ones.
Both have one grammar, so one class takes either off.
"""

import io
import re
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from serverless_bench.stores.loopback.answers import S3Error

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

HEAD: Final = 1 << 13
"""Bytes read ahead, for heads; bodies go straight to where they belong."""
_MAX_LINE: Final = 1 << 14
_HEX: Final = re.compile(rb"[0-9a-fA-F]{1,15}")


class SocketReader(io.RawIOBase):
    """What comes in over a connection.

    Parameters
    ----------
    connection
        A blocking socket.
    whole
        Whether the kernel may wait until a large buffer is full, which saves calls; TLS
        sockets cannot.
    """

    def __init__(self, connection: socket.socket, *, whole: bool) -> None:
        super().__init__()
        self._connection = connection
        self._whole = whole

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        """Fill ``buffer``, or at least a part of it where it is a head's."""
        view = memoryview(buffer).cast("B")
        # Only a body asks for more than a head at once, and only for bytes it will get.
        flags = socket.MSG_WAITALL if self._whole and len(view) > HEAD else 0
        return self._connection.recv_into(view, len(view), flags)


def buffered(connection: socket.socket, *, whole: bool) -> io.BufferedReader:
    """Return what heads are read from, line by line, and bodies without a copy."""
    return io.BufferedReader(SocketReader(connection, whole=whole), HEAD)


class Sized(io.RawIOBase):
    """The next ``size`` bytes of ``source``.

    Parameters
    ----------
    source
        Positioned at the first of them.
    size
        ``Content-Length``.
    """

    def __init__(self, source: io.BufferedReader, size: int) -> None:
        super().__init__()
        self._source = source
        self._left = size

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        """Fill ``buffer`` as far as the body goes.

        Raises
        ------
        ConnectionError
            If the connection ends before the body does.
        """
        view = memoryview(buffer).cast("B")[: self._left]
        count = self._source.readinto(view) if len(view) else 0
        if count < len(view):
            raise ConnectionResetError("the body ends before its length")
        self._left -= count
        return count


class Chunks(io.RawIOBase):
    """What is inside of chunks: ``SIZE[;extension]``, data, and so on; 0, trailers.

    Parameters
    ----------
    source
        Positioned at the first chunk's size.

    Notes
    -----
    RFC 9112, section 7.1, and Amazon S3 API reference, "Signature calculations: transferring
    payload in multiple chunks". Signatures and checksums in there are not looked at.
    """

    def __init__(self, source: io.BufferedReader) -> None:
        super().__init__()
        self._source = source
        self._left = 0
        self._begun = False
        self._ended = False

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        """Fill ``buffer`` from one chunk.

        Raises
        ------
        S3Error
            If these are no chunks.
        ConnectionError
            If the connection ends before the last chunk.
        """
        view = memoryview(buffer).cast("B")
        if not self._left and not self._ended:
            self._next()
        view = view[: self._left]
        count = self._source.readinto(view) if len(view) else 0
        if count < len(view):
            raise ConnectionResetError("the body ends in the middle of a chunk")
        self._left -= count
        return count

    def _next(self) -> None:
        if self._begun and self._line():
            raise S3Error(400, "IncompleteBody", "a chunk is longer than it says")
        self._begun = True
        size = self._line().partition(b";")[0].strip()
        if not _HEX.fullmatch(size):
            raise S3Error(400, "IncompleteBody", "a chunk does not say its size")
        self._left = int(size, 16)
        if not self._left:
            self._ended = True
            while self._line():
                pass

    def _line(self) -> bytes:
        line = self._source.readline(_MAX_LINE)
        if not line.endswith(b"\n"):
            raise ConnectionResetError("the body ends between two chunks")
        return line.rstrip(b"\r\n")


class Body:
    """The body of one request.

    Parameters
    ----------
    source
        Positioned at its first byte.
    headers
        Of the request; names in any case.

    Raises
    ------
    S3Error
        If the headers do not say how long it is.
    """

    def __init__(self, source: io.BufferedReader, headers: Mapping[str, str]) -> None:
        length = headers.get("content-length", "0")
        if not length.isdecimal():
            raise S3Error(400, "InvalidArgument", "Content-Length is no number")
        chunked = headers.get("transfer-encoding", "").lower() == "chunked"
        self._outer: io.RawIOBase = Chunks(source) if chunked else Sized(source, int(length))
        self._inner = self._outer
        self.size: int | None = None if chunked else int(length)
        """Bytes of the object; None if the request does not say."""
        if is_aws_chunked(headers):
            self._inner = Chunks(io.BufferedReader(self._outer, 1 << 16))
            decoded = headers.get("x-amz-decoded-content-length", "")
            self.size = int(decoded) if decoded.isdecimal() else None

    def fill(self, room: memoryview) -> int:
        """Fill ``room`` as far as the body goes and return how many bytes that was."""
        filled = 0
        while filled < len(room):
            count = self._inner.readinto(room[filled:])
            if not count:
                break
            filled += count
        return filled

    def drain(self, room: memoryview) -> None:
        """Read what is left, so that the next request begins where it should."""
        while self._outer.readinto(room):
            pass


def is_aws_chunked(headers: Mapping[str, str]) -> bool:
    """Tell whether the body is in chunks of Amazon's own."""
    encodings = headers.get("content-encoding", "").lower().split(",")
    return "aws-chunked" in [encoding.strip() for encoding in encodings] or headers.get(
        "x-amz-content-sha256", ""
    ).startswith("STREAMING-")
