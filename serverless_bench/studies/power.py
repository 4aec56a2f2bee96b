"""What a number of rounds can find of a published difference, by simulation. Pure."""

from dataclasses import dataclass
from functools import cache
from math import inf, log, sqrt
from typing import Final

import numpy as np

from serverless_bench.analysis.compare import ALPHA
from serverless_bench.rundir.tables import Floats
from serverless_bench.studies.cells import published_row
from serverless_bench.studies.comparisons import CellComparison
from serverless_bench.studies.definition import Experiment

MATTERS: Final = 1.25
"""The true ratio that is simulated: from here on a published difference is large."""
ENOUGH: Final = 0.9
MOST_ROUNDS: Final = 200
_DRAWS: Final = 2_000
_SEED: Final = 20261121
_STEP: Final = 1.15


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    """How often such an experiment finds a difference that is there."""

    published: float
    """Second over first, as published."""
    ratio: float
    """The true ratio that was simulated."""
    found: float
    """Share of the simulated experiments that find it, at least."""
    rounds: int | None
    """Runs of each cell, as long as these, that find it in ``ENOUGH`` of the experiments;
    None for more than ``MOST_ROUNDS``."""
    run_s: float
    """How long a run of the slower-running cell was."""


def power_for(experiment: Experiment, comparison: CellComparison, tests: int) -> Power | None:
    """Return what these rounds could find, where the published difference is large.

    None where nothing was published of both cells, or less than ``MATTERS``, or where the
    spread is not known.
    """
    published, paired = published_ratio(experiment, comparison), comparison.paired
    if published is None or abs(log(published)) < log(MATTERS):
        return None
    if paired.rounds < 2 or not 0 <= paired.sd < inf:
        return None
    about = {"ratio": MATTERS, "threshold": comparison.threshold}
    return Power(
        published=published,
        ratio=MATTERS,
        found=found_share(paired.sd, paired.rounds, tests, **about),
        rounds=rounds_needed(paired.sd, tests, **about),
        run_s=max(comparison.first.run_s, comparison.second.run_s),
    )


def published_ratio(experiment: Experiment, comparison: CellComparison) -> float | None:
    """Return the published figure of the second cell over that of the first."""
    metric, times = comparison.metric, comparison.published_times
    rows = (published_row(experiment, one.cell) for one in (comparison.first, comparison.second))
    first, second = (None if row is None else row.range(metric.name) for row in rows)
    if first is None or second is None or not first[0] or not second[0]:
        return None
    return second[0] / first[0] / (times if metric.better == "more" else 1 / times)


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
