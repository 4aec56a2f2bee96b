"""What a number of paired rounds can find of a difference, by simulation. Pure."""

from functools import cache
from math import log, sqrt
from typing import Final

import numpy as np

from serverless_bench.rundir.tables import Floats
from serverless_bench.statistics.unpaired import ALPHA

ENOUGH: Final = 0.9
MOST_ROUNDS: Final = 200
_DRAWS: Final = 2_000
_SEED: Final = 20261121
_STEP: Final = 1.15


def found_share(sd: float, rounds: int, tests: int, *, ratio: float, threshold: float) -> float:
    """Return the share of simulated experiments that find a true ratio.

    Parameters
    ----------
    sd
        Of the logarithm of a ratio within one round.
    rounds
        How many.
    tests
        Comparisons of the experiment. Each is held to its share of ``ALPHA``; Holm's
        procedure finds at least as much.
    ratio, threshold
        What is there, and how much an estimate must be off 1.
    """
    if rounds < 2:
        return 0.0
    from scipy import special  # noqa: PLC0415 - an extra, and slow to load

    means, spreads = _drawn(rounds)
    mean, error = log(ratio) + sd * means, sd * spreads / sqrt(rounds)
    least = float(special.stdtrit(rounds - 1, 1 - ALPHA / (2 * max(1, tests))))
    hit = (mean > least * error) & (mean > log(1 + threshold))
    return float(np.mean(hit))


def rounds_needed(sd: float, tests: int, *, ratio: float, threshold: float) -> int | None:
    """Return the rounds that find a true ratio in ``ENOUGH`` of the experiments."""
    rounds = last = 2
    while rounds <= MOST_ROUNDS:
        if found_share(sd, rounds, tests, ratio=ratio, threshold=threshold) >= ENOUGH:
            # Between the last step and this one.
            return next(
                n
                for n in range(last, rounds + 1)
                if found_share(sd, n, tests, ratio=ratio, threshold=threshold) >= ENOUGH
            )
        last, rounds = rounds + 1, max(rounds + 1, round(rounds * _STEP))
    return None


@cache
def _drawn(rounds: int) -> tuple[Floats, Floats]:
    """Return means and standard deviations of so many normal numbers, drawn by a fixed seed.

    Both as of a standard deviation of 1: they scale, so that one draw serves all cells.
    """
    drawn = np.random.default_rng((_SEED, rounds)).standard_normal((_DRAWS, rounds))
    return drawn.mean(axis=1), drawn.std(axis=1, ddof=1)
