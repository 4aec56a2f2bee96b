"""Where a limit lies, cell by cell: docs/limit.md and ``limits/posterior.py`` say what is meant.

One number at a time, as the formulas of the model have it, on the grid of the package: 64
limits at equal ratios, which is made finer twice around what is likely.
"""

from collections.abc import Sequence
from math import exp, log
from typing import NamedTuple

Block = tuple[int, int, int]
"""Level, operations that were due, bad ones."""
Part = tuple[float, Sequence[Block]]
"""What a part of an objective allows, and what blocks say of it."""
CELLS = 64
SLOPES = [10 ** (4 * n / 9) for n in range(10)]
DISPERSIONS = [2.0**n for n in range(6)]


class Posterior(NamedTuple):
    """Probabilities of limits; and how much more blocks differ than chance would have it."""

    limits: list[float]
    mass: list[float]
    dispersion: float


def posterior(parts: Sequence[Part], low: float, high: float) -> Posterior:
    """Return the posterior of the lowest of the parts' limits."""
    centre: float | None = None
    for _ in range(3):
        limits = [low * (high / low) ** (n / (CELLS - 1)) for n in range(CELLS)]
        of_parts = [_of_part(*part, limits, centre) for part in parts]
        mass = _of_least([mass for mass, _ in of_parts])
        likely = [n for n, one in enumerate(mass) if one > 1e-5]
        low, high = limits[max(0, likely[0] - 1)], limits[min(CELLS - 1, likely[-1] + 1)]
        centre = median(limits, mass)
    return Posterior(limits, mass, max(dispersion for _, dispersion in of_parts))


def median(limits: Sequence[float], mass: Sequence[float]) -> float:
    """Return the limit with half of the probability below it: a cell's lies all over the cell."""
    step, seen, half = log(limits[1] / limits[0]), 0.0, sum(mass) / 2
    for limit, one in zip(limits, mass, strict=True):
        if seen + one >= half:
            return limit * exp(step * ((half - seen) / one - 0.5))
        seen += one
    raise AssertionError


def _of_least(masses: Sequence[Sequence[float]]) -> list[float]:
    """Return the probabilities of the least of independent limits."""
    above = [1.0] * (CELLS + 1)
    for mass in masses:
        above = [one * sum(mass[n:]) for n, one in enumerate(above)]
    return [above[n] - above[n + 1] for n in range(CELLS)]


def _of_part(
    allowed: float, blocks: Sequence[Block], limits: Sequence[float], centre: float | None
) -> tuple[list[float], float]:
    most = min(20 * allowed, (1 + allowed) / 2)
    logs: list[tuple[int, float, float]] = []
    weights = [_weight(level, centre) for level, _, _ in blocks]
    counts = [(level, due, min(bad, most * due)) for level, due, bad in blocks]
    best = sum(
        weight * _log_likelihood(bad / due, due, bad)
        for weight, (_, due, bad) in zip(weights, counts, strict=True)
    )
    for cell, limit in enumerate(limits):
        for slope in SLOPES:
            for floor in (0.0, 0.5 * allowed):
                start = (allowed - floor) / (1 - floor)
                found = 0.0
                for weight, (level, due, bad) in zip(weights, counts, strict=True):
                    rise = log(start / (1 - start)) + slope * (level / limit - 1)
                    rising = 1 / (1 + exp(-min(40.0, max(-40.0, rise))))
                    share = min(floor + (1 - floor) * rising, most)
                    found += weight * _log_likelihood(share, due, bad)
                # Efron's double binomial: the likelihood to the power of 1 / dispersion, over
                # the root of the dispersion for each block; and 1 / dispersion as the prior.
                logs += [
                    (cell, d, (found - best) / d - (1 + sum(weights) / 2) * log(d))
                    for d in DISPERSIONS
                ]
    highest = max(one for _, _, one in logs)
    mass, of_dispersions = [0.0] * len(limits), 0.0
    for cell, dispersion, one in logs:
        mass[cell] += exp(one - highest)
        of_dispersions += dispersion * exp(one - highest)
    total = sum(mass)
    return [one / total for one in mass], of_dispersions / total


def _weight(level: int, centre: float | None) -> float:
    if centre is None:
        return 1.0
    return max(0.05, exp(-((log(level / centre) / 0.3) ** 2) / 2))


def _log_likelihood(share: float, due: float, bad: float) -> float:
    good = due - bad
    return (bad * log(share) if bad else 0.0) + (good * log(1 - share) if good else 0.0)
