"""How often which bytes of an object were moved."""

from collections.abc import Iterable, Iterator
from itertools import pairwise

Range = tuple[int, int]
"""From a byte on, to before another one."""


def coverage(ranges: Iterable[Range]) -> dict[int, int]:
    """Return from which byte on how many ranges hold it: 0 before the first, and in the end."""
    steps: dict[int, int] = {}
    for begin, end in ranges:
        if end > begin:
            steps[begin] = steps.get(begin, 0) + 1
            steps[end] = steps.get(end, 0) - 1
    count, found = 0, {}
    for at in sorted(steps):
        count += steps[at]
        found[at] = count
    return found


def segments(*each: dict[int, int]) -> Iterator[tuple[int, int, list[int]]]:
    """Yield every stretch in which several coverages stay what they are, and what they are."""
    borders = sorted({at for one in each for at in one})
    counts = [0] * len(each)
    for begin, end in pairwise(borders):
        counts = [one.get(begin, count) for one, count in zip(each, counts, strict=True)]
        yield begin, end, list(counts)


def describe(begin: int, end: int) -> str:
    """Return a range as a sentence has it."""
    return f"byte {begin}" if end == begin + 1 else f"bytes {begin} to {end - 1}"
