"""Compare what a store delivers with what was written, and say what is there instead."""

import threading
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from serverless_bench.clock import monotonic_ns
from serverless_bench.job.transfer import Verify
from serverless_bench.payload.keystream import PIECE, Keystream, identify
from serverless_bench.rundir.record import BadRange, FoundBytes

MAX_BAD_RANGES: Final = 16
"""Ranges that a record lists of one operation; all are counted."""
_SAMPLE_EVERY: Final = 16
_SAMPLE_BYTES: Final = 1 << 20
"""``Verify.SAMPLE`` decides by megabyte of the object, so that the block size, and the
way an object is cut into ranges, do not change what is compared."""


class Coverage:
    """Spans of bytes that have come, joined where they touch.

    Blocks in their order, which is how nearly all clients deliver, are one comparison each.
    """

    __slots__ = ("_begins", "_ends")

    def __init__(self) -> None:
        self._begins = [0]
        self._ends = [0]
        """Of spans that are sorted and do not touch; the first begins at 0."""

    def add(self, begin: int, end: int) -> int:
        """Take the bytes from ``begin`` to ``end``; return how many had not come before."""
        begins, ends = self._begins, self._ends
        if begin == ends[-1] and end > begin:
            ends[-1] = end
            return end - begin
        if end <= begin:
            return 0
        # All spans from the first that reaches the new one to the last that it reaches.
        first, last = bisect_left(ends, begin), bisect_right(begins, end)
        known = sum(
            min(end, there_end) - max(begin, there_begin)
            for there_begin, there_end in zip(begins[first:last], ends[first:last], strict=True)
        )
        begins[first:last] = [min([begin, *begins[first:last]])]
        ends[first:last] = [max([end, *ends[first:last]])]
        return end - begin - known

    def gaps(self, length: int) -> Iterator[tuple[int, int]]:
        """Yield from where to where nothing has come, of the first ``length`` bytes."""
        for begin, end in zip(self._ends, [*self._begins[1:], length], strict=True):
            if begin < length:
                yield begin, min(end, length)


class BadRanges:
    """Bad ranges in order of offset: all counted, the first ``MAX_BAD_RANGES`` kept."""

    # Of the class, because nearly all stay as they are.
    listed: Sequence[BadRange] = ()
    count = 0
    bytes = 0
    _last: BadRange | None = None
    """The last range, listed or not: the next one may continue it."""

    def add(self, new: BadRange) -> None:
        """Take the next range; one that continues the last one becomes part of it."""
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
        """Take all ranges of a later stretch of the same object."""
        if not other.count:
            return
        for bad in other.listed:
            self.add(bad)
        self.bytes += other.bytes - sum(bad.bad_bytes for bad in other.listed)
        self.count += other.count - len(other.listed)
        if other.count > len(other.listed):
            self._last = other._last  # noqa: SLF001 - of the same class


class RangeSink:
    """Takes one range of one object, once, and keeps what was wrong with it.

    Missing and surplus bytes are found whatever ``verify`` is.

    Parameters
    ----------
    keystream
        Of the object; None for an object that sbench did not write.
    size
        Of the whole object; None as above.
    offset
        Where in the object the range begins.
    length
        Bytes that should arrive; None as above.
    verify
        How much to compare.
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
    """Where the last byte that came ends, wanted or not."""
    missing = 0
    """Bytes of the range that never came; known once it is finished."""
    verified_bytes = 0
    payload_ns = 0

    def write_at(self, offset: int, data: memoryview) -> None:
        """Take ``data``, which stands at ``offset`` of the range, and compare it."""
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
        """All bytes that will come have come: say what is missing or too much."""
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
        """Note every range of ``data`` that differs."""
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
        # What has come before is not verified twice.
        self.verified_bytes += max(0, fresh - bad_bytes)


def absent(
    found: FoundBytes, offset: int, length: int, *, bad_bytes: int | None = None
) -> BadRange:
    """Return the range of bytes that are missing, or that were never written.

    ``bad_bytes`` are those of them that count; None for all.
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
    """Return ``bad`` with what is there instead of the right bytes.

    Parameters
    ----------
    bad
        The range, not yet diagnosed.
    wrong
        The bytes that were delivered there.
    keystream
        What should have been delivered.
    """
    if not any(wrong):
        return replace(bad, found=FoundBytes.ZEROS)
    origin = identify(wrong)
    if origin is None:
        return bad
    if origin.key_hash != keystream.key_hash:
        found = FoundBytes.OTHER_OBJECT
    elif origin.generation != keystream.generation:
        found = FoundBytes.OTHER_GENERATION
    else:
        found = FoundBytes.OTHER_OFFSET
    return replace(
        bad,
        found=found,
        found_key_hash=f"{origin.key_hash:016x}",
        found_generation=origin.generation,
        found_offset=origin.offset,
    )


def join(left: BadRange, right: BadRange) -> BadRange | None:
    """Return two neighbouring ranges of one origin as one range, else None."""
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
