"""Bound the offset between each worker's clock and the driver's clock by intervals. Pure.

Let theta be the worker's clock minus the driver's clock. Two kinds of evidence bound theta:

causality
    A function cannot start before it was submitted, nor end after its record was collected:
    ``end - collected <= theta <= start - submitted``.
the store's ``Date``
    A response with second ``D`` was created while the store's clock was in ``[D, D + 1)``, at
    some time between the request and the response headers:
    ``request - D - 1 s < worker - store <= answer - D``. The driver queries the same store, and
    the difference of the two intervals bounds theta.

All evidence of a worker is intersected (Marzullo and Owicki 1983). If the intersection is empty,
its clock has stepped, or a record is incorrect: the functions are ``suspect``. Functions on the
driver's own machine never are: they have its clock.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from serverless_bench.base.units import NS_PER_S
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import (
    ABSENT,
    ChangedTable,
    Ints,
    Mask,
    Table,
    at_percentiles,
)

_UNKNOWN: Final = 1 << 62
_STEP_NS: Final = 100_000_000
"""Threshold for a step or a freeze; NTP slews a clock by at most 0.5 ms/s (adjtime(3))."""
_MOVED: Final = frozenset(
    {
        *("born_ns", "start_ns", "end_ns", "first_byte_ns", "last_byte_sent_ns", "answered_ns"),
        *("intended_ns", "first_ns", "last_ns", "until_ns"),
    }
)


class Offsets(Struct, frozen=True, kw_only=True, eq=False):
    """Evidence on each function's clock; arrays have a value per row of ``functions``."""

    low_ns: Ints
    high_ns: Ints
    """Upper bound: the worker's clock minus the driver's is in ``[low_ns, high_ns]``."""
    known: Mask
    """Whether a record, and so any evidence, exists."""
    suspect: Mask
    """Whether the evidence is contradictory."""

    @property
    def best_ns(self) -> Ints:
        """Offset used for correction: 0 if the evidence allows it, otherwise the middle."""
        # A clock that may be correct is left unchanged; a correction within its interval would
        # only shift the error.
        middle = self.low_ns + (self.high_ns - self.low_ns) // 2
        right = (self.low_ns <= 0) & (self.high_ns >= 0)
        return np.where(self.known & ~self.suspect & ~right, middle, 0)


class Clocks(Struct, frozen=True, kw_only=True):
    """Accuracy of the workers' clocks; metrics/figures.toml defines each field."""

    width_p50_s: float | None
    width_max_s: float | None
    corrected: int
    suspect: int


def worker_offsets(run: Run) -> Offsets:
    """Return the interval of every worker's clock offset."""
    functions = run.functions
    known = (functions["start_ns"] != ABSENT) & (functions["submitted_ns"] != ABSENT)
    low = np.where(known, functions["end_ns"] - functions["collected_ns"], -_UNKNOWN)
    high = np.where(known, functions["start_ns"] - functions["submitted_ns"], _UNKNOWN)
    driver = store_offset(run.probes)
    if driver is not None:
        attempts = run.attempts
        dated = np.flatnonzero((attempts["date_s"] != ABSENT) & (attempts["answered_ns"] != ABSENT))
        row, date_ns = attempts["function"][dated], attempts["date_s"][dated] * NS_PER_S
        by_low = attempts["start_ns"][dated] - date_ns - NS_PER_S
        np.maximum.at(low, row, by_low - driver[1])
        np.minimum.at(high, row, attempts["answered_ns"][dated] - date_ns - driver[0])
    suspect = known & ((low > high) | stepped(functions))
    if run.job.control is None:
        # Functions of the driver's machine have its clock: the evidence is wrong, as a busy store
        # answers with the date of a second or two before.
        low, high = (np.where(suspect, 0, bound) for bound in (low, high))
        suspect = np.zeros_like(suspect)
    low, high = _shared(functions, known & ~suspect, low, high)
    return Offsets(low_ns=low, high_ns=high, known=known, suspect=suspect)


def store_offset(probes: Sequence[Sequence[int]]) -> tuple[int, int] | None:
    """Return bounds in ns of the driver's clock minus the store's clock, from its requests.

    Parameters
    ----------
    probes
        ``(sent_ns, received_ns, date_s)`` of each request, on the driver's clock.
    """
    low = max((sent - (date + 1) * NS_PER_S for sent, _, date in probes), default=-_UNKNOWN)
    high = min((received - date * NS_PER_S for _, received, date in probes), default=_UNKNOWN)
    # A store of multiple machines may have multiple clocks; their dates bound nothing.
    return None if low > high or low == -_UNKNOWN else (low, high)


def clocks(offsets: Offsets) -> Clocks:
    """Return the combined accuracy of all clocks."""
    width_ns = (offsets.high_ns - offsets.low_ns)[offsets.known & ~offsets.suspect]
    return Clocks(
        width_p50_s=float(at_percentiles(width_ns, (50,))[0]) / NS_PER_S if len(width_ns) else None,
        width_max_s=float(width_ns.max()) / NS_PER_S if len(width_ns) else None,
        corrected=int((offsets.best_ns != 0).sum()),
        suspect=int(offsets.suspect.sum()),
    )


def aligned(run: Run, offsets: Offsets) -> Run:
    """Return the run with all worker timestamps on the driver's clock."""
    shift = offsets.best_ns
    if not shift.any():
        return run

    def moved(name: str, table: Table) -> NDArray[Any]:
        if name not in _MOVED:
            return table[name]
        column, row = table[name], table.get("function", slice(None))
        return np.where(column == ABSENT, ABSENT, column - shift[row])

    return replace(
        run,
        functions={name: moved(name, run.functions) for name in run.functions},
        operations=ChangedTable(run.operations, moved),
        attempts=ChangedTable(run.attempts, moved),
        dropped=ChangedTable(run.dropped, moved),
    )


def _shared(functions: Table, is_usable: Mask, low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """Intersect the intervals of all invocations of a worker, which share a clock.

    If the intersection is empty, the clock drifted or was set; the intervals remain unchanged then.
    """
    rows = np.flatnonzero(is_usable)
    names, worker = np.unique(functions["worker_id"][rows].astype(str), return_inverse=True)
    lows, highs = np.full(len(names), -_UNKNOWN), np.full(len(names), _UNKNOWN)
    np.maximum.at(lows, worker, low[rows])
    np.minimum.at(highs, worker, high[rows])
    agree = (lows <= highs)[worker]
    low, high = low.copy(), high.copy()
    low[rows[agree]], high[rows[agree]] = lows[worker[agree]], highs[worker[agree]]
    return low, high


def stepped(functions: Table) -> Mask:
    """Return a mask of invocations with a step in their wall clock."""
    wall = functions["wall_end_ns"] - functions["wall_start_ns"]
    passed = functions["end_ns"] - functions["start_ns"]
    return np.asarray((functions["wall_start_ns"] > 0) & (np.abs(wall - passed) > _STEP_NS))
