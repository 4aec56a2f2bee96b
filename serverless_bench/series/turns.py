"""Sides that run in turns, block by block."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from serverless_bench.analysis.samples import (
    MeasuredRun,
    Sample,
    check_comparable,
    measured_run,
    sample_of,
)
from serverless_bench.errors import UsageError
from serverless_bench.job.spec import JobSpec
from serverless_bench.series.runs import JobSeries, check_cost, in_turns
from serverless_bench.series.task import Task, task_of
from serverless_bench.series.user_command import run_command, words_of

Side = JobSpec | Task | str
"""A job, a task, or a command that makes one run."""
OnRun = Callable[[str, MeasuredRun], object]
"""Gets the block and the label as words, and the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """How often sides run, and in which order."""

    blocks: int
    warm_up_blocks: int
    """Blocks that come first and do not count."""
    least: int
    """Blocks without which there is no verdict."""
    seed: int
    allow: Collection[str] = ()
    """Settings that may differ although they make another job of it."""
    on_run: OnRun = lambda *_: None

    def check(self) -> None:
        """Refuse a series that is too short for a verdict.

        Raises
        ------
        UsageError
            If it has fewer than ``least`` blocks, or fewer than no warm-ups.
        """
        if self.blocks < self.least or self.warm_up_blocks < 0:
            raise UsageError(
                f"`blocks` must be at least {self.least} and `warm_up_blocks` 0,"
                f" got {self.blocks} and {self.warm_up_blocks}",
                hint="fewer runs allow no verdict",
            )

    @property
    def rounds(self) -> int:
        """Runs of each side, warm-ups included."""
        return self.warm_up_blocks + self.blocks

    def block(self, number: int) -> tuple[str, str]:
        """Return the title and the directory name of a block."""
        if number <= self.warm_up_blocks:
            # Those of the warm-up lie one deeper, where ``sbench compare`` does not look.
            return f"warm-up {number} of {self.warm_up_blocks}", f"warm-up/{number}"
        number -= self.warm_up_blocks
        width = len(str(self.blocks))
        return f"block {number} of {self.blocks}", f"{number:0{width}}"


def run_in_turns(
    series: JobSeries, sides: Mapping[str, Side], turns: Turns, keys: Sequence[str] = ()
) -> list[Sample]:
    """Run each side once in every block, in random order; return its runs but the warm-ups.

    Parameters
    ----------
    series
        Where the runs lie: in a directory per side, named as its label in lower case.
    sides
        By label.
    turns
        How often.
    keys
        Objects that jobs read.

    Raises
    ------
    UsageError
        If there are too few blocks, or the sides do not do the same work.
    CostError
        If the runs would cost more together than a side's limit.
    CutOff
        If a run fails.
    """
    turns.check()
    ready = {label: _ready(side, keys, label) for label, side in sides.items()}
    tasks = [side for side in ready.values() if isinstance(side, Task)]
    check_cost(task for task in tasks for _ in range(turns.rounds))
    runs: dict[str, list[MeasuredRun]] = {label: [] for label in sides}
    embedded = any(task.embedded for task in tasks)
    with ExitStack() as kept:
        kept.enter_context(series.store_kept_up(needed=embedded))
        for number, label in in_turns([*sides], turns.rounds, turns.seed):
            title, folder = turns.block(number)
            run = _measured(series, ready[label], Path(label.lower(), folder))
            if run.settings.get("target.store") and not embedded:
                # It would start anew for each command, which takes seconds.
                kept.enter_context(series.store_kept_up(needed=True))
                embedded = True
            runs[label].append(run)
            turns.on_run(f"{title}: {label}", run)
            if len({len(made) for made in runs.values()}) == 1:
                check_comparable(_samples(runs, series.root), allowed=turns.allow)
    return _samples(
        {label: made[turns.warm_up_blocks :] for label, made in runs.items()}, series.root
    )


def _ready(side: Side, keys: Sequence[str], label: str) -> Task | tuple[str, ...]:
    if isinstance(side, str):
        return words_of(side, f"`{label}`")
    return task_of(side, keys) if isinstance(side, JobSpec) else side


def _measured(series: JobSeries, side: Task | tuple[str, ...], place: Path) -> MeasuredRun:
    if isinstance(side, Task):
        return measured_run(series.run(side, str(place)))
    return run_command(series, side, (series.root / place).parent)


def _samples(runs: Mapping[str, Sequence[MeasuredRun]], root: Path) -> list[Sample]:
    return [
        sample_of(made, label=label, directory=root / label.lower()) for label, made in runs.items()
    ]
