"""Studies that others published, as files that anyone can run again.

Each ``*.toml`` here is one: its axes, its metrics, what it claims, and the rows that were
published. From a file to a page::

    definition    what a file may say, checks of published rows included    Experiment
    contradictions which published rows do not
    loading       the file, checked
    settings      a cell's settings as a job        JobSpec
    cells         all that is to be run             Cell
    plan          how often and in which order, at which cost, kept so that it can go on
    pilot         how long the runs of each cell last
    runner        every cell once in each round, and where the objects go
    observations  the runs of each cell, as numbers CellRuns
    comparisons   ratios within rounds, judged as one family; what they could find
    hypotheses    what holds of each claim, as verdicts
    table         measured beside published
    report        all of it as text or JSON, by a writer; plot draws it

docs/experiments/README.md is the guide.
"""

from typing import Final, Literal, get_args

SCALES: Final = ("small", "paper")
"""Small enough for a laptop, and as it was published."""
Design = Literal["full", "one-factor", "list"]
DESIGNS: Final[tuple[str, ...]] = get_args(Design)
"""All combinations of the axes; a baseline and one change at a time; the cells by name."""
MAX_REPEATS: Final = 1000
"""Rounds; no experiment has had a hundred."""
