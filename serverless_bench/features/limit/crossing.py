"""Estimate the level at which the share of bad operations exceeds an objective. Pure functions.

Each block is a run at a level: ``due`` operations, ``bad`` of them. The only assumption is that
the share of bad operations does not decrease with the level. The shares are therefore fitted by
isotonic regression (Barlow et al. 1972, "Statistical inference under order restrictions"), which
takes the shape of the curve from the data, such as a constant share, a step, a slope or a queue.
Uncertainty is simulated: each draw takes a share of each level from its beta distribution
(Jeffreys' prior), makes the shares monotonic, and finds the level at which they cross the allowed
share. Between two levels there is no data, and the crossing is log-uniform.

Slow operations are clustered, because a queue stays long for a while, so a block has less
information than the same number of independent operations. The draws therefore reduce the number
of operations by the overdispersion of blocks near the limit (``dispersion``, Pearson's statistic).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Final

import numpy as np
from numpy.typing import NDArray

from serverless_bench.features.compare.distributions import beta_share
from serverless_bench.rundir.tables import Floats, Ints

_DRAWS: Final = 400
_CENSORED: Final = 20.0
"""Cap on shares, as a multiple of the allowed share. How fast a store degrades far above its limit
depends on the duration of a block, and has no information on the limit."""
_AROUND: Final = 6.0
"""Maximum fitted share of levels used for estimating the dispersion, as a multiple of the allowed
share."""
_EXPECTED: Final = 0.2
"""Minimum expected number of bad operations in these blocks."""
_OUTLIER: Final = 100.0
"""Cap on squared residuals, 10 standard errors: larger outliers are caused by other programs."""
WATCHED: Final = 24
"""Fewest blocks at or below a level that show that it holds: the time in which the store must not
have stalled."""
_PRIOR_BLOCKS: Final = 2.0
"""Prior weight of independence, in blocks, for estimating the dispersion."""
_NEUTRAL: Final = 0.2275
"""Pseudocount divided by the allowed share: with half a bad operation, this many successful
operations make a level equally likely to hold or not. With Jeffreys' prior, levels without bad
operations would count as broken."""
_RISES: Final = 0.01
"""Maximum probability of fewer bad operations at lower levels by chance."""
_FAR: Final = 1 / 4
"""Share of the allowed bad operations at which a store would clearly hold."""
_TAIL: Final = 0.025


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """Result of a block for a part of an objective."""

    level: int
    due: int
    bad: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Crossing:
    """Draws of possible limits, given the blocks."""

    limits: Floats
    """Limits below the lowest or above the highest tested level are drawn within a factor of two of
    it; their exact value is unknown."""
    dispersion: float
    """Variance of blocks relative to the variance of independent operations."""
    first_bad: float = 0.0
    """Lowest level with a bad operation."""

    def quantile(self, share: float) -> float:
        """Return the limit below which ``share`` of the probability is."""
        return float(np.quantile(self.limits, share))

    def above(self, level: float) -> float:
        """Return the probability that the limit is at or above ``level``.

        It is at least 0.5 at levels below the first bad operation: no violation was observed.
        """
        return max(float((self.limits >= level).mean()), 0.5 * (level < self.first_bad))


def crossing(parts: Sequence[tuple[float, Sequence[Trial]]]) -> Crossing:
    """Return the distribution of the limit; with multiple parts, of the lowest limit.

    Parameters
    ----------
    parts
        Allowed share and results of blocks for each part of the objective.
    """
    rng = np.random.default_rng(len(parts[0][1]))
    crossings = [_of_part(allowed, trials, rng) for allowed, trials in parts]
    return Crossing(
        limits=np.min([part.limits for part in crossings], axis=0),
        dispersion=max(part.dispersion for part in crossings),
        first_bad=min(part.first_bad for part in crossings),
    )


def _of_part(allowed: float, trials: Sequence[Trial], rng: np.random.Generator) -> Crossing:
    from scipy.optimize import isotonic_regression

    level, due, bad = _counts(allowed, trials)
    levels, place = np.unique(level, return_inverse=True)
    of_level, bad_of_level = (np.bincount(place, weights=counts) for counts in (due, bad))
    fitted = isotonic_regression(bad_of_level / of_level, weights=of_level).x[place]
    dispersion = _dispersion(due, bad, fitted, _AROUND * allowed)
    count, bad_count = of_level / dispersion, bad_of_level / dispersion
    has_bad = np.cumsum(bad_count) > 0
    good_count = count - bad_count + np.where(has_bad, 0.5, _NEUTRAL / allowed)
    shares = rng.beta(bad_count + 0.5, good_count, size=(_DRAWS, len(levels)))
    edges = np.log([levels[0] / 2, *levels, levels[-1] * 2])
    # The isotonic regression of a draw is at most ``allowed`` up to where the sum is greatest.
    held = np.pad(count * (allowed - shares), ((0, 0), (1, 0))).cumsum(axis=1).argmax(axis=1)
    low, high = edges[held], edges[held + 1]
    return Crossing(
        limits=np.exp(rng.uniform(low, high)),
        dispersion=dispersion,
        first_bad=float(min(levels[has_bad], default=inf)),
    )


def holds_together(allowed: float, trials: Sequence[Trial], level: int) -> float:
    """Return the probability that the blocks at or below a level hold the objective together.

    Slow operations may all be in a few blocks, for a store that stalls. Whole blocks are therefore
    resampled: a share that rests on a single block is uncertain, however many operations it has.
    It is 0 with fewer than ``WATCHED`` blocks, which most stalls would have missed.
    """
    below = [trial for trial in trials if trial.level <= level]
    if len(below) < WATCHED:
        return 0.0
    rng = np.random.default_rng(len(below))
    times = rng.multinomial(len(below), np.full(len(below), 1 / len(below)), size=_DRAWS)
    bad, due = (np.array(counts) for counts in zip(*((t.bad, t.due) for t in below), strict=True))
    # A stall takes the same share of the time at any level, where the lowest have few operations.
    of_time = times @ (bad / np.maximum(due, 1)) <= allowed * len(below)
    return float((of_time & (times @ bad <= allowed * (times @ due))).mean())


def breaks_alike(allowed: float, trials: Sequence[Trial], broken: int) -> bool:
    """Return whether the levels below a broken level break the objective in the same way.

    Low levels have few operations, and rarely prove by themselves that they break it. They do if,
    taken together, they clearly have more bad operations than a store that holds, and the share
    does not decrease towards lower levels.

    Parameters
    ----------
    allowed, trials
        Allowed share and results of blocks for a part of the objective.
    broken
        Level that has been shown to break the objective.
    """
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
        count, bad_count = of_block.sum(), bad_of_block.sum()
        even = np.full(len(of_block), bad_count / count)
        dispersion = _dispersion(of_block, bad_of_block, even, _AROUND * allowed)
        count, bad_count = count / dispersion, bad_count / dispersion
        # Probability of more bad operations.
        if beta_share(bad_count + 1, count - bad_count, share) > 1 - _RISES:
            return False
    # For the last group, which includes all lower levels: probability of at least as many.
    return bool(bad_count and beta_share(bad_count, count - bad_count + 1, _FAR * allowed) <= _TAIL)


def _counts(allowed: float, trials: Sequence[Trial]) -> tuple[Ints, Floats, Floats]:
    """Return the levels, operations and bad operations of blocks."""
    due = np.array([max(trial.due, 1) for trial in trials], dtype=np.float64)
    max_share = min(_CENSORED * allowed, (1 + allowed) / 2)
    bad = np.minimum([trial.bad for trial in trials], max_share * due)
    return np.array([trial.level for trial in trials]), due, bad


def _dispersion(due: Floats, bad: Floats, fitted: NDArray[np.float64], most: float) -> float:
    """Return the variance of blocks around the limit relative to independent operations."""
    is_informative = (fitted < most) & (due * fitted >= _EXPECTED)
    due, bad, fitted = due[is_informative], bad[is_informative], fitted[is_informative]
    squares = (bad - due * fitted) ** 2 / (due * fitted * (1 - fitted))
    freedom = len(squares) - len(np.unique(fitted))
    total = float(np.minimum(squares, _OUTLIER).sum())
    return max(1.0, (total + _PRIOR_BLOCKS) / (freedom + _PRIOR_BLOCKS))
