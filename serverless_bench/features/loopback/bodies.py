"""Bodies of uploads: read from the socket, unframed, and compared with the keystream.

boto3 over https frames an upload twice: HTTP/1.1 chunks around ``aws-chunked`` chunks.
Both have the same grammar, so one class decodes both.
"""

import hashlib
import io
import re
import socket
import zlib
from base64 import b64encode
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from serverless_bench.features.loopback.s3 import S3Error
from serverless_bench.job.keys import declared_size, hash_key
from serverless_bench.payload.keystream import PIECE, Keystream, identify
from serverless_bench.payload.shaped import content_of

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

HEAD: Final = 1 << 13
"""Bytes read ahead for heads; bodies are read directly into the destination."""
_MAX_LINE: Final = 1 << 14
_HEX: Final = re.compile(rb"[0-9a-fA-F]{1,15}")


class _Readable(io.RawIOBase):
    def readable(self) -> bool:
        return True


class SocketReader(_Readable):
    """Bytes received on a connection.

    Parameters
    ----------
    connection
        A blocking socket.
    whole
        Whether the kernel may wait until a large buffer is full, to save calls; TLS sockets
        do not support this.
    """

    def __init__(self, connection: socket.socket, *, whole: bool) -> None:
        super().__init__()
        self._connection = connection
        self._whole = whole

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        """Fill ``buffer``; a buffer of a head's size may be filled in part."""
        view = memoryview(buffer).cast("B")
        # Only a body needs more than a head at once, and only for bytes that will arrive.
        flags = socket.MSG_WAITALL if self._whole and len(view) > HEAD else 0
        return self._connection.recv_into(view, len(view), flags)


class Framed(_Readable):
    """The next ``size`` bytes of ``source``, or the content of the chunks.

    Chunks are ``SIZE[;extension]``, data, and so on; 0, trailers.

    Parameters
    ----------
    source
        Source positioned at the first byte, or at the size of the first chunk.
    size
        ``Content-Length``; None for chunks.

    Notes
    -----
    RFC 9112, section 7.1, and Amazon S3 API reference, "Signature calculations: transferring
    payload in multiple chunks". Signatures and checksums within the chunks are ignored.
    """

    def __init__(self, source: io.BufferedReader, size: int | None) -> None:
        super().__init__()
        self._source = source
        self._left = size or 0
        self._begun = False
        self._ended = size is not None

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        """Fill ``buffer`` up to the end of the body, or of the present chunk.

        Raises
        ------
        S3Error
            If the chunks are malformed.
        ConnectionError
            If the connection is closed before the end of the body.
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
            raise S3Error(400, "IncompleteBody", "a chunk is longer than its declared size")
        self._begun = True
        size = self._line().partition(b";")[0].strip()
        if not _HEX.fullmatch(size):
            raise S3Error(400, "IncompleteBody", "a chunk does not declare its size")
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
    """The body of a request.

    Parameters
    ----------
    source
        Source positioned at the first byte of the body.
    headers
        Headers of the request, with names in any case.

    Raises
    ------
    S3Error
        If the headers do not declare the length.
    """

    def __init__(self, source: io.BufferedReader, headers: Mapping[str, str]) -> None:
        length = headers.get("content-length", "0")
        if not length.isdecimal():
            raise S3Error(400, "InvalidArgument", "Content-Length is not a number")
        chunked = headers.get("transfer-encoding", "").lower() == "chunked"
        self.size: int | None = None if chunked else int(length)
        """Bytes of the object; None if the request does not declare them."""
        self._inner = self._outer = Framed(source, self.size)
        if is_aws_chunked(headers):
            self._inner = Framed(io.BufferedReader(self._outer, 1 << 16), None)
            decoded = headers.get("x-amz-decoded-content-length", "")
            self.size = int(decoded) if decoded.isdecimal() else None

    def fill(self, buffer: memoryview) -> int:
        """Fill ``buffer`` up to the end of the body and return the number of bytes read."""
        filled = 0
        while filled < len(buffer):
            count = self._inner.readinto(buffer[filled:])
            if not count:
                break
            filled += count
        return filled

    def drain(self, buffer: memoryview) -> None:
        """Read the rest, so that the next request starts at the right place."""
        while self._outer.readinto(buffer):
            pass


def is_aws_chunked(headers: Mapping[str, str]) -> bool:
    """Return whether the body is in Amazon's chunks."""
    encodings = headers.get("content-encoding", "").lower().split(",")
    return "aws-chunked" in [encoding.strip() for encoding in encodings] or headers.get(
        "x-amz-content-sha256", ""
    ).startswith("STREAMING-")


KEPT_BYTES: Final = 1 << 16
"""Objects that sbench did not generate, such as markers, are stored up to this size."""
KEPT_UNDECLARED_BYTES: Final = 1 << 26
"""The same for keys without a size: records of functions grow with the number of operations."""
TELLING_BYTES: Final = 47
"""Any 47 bytes contain two complete cipher blocks, which identify the origin."""
_GENERATIONS: Final = 16
"""Generations that are tried for an object too short to identify its generation."""

_scratch: Final[deque[bytearray]] = deque()
"""Buffers for comparisons: as many as there are simultaneous comparisons, not connections."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadCheck:
    """Result of the comparison of an upload."""

    size: int
    bad_bytes: int
    """Bytes that differ from the keystream that the upload appears to be."""
    generation: int | None
    """Generation; None if the bytes are not a keystream of the key, or were not compared."""
    offset: int | None
    """Offset of the first byte in the object; None as above."""
    verbatim: bytes | None
    """Complete upload if it is short and not a keystream, or too short to identify."""

    @property
    def checked_bytes(self) -> int:
        """Bytes that agree with the keystream."""
        return 0 if self.generation is None else self.size - self.bad_bytes


class _Crc32:
    """A CRC-32 with the methods of a hash."""

    def __init__(self) -> None:
        self._value = 0

    def update(self, block: memoryview) -> None:
        self._value = zlib.crc32(block, self._value)

    def digest(self) -> bytes:
        return self._value.to_bytes(4, "big")


_SUMS: Final[Mapping[str, Callable[[], Any]]] = {
    "content-md5": lambda: hashlib.md5(usedforsecurity=False),
    "x-amz-checksum-crc32": _Crc32,
    "x-amz-checksum-sha256": hashlib.sha256,
    "x-amz-content-sha256": hashlib.sha256,
}
_SUM: Final = re.compile(r"[0-9a-f]{64}|[\w+/]+=*", re.ASCII)
"""A checksum in hexadecimal or Base64; words with hyphens stand for a body that is not signed."""


class Inspector:
    """Inspects an upload block by block.

    Parameters
    ----------
    key
        Key of the object.
    offset
        Offset at which the upload has to start; None for a part, which is identified by the bytes.
    verifies
        False counts bytes without comparing them.
    sums
        Headers of the request; their checksums are compared if the key declares no size.
    """

    def __init__(
        self,
        key: str,
        *,
        offset: int | None,
        verifies: bool,
        sums: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._key = key
        self._offset = offset
        self._verifies = verifies
        self._keystream: Keystream | None = None
        self._start = 0
        self._size = 0
        self._bad = 0
        self._kept: bytearray | None = bytearray()
        is_foreign = verifies and declared_size(key) is None
        self._sums = [
            (name, make(), sums[name])
            for name, make in (_SUMS.items() if is_foreign else ())
            if _SUM.fullmatch(sums.get(name, ""))
        ]
        self._most = KEPT_BYTES if declared_size(key) is not None else KEPT_UNDECLARED_BYTES

    def take(self, block: memoryview) -> None:
        """Inspect the next block; the first has ``KEPT_BYTES`` unless no other follows."""
        for _, digest, _ in self._sums:
            digest.update(block)
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
        """Return the result; call this after the last block.

        Raises
        ------
        S3Error
            If a checksum in the headers is that of other bytes.
        """
        for name, digest, wanted in self._sums:
            data = digest.digest()
            if wanted not in {data.hex(), b64encode(data).decode()}:
                raise S3Error(400, "BadDigest", f"{name} is not that of the body")
        keystream = self._keystream
        return UploadCheck(
            size=self._size,
            bad_bytes=self._bad,
            generation=None if keystream is None else keystream.generation,
            offset=None if keystream is None else self._start,
            verbatim=bytes(self._kept) if keystream is None and self._kept is not None else None,
        )

    def _begin(self, block: memoryview) -> None:
        origin = identify(block[:TELLING_BYTES])
        is_of_this_key = origin is not None and origin.key_hash == hash_key(self._key)
        if origin is not None and is_of_this_key and self._offset in {None, origin.offset}:
            self._keystream = content_of(self._key, origin.generation)
            self._start = origin.offset
        elif self._offset is not None:
            self._start = self._offset
            if len(block) < TELLING_BYTES:
                self._keystream = matching(self._key, self._offset, block)
            if self._keystream is None and declared_size(self._key) is not None:
                # The key permits only a single content, so the wrong bytes can be counted.
                self._keystream = content_of(self._key)


def matching(key: str, offset: int, data: memoryview) -> Keystream | None:
    """Return the first generation of ``key`` with ``data`` at ``offset``."""
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
