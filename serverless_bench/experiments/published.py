"""What the published rows say of a comparison. Pure."""

import re
from math import log
from typing import Final

from serverless_bench.experiments.cells import published_row
from serverless_bench.experiments.power import MATTERS, Power, power_of
from serverless_bench.experiments.questions import Question
from serverless_bench.experiments.schema import Experiment, Row

_ABOUT: Final = re.compile(r"~(\d+(?:\.\d+)?)(?:-(\d+(?:\.\d+)?))?")
"""As in ``~1.2`` and ``~4-5``."""


def power_for(experiment: Experiment, asked: Question, tests: int) -> Power | None:
    """Return what these rounds could find, where the published difference is large.

    None where nothing was published of both cells, or less than ``MATTERS``.
    """
    found = published_ratio(experiment, asked)
    if found is None or abs(log(found)) < log(MATTERS):
        return None
    return power_of(
        asked.contrast.sd,
        asked.contrast.rounds,
        tests,
        threshold=asked.threshold,
        published=found,
        run_s=max(asked.first.run_s, asked.second.run_s),
    )


def published_ratio(experiment: Experiment, asked: Question) -> float | None:
    """Return the published figure of the second cell over that of the first."""
    rows = [published_row(experiment, one.cell) for one in (asked.first, asked.second)]
    first, second = (
        None if row is None else published_number(row, asked.metric.name) for row in rows
    )
    if not first or not second:
        return None
    times = asked.told_times if asked.metric.better == "more" else 1 / asked.told_times
    return second / first / times


def published_number(row: Row, metric: str) -> float | None:
    """Return a published figure; of a range its middle, of other words nothing."""
    told = published_range(row, metric)
    return None if told is None else told[0]


def published_range(row: Row, metric: str) -> tuple[float, float, float] | None:
    """Return a published figure and the ends of its range; None for words."""
    value = row.values.get(metric)
    if isinstance(value, str):
        match = _ABOUT.fullmatch(value)
        if match is None:
            return None
        value = (float(match[1]), float(match[2] or match[1]))
    if value is None:
        return None
    low, high = value if isinstance(value, tuple) else (value, value)
    return (low + high) / 2, low, high
