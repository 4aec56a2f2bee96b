"""Bytes over time in cells of a tenth of a second, in fractions."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from tests.reference.rows import Row, S, Saved

_STEPS: Final = (S // 10, S // 5, S // 2, S)
_MOST: Final = 1 << 20


@dataclass(frozen=True)
class Near:
    """A figure that may be off by so much: the package moves whole bytes at borders."""

    value: Fraction
    off: Fraction


def step_ns(run: Saved) -> int | None:
    """Return the length of a cell; None if the run is too long for cells."""
    there = run.span()
    took = 0 if there is None else there[1] - there[0]
    return next((step for step in _STEPS if took <= step * _MOST), None)


def cells(run: Saved, ops: Sequence[Row], step: int) -> list[Fraction]:
    """Return the bytes that operations moved in each cell of the span."""
    there = run.span()
    assert there is not None
    count = max(1, -(-(there[1] - there[0]) // step))
    found = [Fraction(0)] * count
    for op in ops:
        at = op["start_ns"] - there[0]
        for curve in op["steps"]:
            length, moved = curve["step_ns"], curve["step_bytes"]
            first, last = at // step, max(at, at + length - 1) // step
            if length == 0 or first == last:
                found[min(first, count - 1)] += moved
            else:
                for cell in range(first, last + 1):
                    inside = min(at + length, (cell + 1) * step) - max(at, cell * step)
                    found[cell] += Fraction(moved * inside, length)
            at += length
    return found


def best(run: Saved, ops: Sequence[Row], window_ns: int) -> Near | None:
    """Return the best rate of some operations in any window of that length."""
    there, step = run.span(), step_ns(run)
    if there is None or step is None or there[1] - there[0] < window_ns:
        return None
    found, width = cells(run, ops, step), window_ns // step
    sums = [sum(found[n : n + width]) for n in range(len(found) - width + 1)]
    # A curve that crosses a border may have moved a byte too few, or too many, by then.
    off = 2 * sum(len(op["steps"]) for op in ops)
    return Near(Fraction(max(sums) * S, window_ns), Fraction(off * S, window_ns))


def peak(run: Saved, window_ns: int) -> Near | None:
    """Return the most bytes per second in any window of that length."""
    good = run.good
    return best(run, good, window_ns) if sum(op["bytes"] for op in good) else None


def at_work(run: Saved) -> list[Row]:
    """Return each operation in flight once: a block of the user contains those of sbench."""
    others = [op for op in run.good if op["kind"] != "call"]
    return others or run.good


def steady(run: Saved) -> tuple[Near | None, Fraction | None]:
    """Return rate and length of the steady window."""
    step, good = step_ns(run), run.good
    if step is None or not sum(op["bytes"] for op in good):
        return None, None
    there = run.span()
    assert there is not None
    places = min(run.job["concurrency"], run.job["number"]) * run.job["load"]["threads"]
    moved = cells(run, good, step)
    busy = [0] * len(moved)
    for op in at_work(run):
        begin, end = op["start_ns"] - there[0], op["end_ns"] - there[0]
        for cell in range(begin // step, min(len(busy), end // step + 1)):
            busy[cell] += max(0, min(end, (cell + 1) * step) - max(begin, cell * step))
    width = S // step
    longest, where = 0, 0
    run_of = 0
    for first in range(len(busy) - width + 1):
        # A second in which nine places of ten, on average, are at work.
        run_of = run_of + 1 if 10 * sum(busy[first : first + width]) >= 9 * places * S else 0
        if run_of > longest:
            longest, where = run_of, first - run_of + 1
    length = (longest + width - 1) * step
    if not longest or length < 3 * S:
        return None, None
    inside = sum(moved[where : where + longest + width - 1])
    off = 2 * sum(len(op["steps"]) for op in good)
    return Near(Fraction(inside * S, length), Fraction(off * S, length)), Fraction(length, S)
