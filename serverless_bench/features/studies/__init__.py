"""Published studies, as files from which anyone can repeat them.

Each ``*.toml`` here is a study: axes, metrics, claims, and published rows.
From a file to a page::

    definition    content of a file, including checks of published rows    Study
    contradictions    published rows that fail these checks
    loading       parsing and validation of a file
    settings      conversion of a cell's settings into a job        JobSpec
    cells         list of all combinations to run             Cell
    plan          order and number of runs and their cost, saved so that a run can be resumed
    pilot         duration of the runs of each cell
    runner        rounds that run each cell once, and the stores for the objects
    observations  results of the runs of each cell    CellRuns
    comparisons   ratios within rounds, judged as one family; power of a study
    hypotheses    verdict on each claim
    table         measured values beside published values
    report        text or JSON, written by a writer; plot draws the picture

README.md is the guide.
"""

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Final, Literal, get_args

from serverless_bench.base.errors import UsageError, suggestion
from serverless_bench.base.user_files import parse_toml, read_text, reason

SCALES: Final = ("small", "paper")
"""Scales: small enough for a laptop, and as published."""
Design = Literal["full", "one-factor", "list"]
DESIGNS: Final[tuple[str, ...]] = get_args(Design)
"""Designs: all combinations of the axes; a baseline and single changes of it; the named cells."""
STATE: Final = "study.json"
"""File of the plan in the directory of a study."""
MAX_REPEATS: Final = 1000
"""Maximum number of rounds; no study has had a hundred."""


def names() -> list[str]:
    """Return the sorted names of the studies included in sbench."""
    here = files("serverless_bench.features.studies").iterdir()
    return sorted(file.name.removesuffix(".toml") for file in here if file.name.endswith(".toml"))


def titles() -> Iterator[tuple[str, str]]:
    """Yield the name and the title of each study, which is the first line of its file."""
    for name in names():
        with (files("serverless_bench.features.studies") / f"{name}.toml").open(
            encoding="utf-8"
        ) as file:
            yield name, parse_toml(file.readline())["title"]


def text_of(name: str) -> str:
    """Return the text of a study, by name or by the path of a file.

    Raises
    ------
    UsageError
        If no study has this name, or the file cannot be read.
    """
    if name in names():
        return (files("serverless_bench.features.studies") / f"{name}.toml").read_text(
            encoding="utf-8"
        )
    if not name.endswith(".toml"):
        raise UsageError(
            f"there is no study {name!r}",
            hint=suggestion(name, names(), otherwise="sbench study ls shows the names"),
        )
    try:
        return read_text(Path(name))
    except (OSError, ValueError) as exc:
        raise UsageError(f"cannot read the study {name}: {reason(exc)}") from exc
