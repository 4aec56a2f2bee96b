"""Where the share of bad operations reaches what an objective allows. Pure.

Each block is one run at one level: ``due`` operations, ``bad`` of them. The share of bad ones
is taken to rise with the level ``x`` along a logistic curve that passes through the allowed
share at the limit ``m``::

    share(x) = floor + (1 - floor) * expit(logit(rest) + slope * (x / m - 1))

A queue with exponential service has exactly such a tail below its capacity; a store that
refuses what is above a rate has one with a steep slope. Limit, slope and floor are not
known, nor is how much more blocks differ than independent operations would (``dispersion``:
slow operations come in clumps, as a queue is long for a while). All four lie on a grid; their
posterior is the product of Efron's double binomial likelihoods (Efron 1986, "Double
exponential families"), and the limit's is what is left when the others are summed out. No
verdict over a block enters: a percentile of a few hundred operations would be a biased one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from serverless_bench.rundir.tables import Floats

CELLS: Final = 64
"""Of the grid of limits."""
_SLOPES: Final = np.geomspace(1.0, 10_000.0, 10)
_DISPERSIONS: Final = np.geomspace(1.0, 32.0, 6)
"""Twice as much is half as likely before anything is seen: where nothing ever goes wrong, blocks do
not tell."""
_FLOORS: Final = (0.0, 0.5)
"""As shares of what is allowed: slow or failed operations that no lower level would avoid."""
_REACH: Final = 0.3
"""On a logarithmic scale, how far from the limit the curve is trusted to have one slope."""
_LEAST_WEIGHT: Final = 0.05
"""Of blocks far from the limit: they bracket it."""
_CENSORED: Final = 20.0
"""How steeply a store gets worse far above its limit depends on the length of a block, and says
nothing of the limit: more than so many times what is allowed counts as that."""
_NEGLIGIBLE: Final = 1e-5
_ZOOMS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What one block says of one part of an objective."""

    level: int
    due: int
    bad: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Posterior:
    """What is known of a limit: probabilities of limits on a grid."""

    limits: Floats
    """In rising order, at equal ratios."""
    mass: Floats
    dispersion: float = 1.0
    """How many times the variance of independent operations that of blocks is."""

    def quantile(self, share: float) -> float:
        """Return the limit below which ``share`` of the probability lies."""
        logs = np.log(self.limits)
        half = (logs[1] - logs[0]) / 2
        # A cell's probability is spread over the cell.
        edges = np.concatenate(([logs[0] - half], logs + half))
        below = np.concatenate(([0.0], np.cumsum(self.mass)))
        return float(np.exp(np.interp(share * below[-1], below, edges)))

    def above(self, level: float) -> float:
        """Return the probability that the limit is at ``level`` or above it."""
        return float(self.mass[self.limits >= level].sum() / self.mass.sum())

    def least_with(self, other: Self) -> "Posterior":
        """Return the posterior of the lower one of two limits on one grid."""
        one, two = (1 - np.cumsum(p.mass) + p.mass for p in (self, other))
        both = one * two
        mass = np.maximum(both - np.append(both[1:], 0.0), 0.0)
        return Posterior(
            limits=self.limits, mass=mass, dispersion=max(self.dispersion, other.dispersion)
        )


def posterior(parts: Sequence[tuple[float, Sequence[Trial]]], low: float, high: float) -> Posterior:
    """Return what blocks say of the limit: of the lowest one, where an objective has parts.

    Parameters
    ----------
    parts
        What each part of the objective allows, a share, and what the blocks say of it.
    low, high
        Between which limits are looked for; a limit that is known to lie outside is found at
        that end.
    """
    first, last = low, high
    centre: float | None = None
    for _ in range(_ZOOMS):
        limits = np.geomspace(first, last, CELLS)
        found = _of_part(*parts[0], limits, centre)
        for part in parts[1:]:
            found = found.least_with(_of_part(*part, limits, centre))
        inside = np.flatnonzero(found.mass > _NEGLIGIBLE)
        first = float(limits[max(0, inside[0] - 1)])
        last = float(limits[min(CELLS - 1, inside[-1] + 1)])
        centre = found.quantile(0.5)
    return found


def _of_part(
    allowed: float, trials: Sequence[Trial], limits: Floats, centre: float | None
) -> Posterior:
    from scipy.special import xlogy  # noqa: PLC0415 - an extra, and slow to load

    levels, place = np.unique([trial.level for trial in trials], return_inverse=True)
    most = _most(allowed)
    due = np.array([trial.due for trial in trials], float)
    bad = np.minimum([trial.bad for trial in trials], most * due)
    weight = np.ones(len(trials))
    if centre is not None:
        away = np.log(levels[place] / centre) / _REACH
        weight = np.maximum(np.exp(-0.5 * away**2), _LEAST_WEIGHT)
    # Of the likelihood of a level, the curve needs no more than two sums.
    good, wrong = (
        np.bincount(place, weights=weight * count, minlength=len(levels)).astype(np.float64)
        for count in (due - bad, bad)
    )
    share = bad / np.maximum(due, 1)
    best = float((weight * (xlogy(bad, share) + xlogy(due - bad, 1 - share))).sum())
    log_bad, log_good = _curve(allowed, levels, limits)
    deviance = best - _summed(wrong, log_bad) - _summed(good, log_good)
    prior = -np.log(_DISPERSIONS)
    fit = prior - 0.5 * weight.sum() * np.log(_DISPERSIONS) - deviance[..., None] / _DISPERSIONS
    chance = np.exp(fit - fit.max())
    mass = chance.sum(axis=(1, 2, 3))
    dispersion = float((chance.sum(axis=(0, 1, 2)) * _DISPERSIONS).sum() / chance.sum())
    return Posterior(limits=limits, mass=mass / mass.sum(), dispersion=dispersion)


def _curve(allowed: float, levels: NDArray[np.float64], limits: Floats) -> tuple[Floats, Floats]:
    """Return the logarithms of share and of one minus share: level, limit, slope, floor."""
    from scipy.special import expit, logit  # noqa: PLC0415 - as above

    floors = allowed * np.array(_FLOORS)
    away = (levels[:, None] / limits - 1)[..., None, None]
    at_limit = logit((allowed - floors) / (1 - floors))
    rising = expit(np.clip(at_limit + _SLOPES[:, None] * away, -40.0, 40.0))
    share = np.minimum(floors + (1 - floors) * rising, _most(allowed))
    return np.log(share), np.log1p(-share)


def _summed(weights: Floats, values: Floats) -> Floats:
    """Return a weighted sum over the first axis; no linear algebra, whose threads would spin."""
    return np.asarray(np.einsum("l,lmsf->msf", weights, values))


def _most(allowed: float) -> float:
    """Return the share from which on a block only says that the limit lies below."""
    return min(_CENSORED * allowed, (1 + allowed) / 2)
