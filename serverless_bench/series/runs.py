"""Runs of tasks below one directory: made, taken if they are there, and their objects deleted."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, TypeVar

import numpy as np

from serverless_bench.driver.budget import Budget
from serverless_bench.driver.clean import clean
from serverless_bench.driver.cleanup import give_space_back
from serverless_bench.driver.run import new_directory
from serverless_bench.driver.target import store_kept_up
from serverless_bench.errors import CostError
from serverless_bench.rundir.run import Run, load_run
from serverless_bench.series.task import SILENT, CutOff, FinishedRun, Listener, Task, make_run
from serverless_bench.units import GIB

T = TypeVar("T")
GARBAGE_BYTES: Final = 4 * GIB
"""The embedded store gives space back after so much was deleted; in the end, from a
sixteenth of it on. That takes seconds, and its data directory may grow by as much."""


@dataclass(slots=True)
class Garbage:
    """Space of deleted objects that the embedded store has not given back."""

    deleted_bytes: int = 0

    def give_back(self, least: int) -> None:
        """Have the store give the space back, if it is so much."""
        if self.deleted_bytes >= least:
            give_space_back()
            self.deleted_bytes = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSeries:
    """Runs below one directory, each of which finds the store as the others do."""

    root: Path
    keep: bool = False
    """Whether the objects of the runs stay where they are."""
    resume: bool = False
    """Whether a run that has come to its end here is taken, and not made again."""
    listener: Listener = SILENT
    garbage: Garbage = field(default_factory=Garbage)

    def run(self, task: Task, name: str, *, accept: Collection[int] = ()) -> Run:
        """Return the run of a task in the directory ``name``.

        Parameters
        ----------
        task
            What to run.
        name
            Of the run directory, below the root.
        accept
            Exit codes of runs that are good enough, beside 0.

        Raises
        ------
        CutOff
            If the run has not come to a good end.
        """
        directory = self.root / name
        if self.resume and (saved := ended_run(directory)) is not None:
            finished = FinishedRun(run=saved)
        else:
            if self.resume:
                set_aside(directory, self.root / "cut-off")
            finished = self._make(task, directory)
        if (code := finished.exit_code) and code not in accept:
            raise CutOff(directory, code) from finished.problem
        return finished.run

    def _make(self, task: Task, directory: Path) -> FinishedRun:
        try:
            finished = run_task(task, directory, self.listener)
            if finished.problem is not None:
                self.listener.complain(finished.problem)
            return finished
        finally:
            self.delete(directory)

    def delete(self, directory: Path) -> None:
        """Delete the objects of a run, unless they are kept or there is no run."""
        if self.keep or not (directory / "run.json").exists():
            return
        with self.listener.working(f"deleting what {directory} wrote"):
            run = load_run(directory, detail=False)
            clean(run, give_back=False, on_message=self.listener.aside)
            if run.job.target.store is not None:
                self.garbage.deleted_bytes += int(run.operations["bytes"].sum())
                self.garbage.give_back(GARBAGE_BYTES)

    @contextmanager
    def store_kept_up(self, *, needed: bool) -> Iterator[None]:
        """Keep the embedded store up as ``store_kept_up``; in the end it gives space back."""
        with store_kept_up(needed=needed):
            try:
                yield
            finally:
                self.garbage.give_back(GARBAGE_BYTES // 16)


def series_in(
    directory: str | Path | None, kind: str, *, keep: bool, resume: bool, listener: Listener | None
) -> JobSeries:
    """Return a series in a directory, or in a new one that is named after its kind."""
    root = new_directory(directory, kind)
    return JobSeries(root=root, keep=keep, resume=resume, listener=listener or SILENT)


def run_task(task: Task, directory: Path, listener: Listener = SILENT) -> FinishedRun:
    """Run a task once, named after its directory, where its objects belong."""
    with task.place(replace(task.job, name=directory.name)) as job:
        return make_run(task, job, directory, listener)


def check_cost(tasks: Iterable[Task]) -> None:
    """Refuse runs that are expected to cost more together than a limit allows.

    Parameters
    ----------
    tasks
        One per run; those that share their spending share their limit.

    Raises
    ------
    CostError
        If they cost more; nothing is started.
    """
    expected: dict[int, float] = {}
    for task in tasks:
        if task.cost.limit is None:
            continue
        with task.place(task.job) as job:
            budget = Budget(job, task.cost, task.keys)
        total = expected[id(task.spending)] = (
            expected.get(id(task.spending), task.spending.total) + budget.foreseen
        )
        if total > task.cost.limit:
            raise CostError(
                f"these runs would cost more than {budget.limit_text} together; nothing was"
                " started",
                hint="allow more, or have fewer or smaller runs",
            )


def in_turns(items: Sequence[T], rounds: int, seed: int) -> Iterator[tuple[int, T]]:
    """Yield a round from 1 and an item: all items in random order, then again, and so on."""
    rng = np.random.default_rng(seed)
    for number in range(1, rounds + 1):
        for place in rng.permutation(len(items)):
            yield number, items[int(place)]


def ended_run(directory: Path) -> Run | None:
    """Return the run in a directory, if it has come to its end."""
    return load_run(directory) if has_ended(directory) else None


def has_ended(directory: Path) -> bool:
    """Tell whether a directory has a run that has come to its end."""
    return (directory / "run.json").exists() and load_run(directory, detail=False).ended


def set_aside(directory: Path, folder: Path) -> None:
    """Move a run that was cut off into a folder, if there is one."""
    if directory.exists():
        directory.rename(free_path(folder))


def free_path(folder: Path) -> Path:
    """Return a path in a folder that is not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    taken = {path.name for path in folder.iterdir()}
    return folder / next(name for n in range(len(taken) + 1) if (name := f"{n + 1}") not in taken)
