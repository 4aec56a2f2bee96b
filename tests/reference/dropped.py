"""Dropped operations of an open loop: the kind and size assigned to each, and the pace."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from tests.reference.rows import Row, S, Saved
from tests.reference.sizes import CLASSES, size_class

_GOLDEN: Final = 0x9E3779B97F4A7C15
Dealt = tuple[str, str | None, int, int]
"""Kind and size class; when it was due, and how long it had waited."""


def dealt(run: Saved) -> list[Dealt]:
    """Return each operation that was due but did not start, with its assigned properties."""
    undone = run.dropped
    shares = _shares(run) if undone else []
    total = sum(share for _, _, share in shares)
    found = []
    for number, (due_ns, waited_ns) in enumerate(undone, start=1):
        place = Fraction(number * _GOLDEN % 2**64, 2**64) * total
        until = Fraction(0)
        for kind, size, share in shares:
            until += share
            if place < until:
                found.append((kind, size, due_ns, waited_ns))
                break
    assert len(found) == len(undone)
    return found


def _shares(run: Saved) -> list[tuple[str, str | None, Fraction]]:
    """Return kinds and sizes by their shares, in their order of assignment."""
    begun = run.begun
    names = sorted({op["kind"] for op in begun})
    kinds = [(name, Fraction(sum(1 for op in begun if op["kind"] == name))) for name in names]
    if run.job["load"]["mix"]:
        kinds = [(name, Fraction(weight)) for name, weight in run.job["load"]["mix"]]
    elif not kinds:
        kinds = [(_only_kind(run), Fraction(1))]
    found: list[tuple[str, str | None, Fraction]] = []
    for kind, weight in kinds:
        sizes = [size_class(op) for op in begun if op["kind"] == kind]
        there = [size for size in (None, *CLASSES) if size in sizes]
        found += [(kind, size, weight * sizes.count(size) / len(sizes)) for size in there]
        found += [] if sizes else [(kind, None, weight)]
    return found


def _only_kind(run: Saved) -> str:
    array = run.job["load"].get("array")
    if array is not None:
        return f"{array['operation']}_array"
    if run.job["workload"] == "list":
        return "list_all"
    if run.job["workload"] == "conditional":
        return str(run.job["load"]["pattern"])
    if run.job["workload"] == "parquet":
        return "scan"
    if run.job["workload"] == "write":
        return "put"
    return "get" if run.job["load"]["split"] is None else "get_range"


def pace(run: Saved, undone: Sequence[Dealt]) -> Row:
    """Return the due operations, and their results."""
    begun = run.begun
    due = [op["intended_ns"] for op in begun] + [due_ns for _, _, due_ns, _ in undone]
    names = ("offered_per_s", "achieved_per_s", "due", "begun", "dropped")
    found: Row = dict.fromkeys(names)
    if run.job["load"]["rate"] is None and not due:
        return found
    found |= {"due": len(due), "begun": len(begun), "dropped": len(undone)}
    if not due:
        return found
    first, took_ns = min(due), run.elapsed_ns(min(due), max(due))
    if took_ns > 0:
        good = [op for op in begun if op["error"] is None]
        gap_ns = Fraction(took_ns, len(due) - 1)
        ends = [run.elapsed_ns(first, op["end_ns"]) for op in good]
        found["offered_per_s"] = S / gap_ns
        found["achieved_per_s"] = len(good) * S / max([took_ns + gap_ns, *map(Fraction, ends)])
    return found
