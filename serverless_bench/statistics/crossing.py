"""Where the share of bad operations rises above what an objective allows. Pure.

Each block is one run at one level: ``due`` operations, ``bad`` of them. All that is assumed of a
store is that a higher level makes no smaller share bad. So the shares of the levels are fitted by
isotonic regression (Barlow et al. 1972, "Statistical inference under order restrictions"), which
takes the curve's shape from the data: a share that is bad at every level, a step and a slope are
shares as well as a queue's. What is not known is drawn again and again: each level's share from
its beta distribution (Jeffreys' prior), all of them made to rise, and the level at which they cross
what is allowed. Between two levels nothing was seen, and a crossing is as likely at any ratio.

Slow operations come in clumps, as a queue is long for a while, so that a block says less than as
many independent operations. The draws are of as many fewer operations as blocks around the limit
differ from the fit by more than chance (``dispersion``, Pearson's).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from serverless_bench.rundir.tables import Floats

_DRAWS: Final = 400
_CENSORED: Final = 20.0
"""How steeply a store gets worse far above its limit depends on the length of a block, and says
nothing of the limit: more than so many times what is allowed counts as that."""
_AROUND: Final = 6.0
"""Blocks of levels whose fitted share is at most so many times what is allowed tell the
dispersion."""
_EXPECTED: Final = 0.2
"""Bad operations that such a block has to be expected to have, at least."""
_OUTLIER: Final = 100.0
"""More than ten standard errors off count as ten: something else used the machine."""
_SPOILED: Final = 10.0
"""A block with more than so many times the bad operations that are allowed, among blocks of its
level and above of which three times as many hold, was spoiled: something else used the machine."""
_OUTVOTED: Final = 3
_PRIOR_BLOCKS: Final = 2.0
"""Before any was seen it is as if so many blocks had differed by chance alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What one block says of one part of an objective."""

    level: int
    due: int
    bad: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Crossing:
    """Draws of the limit that blocks leave possible."""

    limits: Floats
    """A limit below the lowest level that was tried, or above the highest, is within a factor
    of two of it; only that it lies outside is known."""
    dispersion: float
    """How many times the variance of independent operations that of blocks is."""

    def quantile(self, share: float) -> float:
        """Return the limit below which ``share`` of the probability lies."""
        return float(np.quantile(self.limits, share))

    def above(self, level: float) -> float:
        """Return the probability that the limit is at ``level`` or above it."""
        return float((self.limits >= level).mean())


def crossing(parts: Sequence[tuple[float, Sequence[Trial]]]) -> Crossing:
    """Return what blocks say of the limit: of the lowest one, where an objective has parts.

    Parameters
    ----------
    parts
        What each part of the objective allows, a share, and what the blocks say of it.
    """
    rng = np.random.default_rng(len(parts[0][1]))
    drawn = [_of_part(allowed, trials, rng) for allowed, trials in parts]
    return Crossing(
        limits=np.min([part.limits for part in drawn], axis=0),
        dispersion=max(part.dispersion for part in drawn),
    )


def _of_part(allowed: float, trials: Sequence[Trial], rng: np.random.Generator) -> Crossing:
    from scipy.optimize import isotonic_regression  # noqa: PLC0415 - an extra, and slow to load

    trials = [trial for trial in trials if not _is_spoiled(trial, allowed, trials)]
    levels, place = np.unique([trial.level for trial in trials], return_inverse=True)
    due = np.array([max(trial.due, 1) for trial in trials], dtype=np.float64)
    most = min(_CENSORED * allowed, (1 + allowed) / 2)
    bad = np.minimum([trial.bad for trial in trials], most * due)
    of_level, bad_of_level = (np.bincount(place, weights=counts) for counts in (due, bad))
    fitted = isotonic_regression(bad_of_level / of_level, weights=of_level).x[place]
    dispersion = _dispersion(due, bad, fitted, _AROUND * allowed)
    count, wrong = of_level / dispersion, bad_of_level / dispersion
    shares = rng.beta(wrong + 0.5, count - wrong + 0.5, size=(_DRAWS, len(levels)))
    held = [int((isotonic_regression(share, weights=count).x <= allowed).sum()) for share in shares]
    edges = np.log([levels[0] / 2, *levels, levels[-1] * 2])
    low, high = edges[held], edges[np.array(held) + 1]
    return Crossing(limits=np.exp(rng.uniform(low, high)), dispersion=dispersion)


def _is_spoiled(block: Trial, allowed: float, trials: Sequence[Trial]) -> bool:
    """Tell whether higher levels that held speak against a block that did not."""
    if block.bad <= _SPOILED * allowed * block.due:
        return False
    good = [t.level for t in trials if t.level >= block.level and t.bad <= allowed * t.due]
    broken = [
        t
        for t in trials
        if good and block.level <= t.level <= max(good) and t.bad > _SPOILED * allowed * t.due
    ]
    return len(good) >= _OUTVOTED * max(len(broken), 1)


def _dispersion(due: Floats, bad: Floats, fitted: NDArray[np.float64], most: float) -> float:
    """Return the variance of blocks around the limit, over that of independent operations."""
    telling = (fitted < most) & (due * fitted >= _EXPECTED)
    due, bad, fitted = due[telling], bad[telling], fitted[telling]
    squares = (bad - due * fitted) ** 2 / (due * fitted * (1 - fitted))
    freedom = len(squares) - len(np.unique(fitted))
    total = float(np.minimum(squares, _OUTLIER).sum())
    return max(1.0, (total + _PRIOR_BLOCKS) / (freedom + _PRIOR_BLOCKS))
