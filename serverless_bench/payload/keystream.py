"""Pseudorandom bytes: a pure function of (object key, generation, offset).

Byte ``i`` of an object is byte ``i`` of an AES-128 keystream in counter mode. The cipher key is
public and the same for all runs; the counter block of bytes ``16 n ... 16 n + 15`` is, in network
byte order::

     8 bytes   hash of the object's key     BLAKE2b-64 of its UTF-8 bytes
     2 bytes   generation                   0, incremented each time it is overwritten
     6 bytes   n                            16-byte blocks from the start; 4 PiB of them

A key file is therefore enough to regenerate any range of any object on any machine, without stored
data. The bytes are incompressible, blocks never repeat within an object, and two objects share
blocks only if their keys have the same hash (docs/decisions/0001 gives the probability and the
consequences). *Decrypting* an aligned block of a wrong response shows the object, generation and
offset it came from: ``identify`` does that.

AES does not provide secrecy here. It is the fastest seekable generator in a widely installed
library: a core generates 11 GB/s, or 23 by way of ``gcm_counter`` (docs/decisions/0001 lists the
alternatives).

The layout is frozen by golden vectors in tests/unit/payload/test_keystream.py. A change would be
version 2 and would have to read version 1.
"""

import io
import re
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes

from serverless_bench.job.keys import hash_key
from serverless_bench.payload import gcm_counter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _typeshed import WriteableBuffer

VERSION: Final = "aes-128-ctr/1"
"""Version of the layout, recorded in the provenance of each run."""

BLOCK: Final = 16
"""Bytes of an AES block."""

_CIPHER_KEY: Final = algorithms.AES(b"serverless-bench")
PIECE: Final = 1 << 18
"""Bytes generated and compared at a time: they fit into a core's private cache with the data."""

_GCM_FROM: Final = 1 << 19
"""Length from which GCM saves more time than its nonce and a new cipher take: transfers drop their
code and tables from the CPU's caches (docs/decisions/0001)."""

ZEROS: Final = memoryview(bytes(PIECE))
_AGREEMENT: Final = re.compile(bytes(BLOCK - 1) + rb"\x00+")
"""Matches the end of a run of differing bytes: at least as many equal bytes as a cipher block has.

Two unrelated bytes are equal once in 256, so a wrong block would otherwise be split into thousands
of ranges. Sixteen equal bytes by chance have a probability of 2**-128. The pattern is a literal of
zeros instead of ``\\x00{16,}`` because the engine searches literals faster.
"""


@dataclass(frozen=True, slots=True)
class Origin:
    """Origin of 16 or more bytes of keystream."""

    key_hash: int
    generation: int
    offset: int
    """Offset in that object of the first byte examined."""


@dataclass(frozen=True, slots=True)
class DifferingRange:
    """A range that differs from the expected bytes."""

    offset: int
    length: int
    bad_bytes: int
    """Bytes in the range that differ; some may agree by chance."""


class Keystream:
    """The bytes of an object in a generation.

    It holds no position and no buffer, so threads may share it.

    Parameters
    ----------
    key
        The object's key, with prefix and without bucket.
    generation
        Number of times the object was overwritten, 0 to 65535.
    """

    __slots__ = ("_high", "generation", "key_hash")

    def __init__(self, key: str, generation: int = 0) -> None:
        self.key_hash = hash_key(key)
        self.generation = generation
        self._high = (self.key_hash << 16 | generation) << 48

    def readinto_at(self, offset: int, buffer: "WriteableBuffer") -> None:
        """Fill ``buffer`` with the bytes from ``offset`` on."""
        view = memoryview(buffer).cast("B")
        for start, stop, skip, encryptor in self._pieces(offset, len(view)):
            self._fill(view[start:stop], skip, encryptor)

    def read(self, offset: int, length: int) -> bytearray:
        """Return ``length`` bytes from ``offset`` on; ``numpy.frombuffer`` accepts them."""
        buffer = bytearray(length)
        self.readinto_at(offset, buffer)
        return buffer

    def agrees(self, offset: int, data: memoryview, scratch: bytearray | None = None) -> bool:
        """Return whether ``data`` has the expected bytes for ``offset``.

        Parameters
        ----------
        offset
            Position in the object where ``data`` should start.
        data
            Contiguous bytes.
        scratch
            Buffer to overwrite; passing one of ``PIECE`` bytes saves an allocation.
        """
        buffer = scratch if scratch is not None else bytearray(min(PIECE, len(data)))
        for start, stop, skip, encryptor in self._pieces(offset, len(data)):
            expected = buffer if len(buffer) == stop - start else bytearray(stop - start)
            self._fill(expected, skip, encryptor)
            # The bytearray must be on the left: it compares with memcmp, 49 GB/s here. A memoryview
            # on the left unpacks item by item and takes ten times longer.
            if expected != data[start:stop]:
                return False
        return True

    def _pieces(self, offset: int, length: int) -> "Iterator[tuple[int, int, int, CipherContext]]":
        """Yield the pieces of a range: start, end, offset of the start in a block, and cipher."""
        encryptor = self._from(offset, length)
        for start in range(0, length, PIECE):
            yield start, min(length, start + PIECE), 0, encryptor
        # All pieces are filled, so it stands at the end; the other one is shared by all ranges.
        if encryptor is not _kept.encryptor:
            _kept.latest = self._high, offset + length, encryptor

    def _fill(
        self,
        piece: bytearray | memoryview,
        skip: int,  # noqa: ARG002 - used by shaped objects
        encryptor: CipherContext,
    ) -> None:
        """Write the bytes of a piece."""
        encryptor.update_into(ZEROS[: len(piece)], piece)

    def _from(self, offset: int, length: int) -> CipherContext:
        """Return a cipher that encrypts ``length`` zeros to the bytes from ``offset`` on.

        It is valid until the next call in the same thread.
        """
        block, skip = divmod(offset, BLOCK)
        counter = self._high | block
        if (
            length >= _GCM_FROM
            and gcm_counter.is_faster()
            and gcm_counter.reaches(counter, (skip + length) // BLOCK + 1)
        ):
            (*end, latest), _kept.latest = _kept.latest, _kept.nowhere
            if end == [self._high, offset]:
                return latest
            by_gcm = modes.GCM(gcm_counter.nonce(counter))
            encryptor: CipherContext = Cipher(_CIPHER_KEY, by_gcm).encryptor()
        else:
            encryptor = _kept.encryptor
            encryptor.reset_nonce(counter.to_bytes(BLOCK))
        if skip:
            encryptor.update(ZEROS[:skip])
        return encryptor

    def differences(self, offset: int, data: memoryview) -> "Iterator[DifferingRange]":
        """Yield the ranges of ``data`` that differ from the expected bytes at ``offset``."""
        # XOR big integers, because the body must not import NumPy.
        wrong_int = int.from_bytes(self.read(offset, len(data))) ^ int.from_bytes(data)
        xor = wrong_int.to_bytes(len(data))
        begin = 0
        for right in (*_AGREEMENT.finditer(xor), None):
            run = xor[begin : len(xor) if right is None else right.start()]
            # A few equal bytes, fewer than a block, may be at the ends of the data.
            first = begin + len(run) - len(run.lstrip(b"\0"))
            run = run.strip(b"\0")
            if run:
                yield DifferingRange(offset + first, len(run), len(run) - run.count(0))
            begin = len(xor) if right is None else right.end()


class _ThreadCiphers(threading.local):
    """The ciphers of each thread: creating one takes as long as 20 KiB, more during transfers."""

    def __init__(self) -> None:
        self.encryptor = Cipher(_CIPHER_KEY, modes.CTR(bytes(BLOCK))).encryptor()
        self.latest = self.nowhere = 0, -1, self.encryptor
        """End of the last range that was generated whole by GCM, and its cipher: a body is
        generated block by block."""


_kept: Final = _ThreadCiphers()


def identify(data: memoryview) -> Origin | None:
    """Return the origin of ``data``, if it is a piece of the keystream of any object.

    Two neighbouring cipher blocks that decrypt to consecutive counters are keystream: by chance it
    happens once in 2**80. All alignments are tried.

    Parameters
    ----------
    data
        The wrong bytes. Fewer than 47 may not contain two aligned blocks, which gives None.
    """
    decryptor = Cipher(_CIPHER_KEY, modes.ECB()).decryptor()  # noqa: S305 - not for secrecy
    for shift in range(min(BLOCK, len(data) - 2 * BLOCK + 1)):
        plain = decryptor.update(data[shift : shift + 2 * BLOCK])
        first, second = int.from_bytes(plain[:BLOCK]), int.from_bytes(plain[BLOCK:])
        if second == first + 1:
            block = first & ((1 << 48) - 1)
            return Origin(
                key_hash=first >> 64,
                generation=first >> 48 & 0xFFFF,
                offset=block * BLOCK - shift,
            )
    return None


class ReadableAt(Protocol):
    """An object that can fill a buffer from an offset."""

    def readinto_at(self, offset: int, buffer: memoryview) -> None:
        """Fill ``buffer`` with the bytes from ``offset`` on."""


class KeystreamFile(io.RawIOBase):
    """A range of an object as a seekable, read-only file, for clients that need a file.

    Parameters
    ----------
    source
        Source of the bytes: anything with ``readinto_at``.
    size
        Bytes in the file.
    """

    def __init__(self, source: ReadableAt, size: int) -> None:
        super().__init__()
        self._source = source
        self._size = size
        self._position = 0

    def __len__(self) -> int:
        return self._size

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Move to ``offset`` and return the new position.

        Raises
        ------
        ValueError
            If the new position would be negative, or ``whence`` is unknown.
        """
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}
        if whence not in base or base[whence] + offset < 0:
            raise ValueError(f"cannot seek to {offset} from {whence}")
        self._position = base[whence] + offset
        return self._position

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        """Fill ``buffer`` up to the end of the file and return the number of bytes."""
        view = memoryview(buffer).cast("B")
        count = max(0, min(len(view), self._size - self._position))
        if count:
            self._source.readinto_at(self._position, view[:count])
            self._position += count
        return count
