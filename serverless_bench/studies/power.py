"""What a number of rounds can find of a published difference, by simulation. Pure."""

from dataclasses import dataclass
from math import inf, log
from typing import Final

from serverless_bench.statistics.power import found_share, rounds_needed
from serverless_bench.studies.cells import published_row
from serverless_bench.studies.comparisons import CellComparison
from serverless_bench.studies.definition import Experiment

MATTERS: Final = 1.25
"""The true ratio that is simulated: from here on a published difference is large."""


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
