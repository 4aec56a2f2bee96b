"""How long the runs of each cell last: a pilot run decides, before the first that counts.

What is decided by looking at runs that count would be decided by their chance, too. The
pilot also finds the store, its caches and the libraries of the cell as they will be.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import ceil, floor, sqrt
from pathlib import Path
from typing import Final

import orjson

from serverless_bench.analysis.timeline import segments_of
from serverless_bench.rundir.run import Run
from serverless_bench.statistics.stability import batch_means
from serverless_bench.studies.definition import Setting, Settings
from serverless_bench.studies.observations import operation_rates
from serverless_bench.units import NS_PER_S

LENGTHS: Final = "lengths.json"
PILOT_S: Final = 2.0
LEAST_S: Final = 1.0
"""Below it starting and ending are much of a run, whatever the pilot's spread was."""
BATCHES: Final = 10
"""Parts of a pilot whose means tell its standard error: long enough to be nearly
independent, many enough to know it within a quarter (Alexopoulos and Seila 1998)."""
MOST_ROUNDS: Final = 20
_SIZES: Final = frozenset({"duration", "objects", "total_objects", "read_times", "operations"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLength:
    """Of a cell's runs."""

    seconds: float
    """What they are to last."""
    settings: Mapping[str, Setting]
    """What makes them last so long."""
    around_s: float = 0.0
    """What starting, ending and deleting took beside, with the pilot."""
    standard_error: float | None
    """Of their rate as the pilot has it, relative; None if it does not tell."""


def is_fixed(changes: Settings) -> bool:
    """Tell whether the user sets how much a run does."""
    return not _SIZES.isdisjoint(changes)


def pilot_settings(settings: Settings, most_s: float) -> dict[str, Setting]:
    """Return the settings that make a pilot's length."""
    return {} if _is_append(settings) else {"duration": min(PILOT_S, most_s)}


def rounds_within(minutes: float, known: Collection[RunLength], least: int) -> int:
    """Return how many rounds fit into some minutes beside the pilots, but for the least."""
    pilots_s = sum(min(PILOT_S, one.seconds) + one.around_s for one in known)
    round_s = sum(one.seconds + one.around_s for one in known)
    fit = floor((minutes * 60 - pilots_s) / round_s) if round_s else least
    return min(max(least, fit), max(least, MOST_ROUNDS))


def length_of(
    spread: tuple[float | None, float | None], settings: Settings, most_s: float, error: float
) -> RunLength:
    """Return the length of a cell's runs.

    Parameters
    ----------
    spread
        Of the pilot, see ``spread_of``; nothing if it failed.
    settings
        Of the cell.
    most_s, error
        So many seconds, or this relative standard error of the rate, whichever is first.
    """
    (took_s, pilot_error), seconds, reached = spread, most_s, None
    if took_s is not None and pilot_error is not None:
        # Of the mean of independent parts: with the square root of their number.
        wanted_s = took_s * (pilot_error / error) ** 2 if error else most_s
        seconds = min(most_s, max(min(LEAST_S, most_s), wanted_s))
        reached = pilot_error * sqrt(took_s / seconds)
    length: dict[str, Setting] = {"duration": round(seconds, 2)}
    if _is_append(settings):
        # An array that is appended to begins once: more time is more appends.
        length = {"objects": settings.get("objects", 1)}
        if took_s and isinstance(length["objects"], int):
            length["objects"] = max(2, ceil(length["objects"] * seconds / took_s))
    return RunLength(seconds=seconds, settings=length, standard_error=reached)


def spread_of(run: Run) -> tuple[float | None, float | None]:
    """Return how long a run took, and the relative standard error of its rate.

    By batch means: the run in parts of equal length, each with its rate; of arrays, whose
    progress nobody sees, by their operations. None for either that it does not tell.
    """
    try:
        moved = segments_of(run, NS_PER_S // 1000).moved()[0]
    except ValueError:
        return None, None
    took_s = len(moved) / 1000
    size = len(moved) // BATCHES
    rates = batch_means(moved[: size * BATCHES], BATCHES)
    if run.job.declared.pieces(run.job.load) is not None:
        rates = operation_rates(run)
    if len(rates) < BATCHES // 2 or not rates.any():
        return took_s, None
    return took_s, float(rates.std(ddof=1) / sqrt(len(rates)) / rates.mean())


def load_lengths(root: Path) -> dict[str, RunLength]:
    """Return the lengths that are known, by the cells' slugs."""
    try:
        found = orjson.loads((root / LENGTHS).read_bytes())
    except FileNotFoundError:
        return {}
    return {slug: RunLength(**data) for slug, data in found.items()}


def save_lengths(root: Path, known: Mapping[str, RunLength]) -> None:
    """Keep the lengths, whole or not at all."""
    replace_json(root / LENGTHS, known)


def replace_json(path: Path, value: object) -> None:
    """Write a file in the place of the one that is there, whole or not at all."""
    part = path.with_name(f"{path.name}.part")
    part.write_bytes(orjson.dumps(value, option=orjson.OPT_INDENT_2))
    part.replace(path)


def _is_append(settings: Settings) -> bool:
    return settings.get("operation") == "append"
