"""How far each worker's clock may be from the driver's: intervals, not guesses. Pure.

With theta = worker's clock - driver's clock, two kinds of evidence bound theta:

causality
    A function cannot begin before it was submitted, nor end after its record was here:
    ``end - collected <= theta <= start - submitted``.
the store's ``Date``
    An answer that says second ``D`` was made while the store's clock was in
    ``[D, D + 1)``, at some moment between the request and the answer's head:
    ``request - D - 1 s < worker - store <= answer - D``. The driver asks the same store,
    and the difference of the two intervals bounds theta.

All evidence of one worker is intersected (Marzullo and Owicki 1983). If nothing is left,
its clock has stepped, or somebody's record is wrong: the functions are ``suspect``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import (
    ABSENT,
    ChangedTable,
    Ints,
    Mask,
    Table,
    at_percentiles,
)
from serverless_bench.units import NS_PER_S

_UNKNOWN: Final = 1 << 62
_STEP_NS: Final = 100_000_000
"""NTP slews a clock by 0.5 ms a second at most (adjtime(3)); this is a step, or a freeze."""
_MOVED: Final = frozenset(
    {
        *("born_ns", "start_ns", "end_ns", "first_byte_ns", "last_byte_sent_ns", "answered_ns"),
        *("intended_ns", "first_ns", "last_ns", "until_ns"),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Offsets:
    """What is known of each function's clock; arrays have a value per row of ``functions``."""

    low_ns: Ints
    high_ns: Ints
    """Worker's clock minus driver's clock lies in ``[low_ns, high_ns]``."""
    known: Mask
    """Whether there was a record, hence any evidence."""
    suspect: Mask
    """Whether the evidence contradicts itself."""

    @property
    def best_ns(self) -> Ints:
        """The offset to correct with: 0 where the evidence allows it, else the middle."""
        # A clock that may be right is taken for right; correcting it within its interval
        # would only move the error about.
        middle = self.low_ns + (self.high_ns - self.low_ns) // 2
        right = (self.low_ns <= 0) & (self.high_ns >= 0)
        return np.where(self.known & ~self.suspect & ~right, middle, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """How well the workers' clocks are known; analysis/figures.toml defines each figure."""

    width_p50_s: float | None
    width_max_s: float | None
    corrected: int
    suspect: int


def worker_offsets(run: Run) -> Offsets:
    """Return the interval of every worker's clock."""
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
    low, high = _shared(functions, known & ~suspect, low, high)
    return Offsets(low_ns=low, high_ns=high, known=known, suspect=suspect)


def store_offset(probes: Sequence[Sequence[int]]) -> tuple[int, int] | None:
    """Return bounds in ns of the driver's clock minus the store's, from its own requests.

    Parameters
    ----------
    probes
        ``(sent_ns, received_ns, date_s)`` of each request, on the driver's clock.
    """
    low = max((sent - (date + 1) * NS_PER_S for sent, _, date in probes), default=-_UNKNOWN)
    high = min((received - date * NS_PER_S for _, received, date in probes), default=_UNKNOWN)
    # A store of several machines may have several clocks; then its dates bound nothing.
    return None if low > high or low == -_UNKNOWN else (low, high)


def clocks(offsets: Offsets) -> Clocks:
    """Return how well the clocks are known, all of them together."""
    width_ns = (offsets.high_ns - offsets.low_ns)[offsets.known & ~offsets.suspect]
    return Clocks(
        width_p50_s=float(at_percentiles(width_ns, (50,))[0]) / NS_PER_S if len(width_ns) else None,
        width_max_s=float(width_ns.max()) / NS_PER_S if len(width_ns) else None,
        corrected=int((offsets.best_ns != 0).sum()),
        suspect=int(offsets.suspect.sum()),
    )


def aligned(run: Run, offsets: Offsets) -> Run:
    """Return the run with every instant of its workers on the driver's clock."""
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
        overdue=ChangedTable(run.overdue, moved),
    )


def _shared(functions: Table, known: Mask, low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """Intersect over the invocations that one worker served: they had one clock.

    Where nothing is left it drifted or was set between them; each keeps its own then.
    """
    rows = np.flatnonzero(known)
    names, worker = np.unique(functions["worker_id"][rows].astype(str), return_inverse=True)
    lows, highs = np.full(len(names), -_UNKNOWN), np.full(len(names), _UNKNOWN)
    np.maximum.at(lows, worker, low[rows])
    np.minimum.at(highs, worker, high[rows])
    agree = (lows <= highs)[worker]
    low, high = low.copy(), high.copy()
    low[rows[agree]], high[rows[agree]] = lows[worker[agree]], highs[worker[agree]]
    return low, high


def stepped(functions: Table) -> Mask:
    """Tell which invocations saw their wall clock move by another time than passed."""
    wall = functions["wall_end_ns"] - functions["wall_start_ns"]
    passed = functions["end_ns"] - functions["start_ns"]
    return np.asarray((functions["wall_start_ns"] > 0) & (np.abs(wall - passed) > _STEP_NS))
