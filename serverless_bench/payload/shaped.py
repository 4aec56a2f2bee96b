"""Bytes of objects with a compression and a deduplication ratio declared in the key.

A key without ratios has the plain keystream, which neither compresses nor deduplicates. A key that
ends in ``.z200``, ``.d400`` or ``.z200d400`` (hundredths, see ``keys``) uses the keystream in
blocks of 4 KiB, still a pure function of key, generation and offset::

    compressibility r   the first 4096 / r bytes of each block, less zstd's overhead, are
                        keystream; the rest is zeros
    duplication d       the first 1 / d of the object, in full blocks, repeats until the
                        object is full

``r`` is the ratio that zstd reaches for the distinct blocks at level 3: within 2 % up to r = 8 as
one stream and block by block, and as one stream up to 50. ``d`` is the number of object bytes per
byte of distinct 4 KiB blocks: within 2 % from 25 d blocks on, which is 1 MiB up to d = 10.
tests/unit/payload/test_shaped.py measures both. The layout is frozen by golden vectors there.
"""

from collections.abc import Iterator
from typing import Final

from cryptography.hazmat.primitives.ciphers import CipherContext

from serverless_bench.job.keys import declared_ratios, declared_size
from serverless_bench.payload.keystream import PIECE, ZEROS, Keystream

VERSION: Final = "blocks-4096/1"
"""Version of the layout of shaped objects, recorded in the provenance of each run."""

SHAPE_BLOCK: Final = 4096
"""Bytes of a block; storage systems that deduplicate use 4 KiB or more."""

_BOTH_UP_TO: Final = 800
_ADDED_BY_ZSTD: Final = 12
"""Bytes that zstd adds per block. Measured with zstd 1.5 at level 3: 4 in a long stream, 21 for a
block that is a separate stream. The middle keeps both ratios within 2 % up to r = 8."""
_ADDED_IN_STREAMS: Final = 3


class Shaped(Keystream):
    """The bytes of an object that compresses, or repeats itself, as its key declares.

    Parameters
    ----------
    key
        As in ``Keystream``.
    generation
        As in ``Keystream``.
    head
        Bytes of each block that are keystream.
    period
        Bytes after which the object repeats itself, a multiple of the block size.
    """

    __slots__ = ("_head", "_period", "_tail")

    def __init__(self, key: str, generation: int, *, head: int, period: int) -> None:
        super().__init__(key, generation)
        self._head = head
        self._period = period
        self._tail = ZEROS[: SHAPE_BLOCK - head]

    def _pieces(self, offset: int, length: int) -> Iterator[tuple[int, int, int, CipherContext]]:
        """Yield the pieces of a range, as in ``Keystream``.

        All but the first start at a block, and no piece crosses the point where the object repeats.
        """
        start = 0
        encryptor = None
        while start < length:
            at = (offset + start) % self._period
            skip = at % SHAPE_BLOCK
            stop = min(length, start + min(PIECE - skip, self._period - at))
            if at == 0 or encryptor is None:
                encryptor = self._from(at, min(length - start, self._period - at))
            yield start, stop, skip, encryptor
            start = stop

    def _fill(self, piece: bytearray | memoryview, skip: int, encryptor: CipherContext) -> None:
        """Write the keystream into a piece and zeros over the tails of its blocks.

        Generating the full keystream and overwriting parts of it is faster than a call to the
        cipher per block.
        """
        view, length, tail = memoryview(piece), len(piece), self._tail
        encryptor.update_into(ZEROS[:length], view)
        zeros = len(tail)
        if not zeros:
            return
        first = self._head - skip
        if first < 0:
            stop = min(length, first + zeros)
            if stop > 0:
                view[:stop] = ZEROS[:stop]
            first += SHAPE_BLOCK
        for start in range(first, length - zeros + 1, SHAPE_BLOCK):
            view[start : start + zeros] = tail
        last = first + max(0, (length - zeros - first) // SHAPE_BLOCK + 1) * SHAPE_BLOCK
        if last < length:
            view[last:] = ZEROS[: length - last]


def content_of(key: str, generation: int = 0) -> Keystream:
    """Return the bytes of the object at a key; plain keystream if it declares no ratio.

    Parameters
    ----------
    key
        The object's key, with prefix and without bucket.
    generation
        Number of times the object was overwritten, 0 to 65535.
    """
    ratios = declared_ratios(key)
    if ratios is None:
        return Keystream(key, generation)
    size = declared_size(key) or 0
    compressibility, duplication = ratios
    return Shaped(
        key,
        generation,
        head=_head_bytes(compressibility),
        period=distinct_bytes(size, duplication),
    )


def distinct_bytes(size: int, duplication: int) -> int:
    """Return the bytes after which an object repeats itself: one block or more.

    Parameters
    ----------
    size
        Bytes of the object.
    duplication
        Ratio that the key declares, in hundredths.
    """
    if duplication == 100:
        return -(-size // SHAPE_BLOCK) * SHAPE_BLOCK
    # An incomplete block at the end is always distinct: it comes on top of the ratio.
    rest = size % SHAPE_BLOCK
    distinct = _nearest(size * 100 - rest * duplication, duplication * SHAPE_BLOCK)
    return max(1, distinct) * SHAPE_BLOCK


def _head_bytes(compressibility: int) -> int:
    if compressibility == 100:
        return SHAPE_BLOCK
    added = _ADDED_BY_ZSTD if compressibility <= _BOTH_UP_TO else _ADDED_IN_STREAMS
    return _nearest(SHAPE_BLOCK * 100, compressibility) - added


def _nearest(dividend: int, divisor: int) -> int:
    return (2 * dividend + divisor) // (2 * divisor)
