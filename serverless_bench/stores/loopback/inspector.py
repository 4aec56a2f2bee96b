"""Tell whether an upload is the keystream of its key, and from which offset on."""

from collections import deque
from dataclasses import dataclass
from typing import Final

from serverless_bench.job.keys import declared_size, hash_key
from serverless_bench.payload.keystream import PIECE, Keystream, identify
from serverless_bench.payload.shaped import content_of

KEPT_BYTES: Final = 1 << 16
"""Objects that sbench did not make, such as markers, are kept up to this size."""
TELLING_BYTES: Final = 47
"""Any 47 bytes hold two whole cipher blocks, which say where they come from."""
_GENERATIONS: Final = 16
"""Generations that are tried for an object too short to say its own."""

_scratch: Final[deque[bytearray]] = deque()
"""What compares are made in: as many as compare at once, not one per connection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What one upload was."""

    size: int
    bad_bytes: int
    """Bytes that are not the keystream that the upload seems to be."""
    generation: int | None
    """None if the bytes are no keystream of the key, or were not looked at."""
    offset: int | None
    """Where in the object they begin; None as above."""
    verbatim: bytes | None
    """The whole upload if it is short and no keystream, or too short to tell."""

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
    looks
        False counts bytes and does not compare them.
    """

    def __init__(self, key: str, *, offset: int | None, looks: bool) -> None:
        self._key = key
        self._offset = offset
        self._looks = looks
        self._keystream: Keystream | None = None
        self._start = 0
        self._size = 0
        self._bad = 0
        self._kept: bytes | None = b""

    def take(self, block: memoryview) -> None:
        """Take the next block; the first is of ``KEPT_BYTES`` at least, or the only one."""
        if not self._size:
            self._kept = bytes(block) if len(block) <= KEPT_BYTES else None
            if self._looks:
                self._begin(block)
        else:
            self._kept = None
        if self._keystream is not None:
            offset = self._start + self._size
            if not _agrees(self._keystream, offset, block):
                wrong = self._keystream.differences(offset, block)
                self._bad += sum(difference.bad_bytes for difference in wrong)
        self._size += len(block)

    def verdict(self) -> Verdict:
        """Return what came; call it after the last block."""
        known = self._keystream
        return Verdict(
            size=self._size,
            bad_bytes=self._bad,
            generation=None if known is None else known.generation,
            offset=None if known is None else self._start,
            verbatim=self._kept if known is None else None,
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
