"""Compare the bytes from a store with the bytes written, and identify wrong bytes."""

import threading
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from serverless_bench.base.clock import monotonic_ns
from serverless_bench.job.target import Verify
from serverless_bench.payload.keystream import PIECE, Keystream, identify
from serverless_bench.rundir.record import BadRange, FoundBytes

MAX_BAD_RANGES: Final = 16
"""Most ranges that a record lists per operation; all are counted."""
_SAMPLE_EVERY: Final = 16
_SAMPLE_BYTES: Final = 1 << 20
"""``Verify.SAMPLE`` selects megabytes of the object, so that neither the block size nor the split
into ranges changes the compared bytes."""


class Coverage:
    """Spans of bytes that have arrived, joined where they touch.

    Blocks that arrive in order, as with nearly all clients, take a single comparison each.
    """

    __slots__ = ("_begins", "_ends")

    def __init__(self) -> None:
        self._begins = [0]
        self._ends = [0]
        """Bounds of sorted spans that do not touch; the first starts at 0."""

    def add(self, begin: int, end: int) -> int:
        """Add the bytes from ``begin`` to ``end``; return how many of them are new."""
        begins, ends = self._begins, self._ends
        if begin == ends[-1] and end > begin:
            ends[-1] = end
            return end - begin
        if end <= begin:
            return 0
        # All spans that touch the new one.
        first, last = bisect_left(ends, begin), bisect_right(begins, end)
        overlap = sum(
            min(end, span_end) - max(begin, span_begin)
            for span_begin, span_end in zip(begins[first:last], ends[first:last], strict=True)
        )
        begins[first:last] = [min([begin, *begins[first:last]])]
        ends[first:last] = [max([end, *ends[first:last]])]
        return end - begin - overlap

    def gaps(self, length: int) -> Iterator[tuple[int, int]]:
        """Yield start and end of each gap within the first ``length`` bytes."""
        for begin, end in zip(self._ends, [*self._begins[1:], length], strict=True):
            if begin < length:
                yield begin, min(end, length)


class BadRanges:
    """Bad ranges in order of offset: all counted, the first ``MAX_BAD_RANGES`` kept."""

    # Class attributes, because most instances never change them.
    listed: Sequence[BadRange] = ()
    count = 0
    bytes = 0
    _last: BadRange | None = None
    """The last range, listed or not: the next range may continue it."""

    def add(self, new: BadRange) -> None:
        """Add the next range; if it continues the last range, both are joined."""
        self.bytes += new.bad_bytes
        joined = join(self._last, new) if self._last else None
        self._last = joined or new
        if joined:
            if self.count == len(self.listed):
                self.listed = [*self.listed[:-1], joined]
            return
        self.count += 1
        if len(self.listed) < MAX_BAD_RANGES:
            self.listed = [*self.listed, new]

    def extend(self, other: "BadRanges") -> None:
        """Add all ranges of a later part of the same object."""
        if not other.count:
            return
        for bad in other.listed:
            self.add(bad)
        self.bytes += other.bytes - sum(bad.bad_bytes for bad in other.listed)
        self.count += other.count - len(other.listed)
        if other.count > len(other.listed):
            self._last = other._last  # noqa: SLF001 - same class


class RangeSink:
    """Receives one range of one object, once, and records wrong bytes.

    Missing and extra bytes are detected for any value of ``verify``.

    Parameters
    ----------
    keystream
        Expected bytes of the object; None for an object that sbench did not write.
    size
        Size of the full object; None if unknown.
    offset
        Start of the range within the object.
    length
        Bytes that should arrive; None if unknown.
    verify
        Amount to verify.
    """

    def __init__(
        self,
        keystream: Keystream | None,
        size: int | None,
        offset: int,
        length: int | None,
        verify: Verify,
    ) -> None:
        self._keystream = keystream
        self._size = size
        self._offset = offset
        self._length = length
        self._verify = verify if keystream is not None else Verify.NONE
        self._lock = threading.Lock()
        self._coverage = Coverage()
        self.bad = BadRanges()

    _scratch: bytearray | None = None
    _end = 0
    """End of the furthest byte that arrived, requested or not."""
    missing = 0
    """Bytes of the range that never arrived; known once ``finish`` has run."""
    verified_bytes = 0
    payload_ns = 0

    def write_at(self, offset: int, data: memoryview) -> None:
        """Compare ``data``, received at ``offset`` of the range."""
        count = len(data)
        if not count:
            return
        end, length = offset + count, self._length
        with self._lock:
            self._end = max(self._end, end)
            if length is not None and end > length:
                end = max(offset, length)
                data = data[: end - offset]
            fresh = self._coverage.add(offset, end)
            keystream = self._keystream
            if keystream is None or self._verify is Verify.NONE:
                return
            start_ns = monotonic_ns()
            if end > offset and (self._verify is Verify.FULL or self._is_due(offset, end)):
                if self._scratch is None and count >= PIECE:
                    self._scratch = bytearray(PIECE)
                if keystream.agrees(self._offset + offset, data, self._scratch):
                    self.verified_bytes += fresh
                else:
                    self._look_closely(keystream, self._offset + offset, data, fresh)
            self.payload_ns += monotonic_ns() - start_ns

    def finish(self) -> None:
        """Record missing and extra bytes, after the last byte has arrived."""
        length = self._length
        if length is None:
            return
        for begin, end in self._coverage.gaps(length):
            self.missing += end - begin
            self.bad.add(absent(FoundBytes.MISSING, self._offset + begin, end - begin))
        if self._end > length:
            self.bad.add(absent(FoundBytes.EXTRA, self._offset + length, self._end - length))

    def _is_due(self, begin: int, end: int) -> bool:
        if self._size is None:
            return True
        offset, length = self._offset + begin, end - begin
        touched = range(offset // _SAMPLE_BYTES, (offset + length - 1) // _SAMPLE_BYTES + 1)
        last = (self._size - 1) // _SAMPLE_BYTES
        return any(n % _SAMPLE_EVERY == 0 or n == last for n in touched)

    def _look_closely(
        self, keystream: Keystream, offset: int, data: memoryview, fresh: int
    ) -> None:
        """Record the ranges of ``data`` that differ."""
        bad_bytes = 0
        for difference in keystream.differences(offset, data):
            bad_bytes += difference.bad_bytes
            begin = difference.offset - offset
            wrong = data[begin : begin + difference.length]
            blank = absent(
                FoundBytes.UNKNOWN,
                difference.offset,
                difference.length,
                bad_bytes=difference.bad_bytes,
            )
            self.bad.add(diagnose(blank, wrong, keystream))
        # Bytes that arrived before are not verified twice.
        self.verified_bytes += max(0, fresh - bad_bytes)


def absent(
    found: FoundBytes, offset: int, length: int, *, bad_bytes: int | None = None
) -> BadRange:
    """Return a range of bytes that are missing, or that were never written.

    ``bad_bytes`` is the number of them that count; None for all.
    """
    return BadRange(
        operation=0,
        key="",
        offset=offset,
        length=length,
        bad_bytes=length if bad_bytes is None else bad_bytes,
        found=found,
    )


def diagnose(bad: BadRange, wrong: memoryview, keystream: Keystream) -> BadRange:
    """Return ``bad`` with the origin of the wrong bytes.

    Parameters
    ----------
    bad
        The range, not yet diagnosed.
    wrong
        The bytes received for it.
    keystream
        The expected bytes.
    """
    if not any(wrong):
        return replace(bad, found=FoundBytes.ZEROS)
    origin = identify(wrong)
    if origin is None:
        return bad
    if origin.key_hash != keystream.key_hash:
        kind = FoundBytes.OTHER_OBJECT
    elif origin.generation != keystream.generation:
        kind = FoundBytes.OTHER_GENERATION
    else:
        kind = FoundBytes.OTHER_OFFSET
    return replace(
        bad,
        found=kind,
        found_key_hash=f"{origin.key_hash:016x}",
        found_generation=origin.generation,
        found_offset=origin.offset,
    )


def join(left: BadRange, right: BadRange) -> BadRange | None:
    """Return two neighbouring ranges of the same origin as one range, else None."""
    gap = right.offset - (left.offset + left.length)
    if not 0 <= gap < 16 or _shape(left) != _shape(right):
        return None
    return replace(
        left,
        length=right.offset + right.length - left.offset,
        bad_bytes=left.bad_bytes + right.bad_bytes,
    )


def _shape(bad: BadRange) -> tuple[object, ...]:
    shift = None if bad.found_offset is None else bad.found_offset - bad.offset
    return bad.found, bad.found_key_hash, bad.found_generation, shift
