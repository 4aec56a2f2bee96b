"""Pseudorandom bytes: a pure function of (object key, generation, offset).

Byte ``i`` of an object is byte ``i`` of an AES-128 keystream in counter mode. The
cipher key is public and the same for everybody; the counter block of bytes
``16 n ... 16 n + 15`` is, in network byte order::

     8 bytes   hash of the object's key     BLAKE2b-64 of its UTF-8 bytes
     2 bytes   generation                   0, and one more each time it is overwritten
     6 bytes   n                            16-byte blocks from the start; 4 PiB of them

So a key file alone is enough to regenerate any range of any object on any machine, with
nothing stored. The bytes are incompressible, no block stands twice in an object, two
objects share blocks only if their keys' hashes are equal (docs/decisions/0018 says how
likely that is, and what it would take to matter), and *decrypting* one aligned block of a
wrong response shows which object, generation and offset it came from: ``identify`` does that.

AES is not here for secrecy. It is the fastest seekable generator that ships with a
library everybody has: one core makes 11 GB/s, or 23 by way of ``gcm_counter``
(docs/decisions/0038 has what else was tried).

The layout is frozen by golden vectors in tests/unit/payload/test_keystream.py. A change would
be version 2 and would have to read version 1.
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
"""Goes into every run's provenance."""

BLOCK: Final = 16
"""Bytes of one AES block."""

_CIPHER_KEY: Final = algorithms.AES(b"serverless-bench")
PIECE: Final = 1 << 18
"""Bytes generated, and compared, at a time: what a core's own cache holds beside them."""

_GCM_FROM: Final = 1 << 16
"""Bytes from which on GCM saves more than its nonce costs."""

ZEROS: Final = memoryview(bytes(PIECE))
_AGREEMENT: Final = re.compile(bytes(BLOCK - 1) + rb"\x00+")
"""What ends a run of differing bytes: as many that agree as a cipher block has, or more.

Two unrelated bytes agree once in 256, so a wrong block would otherwise fall apart into
thousands of ranges. Sixteen agreements in a row by chance are one in 2**128. Zeros in a row,
and not ``\\x00{16,}``: for a literal the engine has a fast search.
"""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where 16 or more bytes of keystream come from."""

    key_hash: int
    generation: int
    offset: int
    """Offset in that object of the first byte that was looked at."""


@dataclass(frozen=True, slots=True)
class DifferingRange:
    """One range that is not what it should be."""

    offset: int
    length: int
    bad_bytes: int
    """Bytes in the range that differ; some may agree by chance."""


class Keystream:
    """The bytes of one object in one generation.

    Holds no position and no buffer, so threads may share it.

    Parameters
    ----------
    key
        The object's key, with its prefix and without its bucket.
    generation
        How often the object was overwritten, 0 to 65535.
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
        """Return ``length`` bytes from ``offset`` on; ``numpy.frombuffer`` takes them."""
        room = bytearray(length)
        self.readinto_at(offset, room)
        return room

    def agrees(self, offset: int, data: memoryview, scratch: bytearray | None = None) -> bool:
        """Return whether ``data`` is what belongs at ``offset``.

        Parameters
        ----------
        offset
            Where in the object ``data`` claims to begin.
        data
            Contiguous bytes.
        scratch
            Overwritten; one of ``PIECE`` bytes saves an allocation.
        """
        room = scratch if scratch is not None else bytearray(min(PIECE, len(data)))
        for start, stop, skip, encryptor in self._pieces(offset, len(data)):
            expected = room if len(room) == stop - start else bytearray(stop - start)
            self._fill(expected, skip, encryptor)
            # The bytearray stands on the left: it compares with memcmp, 49 GB/s here. A
            # memoryview on the left unpacks item by item and costs ten times more.
            if expected != data[start:stop]:
                return False
        return True

    def _pieces(self, offset: int, length: int) -> "Iterator[tuple[int, int, int, CipherContext]]":
        """Yield what a range falls into: from, to, where in its block it begins, its cipher."""
        encryptor = self._from(offset, length)
        for start in range(0, length, PIECE):
            yield start, min(length, start + PIECE), 0, encryptor

    def _fill(
        self,
        piece: bytearray | memoryview,
        skip: int,  # noqa: ARG002 - where zeros are in a shaped object
        encryptor: CipherContext,
    ) -> None:
        """Write the bytes of a piece."""
        encryptor.update_into(ZEROS[: len(piece)], piece)

    def _from(self, offset: int, length: int) -> CipherContext:
        """Return what turns ``length`` zeros into the bytes from ``offset`` on.

        It is good until the next call in the same thread.
        """
        block, skip = divmod(offset, BLOCK)
        counter = self._high | block
        if (
            length >= _GCM_FROM
            and gcm_counter.is_faster()
            and gcm_counter.reaches(counter, (skip + length) // BLOCK + 1)
        ):
            by_gcm = modes.GCM(gcm_counter.nonce(counter))
            encryptor: CipherContext = Cipher(_CIPHER_KEY, by_gcm).encryptor()
        else:
            encryptor = _kept.encryptor
            encryptor.reset_nonce(counter.to_bytes(BLOCK))
        if skip:
            encryptor.update(ZEROS[:skip])
        return encryptor

    def differences(self, offset: int, data: memoryview) -> "Iterator[DifferingRange]":
        """Yield every range of ``data`` that differs from what belongs at ``offset``."""
        # XOR of big integers, because the body must not import NumPy.
        wrong_int = int.from_bytes(self.read(offset, len(data))) ^ int.from_bytes(data)
        xor = wrong_int.to_bytes(len(data))
        begin = 0
        for right in (*_AGREEMENT.finditer(xor), None):
            run = xor[begin : len(xor) if right is None else right.start()]
            # Fewer agreements than a block may stand at the ends of the data.
            first = begin + len(run) - len(run.lstrip(b"\0"))
            run = run.strip(b"\0")
            if run:
                yield DifferingRange(offset + first, len(run), len(run) - run.count(0))
            begin = len(xor) if right is None else right.end()


class _ThreadCiphers(threading.local):
    """The cipher of each thread in counter mode: to make one takes as long as 20 KiB."""

    def __init__(self) -> None:
        self.encryptor = Cipher(_CIPHER_KEY, modes.CTR(bytes(BLOCK))).encryptor()


_kept: Final = _ThreadCiphers()


def identify(data: memoryview) -> Origin | None:
    """Return where ``data`` comes from, if it is a piece of the keystream of any object.

    Two neighbouring cipher blocks decrypt to consecutive counters only if they are
    keystream: by chance once in 2**80. Every alignment is tried.

    Parameters
    ----------
    data
        The wrong bytes; fewer than 47 may hold no two whole blocks and give None.
    """
    decryptor = Cipher(_CIPHER_KEY, modes.ECB()).decryptor()  # noqa: S305 - hides nothing
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
    """Anything that can fill a buffer from an offset."""

    def readinto_at(self, offset: int, buffer: memoryview) -> None:
        """Fill ``buffer`` with the bytes from ``offset`` on."""


class KeystreamFile(io.RawIOBase):
    """A range of an object as a seekable, read-only file, for clients that want one.

    Parameters
    ----------
    source
        The bytes: anything with ``readinto_at``.
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
        """Fill ``buffer`` as far as the file goes and return how many bytes that was."""
        view = memoryview(buffer).cast("B")
        count = max(0, min(len(view), self._size - self._position))
        if count:
            self._source.readinto_at(self._position, view[:count])
            self._position += count
        return count
