"""What an open loop had due and never began: one by one, and of which kind. Pure.

Which kinds of a mix they would have been, and of objects of which size, was never drawn.
They are dealt out in proportion: to the kinds by the weights of the mix, to the sizes as
those that did begin. Each share is spread evenly over time, and always dealt the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from serverless_bench.job.operations import OperationKind
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import Ints, Mask, is_among, is_text

_GOLDEN: Final = 0x9E3779B97F4A7C15
"""2**64 over the golden ratio: its multiples, modulo 2**64, fill any stretch evenly."""

Cell = tuple[str, int]
"""A kind of operation and the number of a size class."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OverdueOperations:
    """Operations that were due and never begun; arrays have a value for each of them."""

    due_ns: Ints
    waited_ns: Ints
    """How long, at least: until the time was over, or a thread was free."""
    cell: Ints
    """Which of ``cells``."""
    cells: tuple[Cell, ...] = ()

    def of(self, kind: str, size_class: int | None = None) -> Mask:
        """Return which of them are dealt to a kind, or to one of its size classes."""
        cells = enumerate(self.cells)
        wanted = [n for n, cell in cells if cell[0] == kind and size_class in {None, cell[1]}]
        return is_among(self.cell, wanted)


def overdue_operations(run: Run, counted: Mask, begun: Mask, size_class: Ints) -> OverdueOperations:
    """Return what was due and never begun.

    Parameters
    ----------
    run
        A saved run, its workers' instants on the driver's clock.
    counted
        Which functions count, shape ``(functions,)``.
    begun
        Which operations were due and did begin, shape ``(operations,)``.
    size_class
        A number for the size of each operation, shape as before.
    """
    rows = run.overdue
    counts = counted[rows["function"]]
    first, last, number, until = (
        rows[name][counts] for name in ("first_ns", "last_ns", "count", "until_ns")
    )
    row = np.repeat(np.arange(len(number)), number)
    nth = np.arange(len(row)) - np.repeat(np.cumsum(number) - number, number)
    # In whole numbers: the quotient times nth, and the rest as it adds up, rounded to a nanosecond.
    gaps = np.maximum(number - 1, 1)
    gap, rest = np.divmod(last - first, gaps)
    due = first[row] + nth * gap[row] + (2 * nth * rest[row] + gaps[row]) // (2 * gaps[row])
    cells = _shares(run, begun, size_class) if len(due) else {}
    return OverdueOperations(
        due_ns=due,
        waited_ns=np.maximum(until[row] - due, 0),
        cell=_dealt(len(due), list(cells.values())),
        cells=tuple(cells),
    )


def _dealt(count: int, shares: list[float]) -> Ints:
    """Return a number of a share for each of ``count``, as many of each as it is large."""
    place = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(_GOLDEN)
    borders = np.cumsum(shares)[:-1] / np.sum(shares) * 2.0**64 if shares else []
    return np.searchsorted(borders, place.astype(np.float64), side="right").astype(np.int64)


def _shares(run: Run, begun: Mask, size_class: Ints) -> dict[Cell, float]:
    """Return how large a share of what never began has each kind and size."""
    kinds: Mapping[str, float] = dict(run.job.load.mix)
    if not kinds:
        names, counts = np.unique(run.operations["kind"][begun].astype(str), return_counts=True)
        kinds = dict(zip(names.tolist(), counts.tolist(), strict=True))
    shares: dict[Cell, float] = {}
    for kind, weight in (kinds or _of_workload(run)).items():
        found = size_class[begun & is_text(run.operations["kind"], kind)]
        numbers, counts = np.unique(found, return_counts=True)
        if not len(numbers):
            shares[kind, -1] = weight
        for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
            shares[kind, number] = weight * count / len(found)
    return shares


def _of_workload(run: Run) -> Mapping[str, float]:
    """Return what a job does of which nothing began; a read, if its workload does not say."""
    load = run.job.load
    reads = OperationKind.GET if load.split is None else OperationKind.GET_RANGE
    kinds = run.job.declared.kinds(load) or {reads: 1.0}
    return {kind.value: weight for kind, weight in kinds.items()}
