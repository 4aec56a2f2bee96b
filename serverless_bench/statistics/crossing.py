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
from math import inf
from typing import Final

import numpy as np
from numpy.typing import NDArray

from serverless_bench.rundir.tables import Floats, Ints

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
_NEUTRAL: Final = 0.2275
"""Over what is allowed: with half a bad operation, so many good ones make a level as likely to hold
as not. By Jeffreys' prior a level would be broken of which nobody has seen a bad operation."""
_RISES: Final = 0.01
"""Levels below have fewer bad operations than a share allows if chance does that this seldom."""
_FAR: Final = 1 / 4
"""A store with at most so much of what is allowed would have been seen to hold."""
_TAIL: Final = 0.025


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
    first_bad: float = 0.0
    """The lowest level at which an operation was bad."""

    def quantile(self, share: float) -> float:
        """Return the limit below which ``share`` of the probability lies."""
        return float(np.quantile(self.limits, share))

    def above(self, level: float) -> float:
        """Return the probability that the limit is at ``level`` or above it.

        Where no operation was bad it is a half at least: nobody has seen the objective broken.
        """
        return max(float((self.limits >= level).mean()), 0.5 * (level < self.first_bad))


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
        first_bad=min(part.first_bad for part in drawn),
    )


def _of_part(allowed: float, trials: Sequence[Trial], rng: np.random.Generator) -> Crossing:
    from scipy.optimize import isotonic_regression  # noqa: PLC0415 - an extra, and slow to load

    level, due, bad = _counts(allowed, trials)
    levels, place = np.unique(level, return_inverse=True)
    of_level, bad_of_level = (np.bincount(place, weights=counts) for counts in (due, bad))
    fitted = isotonic_regression(bad_of_level / of_level, weights=of_level).x[place]
    dispersion = _dispersion(due, bad, fitted, _AROUND * allowed)
    count, wrong = of_level / dispersion, bad_of_level / dispersion
    seen = np.cumsum(wrong) > 0
    right = count - wrong + np.where(seen, 0.5, _NEUTRAL / allowed)
    shares = rng.beta(wrong + 0.5, right, size=(_DRAWS, len(levels)))
    held = [int((isotonic_regression(share, weights=count).x <= allowed).sum()) for share in shares]
    edges = np.log([levels[0] / 2, *levels, levels[-1] * 2])
    low, high = edges[held], edges[np.array(held) + 1]
    return Crossing(
        limits=np.exp(rng.uniform(low, high)),
        dispersion=dispersion,
        first_bad=float(min(levels[seen], default=inf)),
    )


def breaks_alike(allowed: float, trials: Sequence[Trial], broken: int) -> bool:
    """Tell whether the levels below one that breaks an objective break it in the same way.

    Few operations are due at low levels, and seldom show by themselves that they break it. They
    do if together they have clearly more bad operations than a store that holds, and a lower
    level has no fewer than a higher one.

    Parameters
    ----------
    allowed, trials
        Of one part of the objective.
    broken
        Level that is shown to break it.
    """
    from scipy.special import betainc  # noqa: PLC0415 - an extra, and slow to load

    level, due, bad = _counts(allowed, trials)
    below = level < broken
    if not below.any():
        return True
    share = bad[below].sum() / due[below].sum()
    if share <= allowed:
        below_or_at = level <= broken
        share = bad[below_or_at].sum() / due[below_or_at].sum()
    for top in np.unique(level[below]):
        lower = level <= top
        of_block, bad_of_block = due[lower], bad[lower]
        count, wrong = of_block.sum(), bad_of_block.sum()
        even = np.full(len(of_block), wrong / count)
        dispersion = _dispersion(of_block, bad_of_block, even, _AROUND * allowed)
        count, wrong = count / dispersion, wrong / dispersion
        # The chance of more than these.
        if betainc(wrong + 1, count - wrong, share) > 1 - _RISES:
            return False
    # Of the last ones, which are all below: the chance of as many, or more.
    return bool(wrong and betainc(wrong, count - wrong + 1, _FAR * allowed) <= _TAIL)


def _counts(allowed: float, trials: Sequence[Trial]) -> tuple[Ints, Floats, Floats]:
    """Return the levels of blocks that were not spoiled, what was due there, and what was bad."""
    trials = [trial for trial in trials if not _is_spoiled(trial, allowed, trials)]
    due = np.array([max(trial.due, 1) for trial in trials], dtype=np.float64)
    most = min(_CENSORED * allowed, (1 + allowed) / 2)
    bad = np.minimum([trial.bad for trial in trials], most * due)
    return np.array([trial.level for trial in trials]), due, bad


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
