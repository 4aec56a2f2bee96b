"""Which bytes of a range have come: counting them would not see one come twice and one never."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator


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
        if first < last:
            begin_all = min(begin, begins[first])
            end_all = max(end, ends[last - 1])
        else:
            begin_all, end_all = begin, end
        begins[first:last] = [begin_all]
        ends[first:last] = [end_all]
        return end - begin - known

    def gaps(self, length: int) -> Iterator[tuple[int, int]]:
        """Yield from where to where nothing has come, of the first ``length`` bytes."""
        for begin, end in zip(self._ends, [*self._begins[1:], length], strict=True):
            if begin < length:
                yield begin, min(end, length)
