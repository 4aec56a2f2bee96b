"""Bodies of uploads: from the socket, out of their chunks, compared with the keystream.

boto3 over https frames an upload twice: HTTP/1.1 chunks around ``aws-chunked`` ones.
Both have one grammar, so one class takes either off.
"""

import io
import re
import socket
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from serverless_bench.job.keys import declared_size, hash_key
from serverless_bench.lab.loopback.s3 import S3Error
from serverless_bench.payload.keystream import PIECE, Keystream, identify
from serverless_bench.payload.shaped import content_of

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

HEAD: Final = 1 << 13
"""Bytes read ahead, for heads; bodies go straight to where they belong."""
_MAX_LINE: Final = 1 << 14
_HEX: Final = re.compile(rb"[0-9a-fA-F]{1,15}")


class _Readable(io.RawIOBase):
    def readable(self) -> bool:
        return True


class SocketReader(_Readable):
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

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        """Fill ``buffer``, or at least a part of it where it is a head's."""
        view = memoryview(buffer).cast("B")
        # Only a body asks for more than a head at once, and only for bytes it will get.
        flags = socket.MSG_WAITALL if self._whole and len(view) > HEAD else 0
        return self._connection.recv_into(view, len(view), flags)


class Framed(_Readable):
    """The next ``size`` bytes of ``source``, or what is inside of its chunks.

    Chunks are ``SIZE[;extension]``, data, and so on; 0, trailers.

    Parameters
    ----------
    source
        Positioned at the first byte, or at the first chunk's size.
    size
        ``Content-Length``; None for chunks.

    Notes
    -----
    RFC 9112, section 7.1, and Amazon S3 API reference, "Signature calculations: transferring
    payload in multiple chunks". Signatures and checksums in there are not looked at.
    """

    def __init__(self, source: io.BufferedReader, size: int | None) -> None:
        super().__init__()
        self._source = source
        self._left = size or 0
        self._begun = False
        self._ended = size is not None

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        """Fill ``buffer`` as far as the body, or the present chunk, goes.

        Raises
        ------
        S3Error
            If these are no chunks.
        ConnectionError
            If the connection ends before the body does.
        """
        if not self._left and not self._ended:
            self._next()
        view = memoryview(buffer).cast("B")[: self._left]
        count = self._source.readinto(view) if len(view) else 0
        if count < len(view):
            raise ConnectionResetError("the body ends before its length")
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
        self.size: int | None = None if chunked else int(length)
        """Bytes of the object; None if the request does not say."""
        self._inner = self._outer = Framed(source, self.size)
        if is_aws_chunked(headers):
            self._inner = Framed(io.BufferedReader(self._outer, 1 << 16), None)
            decoded = headers.get("x-amz-decoded-content-length", "")
            self.size = int(decoded) if decoded.isdecimal() else None

    def fill(self, buffer: memoryview) -> int:
        """Fill ``buffer`` as far as the body goes and return how many bytes that was."""
        filled = 0
        while filled < len(buffer):
            count = self._inner.readinto(buffer[filled:])
            if not count:
                break
            filled += count
        return filled

    def drain(self, buffer: memoryview) -> None:
        """Read what is left, so that the next request begins where it should."""
        while self._outer.readinto(buffer):
            pass


def is_aws_chunked(headers: Mapping[str, str]) -> bool:
    """Tell whether the body is in chunks of Amazon's own."""
    encodings = headers.get("content-encoding", "").lower().split(",")
    return "aws-chunked" in [encoding.strip() for encoding in encodings] or headers.get(
        "x-amz-content-sha256", ""
    ).startswith("STREAMING-")


KEPT_BYTES: Final = 1 << 16
"""Objects that sbench did not make, such as markers, are kept up to this size."""
KEPT_UNDECLARED_BYTES: Final = 1 << 26
"""The same where the key declares no size: records of functions grow with their operations."""
TELLING_BYTES: Final = 47
"""Any 47 bytes hold two whole cipher blocks, which say where they come from."""
_GENERATIONS: Final = 16
"""Generations that are tried for an object too short to say its own."""

_scratch: Final[deque[bytearray]] = deque()
"""What compares are made in: as many as compare at once, not one per connection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadCheck:
    """What one upload was."""

    size: int
    bad_bytes: int
    """Bytes that are not the keystream that the upload seems to be."""
    generation: int | None
    """None if the bytes are no keystream of the key, or were not compared."""
    offset: int | None
    """Where in the object they begin; None as above."""
    verbatim: bytes | None
    """The whole upload if it is short and no keystream, or too short to know."""

    @property
    def checked_bytes(self) -> int:
        """Bytes that are right."""
        return 0 if self.generation is None else self.size - self.bad_bytes


class Inspector:
    """Takes an upload block by block.

    Parameters
    ----------
    key
        Of the object.
    offset
        Where the upload has to begin; None for a part, which says that by itself.
    verifies
        False counts bytes and does not compare them.
    """

    def __init__(self, key: str, *, offset: int | None, verifies: bool) -> None:
        self._key = key
        self._offset = offset
        self._verifies = verifies
        self._keystream: Keystream | None = None
        self._start = 0
        self._size = 0
        self._bad = 0
        self._kept: bytearray | None = bytearray()
        self._most = KEPT_BYTES if declared_size(key) is not None else KEPT_UNDECLARED_BYTES

    def take(self, block: memoryview) -> None:
        """Take the next block; the first is of ``KEPT_BYTES`` at least, or the only one."""
        if not self._size and self._verifies:
            self._begin(block)
        if self._keystream is not None or self._size + len(block) > self._most:
            self._kept = None
        elif self._kept is not None:
            self._kept += block
        if self._keystream is not None:
            offset = self._start + self._size
            if not _agrees(self._keystream, offset, block):
                wrong = self._keystream.differences(offset, block)
                self._bad += sum(difference.bad_bytes for difference in wrong)
        self._size += len(block)

    def result(self) -> UploadCheck:
        """Return what came; call it after the last block."""
        known = self._keystream
        return UploadCheck(
            size=self._size,
            bad_bytes=self._bad,
            generation=None if known is None else known.generation,
            offset=None if known is None else self._start,
            verbatim=bytes(self._kept) if known is None and self._kept is not None else None,
        )

    def _begin(self, block: memoryview) -> None:
        origin = identify(block[:TELLING_BYTES])
        mine = origin is not None and origin.key_hash == hash_key(self._key)
        if origin is not None and mine and self._offset in {None, origin.offset}:
            self._keystream = content_of(self._key, origin.generation)
            self._start = origin.offset
        elif self._offset is not None:
            self._start = self._offset
            if len(block) < TELLING_BYTES:
                self._keystream = matching(self._key, self._offset, block)
            if self._keystream is None and declared_size(self._key) is not None:
                # Nothing else can be meant; so the wrong bytes can be counted.
                self._keystream = content_of(self._key)


def matching(key: str, offset: int, data: memoryview) -> Keystream | None:
    """Return the first generation of ``key`` that has ``data`` at ``offset``."""
    candidates = (content_of(key, generation) for generation in range(_GENERATIONS))
    return next((k for k in candidates if k.agrees(offset, data)), None)


def _agrees(keystream: Keystream, offset: int, block: memoryview) -> bool:
    try:
        scratch = _scratch.pop()
    except IndexError:
        scratch = bytearray(PIECE)
    try:
        return keystream.agrees(offset, block, scratch)
    finally:
        _scratch.append(scratch)
