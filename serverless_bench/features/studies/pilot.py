"""Durations of the runs of each cell, determined by a pilot run before the first counted run.

A decision based on counted runs would depend on random variation, too. The pilot also
brings the store, its caches and the libraries of the cell into their later state.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import ceil, floor, sqrt
from pathlib import Path
from typing import Final

import orjson

from serverless_bench.base.units import NS_PER_S
from serverless_bench.features.compare.stability import batch_means
from serverless_bench.features.studies.definition import Setting, Settings
from serverless_bench.features.studies.observations import operation_rates
from serverless_bench.job.abilities import pieces_of
from serverless_bench.metrics.timeline import segments_of
from serverless_bench.rundir.run import Run

LENGTHS: Final = "lengths.json"
PILOT_S: Final = 2.0
LEAST_S: Final = 1.0
"""Minimum duration: starting and ending would dominate shorter runs, whatever the pilot's spread.
"""
BATCHES: Final = 10
"""Parts of a pilot that determine the standard error by means: long enough to be nearly
independent, and enough of them to know it within a quarter (Alexopoulos and Seila 1998).
"""
MOST_ROUNDS: Final = 20
_SIZES: Final = frozenset({"duration", "objects", "total_objects", "read_times", "operations"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLength:
    """Duration of a cell's runs."""

    seconds: float
    """Planned duration of a run."""
    settings: Mapping[str, Setting]
    """Settings that result in this duration."""
    around_s: float = 0.0
    """Time that starting, ending and deleting took in addition, for the pilot."""
    standard_error: float | None
    """Relative standard error of the rate, by the pilot; None if the pilot does not determine it.
    """


def is_fixed(changes: Settings) -> bool:
    """Return whether the user sets the amount of work of a run."""
    return not _SIZES.isdisjoint(changes)


def pilot_settings(settings: Settings, most_s: float) -> dict[str, Setting]:
    """Return the settings that determine the duration of a pilot; none if operations do."""
    lasts = not _is_append(settings) and "operations" not in settings
    return {"duration": min(PILOT_S, most_s)} if lasts else {}


def rounds_within(minutes: float, lengths: Collection[RunLength], least: int) -> int:
    """Return how many rounds fit into some minutes with the pilots, but at least ``least``."""
    pilots_s = sum(min(PILOT_S, length.seconds) + length.around_s for length in lengths)
    round_s = sum(length.seconds + length.around_s for length in lengths)
    fit = floor((minutes * 60 - pilots_s) / round_s) if round_s else least
    return min(max(least, fit), max(least, MOST_ROUNDS))


def length_of(
    spread: tuple[float | None, float | None], settings: Settings, most_s: float, error: float
) -> RunLength:
    """Return the duration of a cell's runs.

    Parameters
    ----------
    spread
        Duration and relative standard error of the pilot, see ``spread_of``; None if it failed.
    settings
        Settings of the cell.
    most_s, error
        Maximum duration, and relative standard error of the rate at which a shorter run suffices.
    """
    (took_s, pilot_error), seconds, reached = spread, most_s, None
    if took_s is not None and pilot_error is not None:
        # The standard error of a mean of independent parts falls with the square root of their
        # number.
        wanted_s = took_s * (pilot_error / error) ** 2 if error else most_s
        seconds = min(most_s, max(min(LEAST_S, most_s), wanted_s))
        reached = pilot_error * sqrt(took_s / seconds)
    length: dict[str, Setting] = {} if "operations" in settings else {"duration": round(seconds, 2)}
    if _is_append(settings):
        # An array for appends is created once: longer runs have more appends.
        length = {"objects": settings.get("objects", 1)}
        if took_s and isinstance(length["objects"], int):
            length["objects"] = max(2, ceil(length["objects"] * seconds / took_s))
    return RunLength(seconds=seconds, settings=length, standard_error=reached)


def spread_of(run: Run) -> tuple[float | None, float | None]:
    """Return the duration of a run, and the relative standard error of the rate.

    The error comes from batch means: the run is divided into parts of equal length, each with a
    rate. Arrays do not report progress, so their operations replace the parts. Either value is None
    if the run does not determine it.
    """
    try:
        moved = segments_of(run, NS_PER_S // 1000).moved()[0]
    except ValueError:
        return None, None
    took_s = len(moved) / 1000
    size = len(moved) // BATCHES
    rates = batch_means(moved[: size * BATCHES], BATCHES)
    if pieces_of(run.job.declared, run.job.load) is not None:
        rates = operation_rates(run)
    if len(rates) < BATCHES // 2 or not rates.any():
        return took_s, None
    return took_s, float(rates.std(ddof=1) / sqrt(len(rates)) / rates.mean())


def load_lengths(root: Path) -> dict[str, RunLength]:
    """Return the durations, by the cells' slugs."""
    try:
        lengths = orjson.loads((root / LENGTHS).read_bytes())
    except FileNotFoundError:
        return {}
    return {slug: RunLength(**data) for slug, data in lengths.items()}


def replace_json(path: Path, value: object) -> None:
    """Replace a file atomically."""
    part = path.with_name(f"{path.name}.part")
    part.write_bytes(orjson.dumps(value, option=orjson.OPT_INDENT_2))
    part.replace(path)


def _is_append(settings: Settings) -> bool:
    return settings.get("operation") == "append"
