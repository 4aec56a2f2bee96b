"""Tasks, and their runs below one directory: made, taken if they are there, objects deleted."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np

from serverless_bench.analysis.summary import summarize
from serverless_bench.driver.cost_limit import CostLimit, cost_limit
from serverless_bench.driver.link import beyond_the_link
from serverless_bench.driver.live.display import Display
from serverless_bench.driver.run import CutShort, new_directory, run_job
from serverless_bench.driver.target import open_target, relocated, store_kept_up
from serverless_bench.driver.versioning import keeps_versions
from serverless_bench.errors import INTERRUPTED, CostError, SbenchError
from serverless_bench.executors.base import RunProgress
from serverless_bench.job.spec import JobSpec, idle_words
from serverless_bench.rundir.run import Run, load_run
from serverless_bench.units import GIB

_UNLIMITED: Final = CostLimit(limit=None, prices=None, memory_mib=None, architecture=None)


def _ignore(*_: object) -> None:
    """Hear something, and do nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """Hears what happens beside the results of runs; by itself it ignores all of it."""

    note: Callable[[Iterable[str]], object] = _ignore
    """Gets remarks about a run."""
    begin: Callable[[], object] = _ignore
    """Is called when a run is about to be launched."""
    aside: Callable[[str], object] = _ignore
    """Gets a sentence before anything that takes time."""
    complain: Callable[[SbenchError], object] = _ignore
    """Gets the reason why a run was cut short."""
    working: Callable[[str], AbstractContextManager[object]] = nullcontext
    """Wraps work that takes time."""


SILENT: Final = Listener()


@dataclass(slots=True)
class Spending:
    """Bill of the runs of a task so far, where it has a limit."""

    total: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A job, and all that its runs have in common."""

    job: JobSpec
    keys: Sequence[str] = ()
    """Objects to read."""
    place: Callable[[JobSpec], AbstractContextManager[JobSpec]] = nullcontext
    """Yields a job with its target, which is there as long as the block."""
    cost: CostLimit = _UNLIMITED
    """Its limit is for all runs together."""
    spending: Spending = field(default_factory=Spending)
    display: Display | bool = False

    @property
    def embedded(self) -> bool:
        """Whether it uses the embedded store."""
        return self.job.target.store is not None


def task_of(
    job: JobSpec,
    keys: Sequence[str] = (),
    *,
    max_cost: float | None = None,
) -> Task:
    """Return the task of a job; the embedded store is kept up for it, if it is its target.

    Raises
    ------
    UsageError
        If costs are limited where there are none.
    """
    cost = cost_limit(job.executor, max_cost=max_cost, memory=job.memory, arch=job.arch)
    place = nullcontext if job.target.store is None else _on_the_embedded_store
    return Task(job=job, keys=keys, place=place, cost=cost)


@contextmanager
def _on_the_embedded_store(job: JobSpec) -> Iterator[JobSpec]:
    with open_target(job.target) as target:
        yield relocated(job, target)


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRun:
    """A run, and what cut it short."""

    run: Run
    problem: CutShort | None = None

    @property
    def exit_code(self) -> int:
        """Exit code that the run stands for."""
        if self.problem is not None:
            return self.problem.exit_code
        return summarize(self.run).exit_code()


class CutOff(SbenchError):
    """A run among several did not come to a good end; ``exit_code`` is that run's."""

    def __init__(self, directory: Path, exit_code: int) -> None:
        if exit_code == INTERRUPTED:
            super().__init__("interrupted; the runs so far are saved")
        else:
            super().__init__(f"the run in {directory} ended with exit code {exit_code}")
        self.hint = f"sbench report {directory}"
        self.exit_code = exit_code


def make_run(task: Task, job: JobSpec, directory: Path, listener: Listener = SILENT) -> FinishedRun:
    """Run a job once, within what is left of its task's limit of cost.

    Parameters
    ----------
    task
        Of the job.
    job
        Complete: its target is there.
    directory
        The new run directory.
    listener
        Hears remarks.

    Raises
    ------
    CostError
        If the run would cost more than is left; nothing is started.
    SbenchError
        As ``run_job``, but for ``CutShort``.
    """
    live, how, problem = RunProgress(prices=task.cost.prices), dict[str, Any](), None
    budget = None
    if task.cost.limit is not None:
        from serverless_bench.driver.budget import Budget  # noqa: PLC0415 - few jobs have a limit

        budget = Budget(job, replace(task.cost, spent=task.spending.total), task.keys)
        how["on_outcome"] = budget.watch(live, _ignore)
    if listener.note is not _ignore:
        listener.note(_remarks(task, job))
    listener.begin()
    try:
        run = run_job(job, directory, keys=task.keys, progress=task.display, live=live, **how)
    except CutShort as exc:
        problem, run = exc, exc.run
    finally:
        if budget is not None:
            task.spending.total += budget.billed
    listener.note(live.notes)
    return FinishedRun(run=run, problem=problem)


def _remarks(task: Task, job: JobSpec) -> Iterator[str]:
    yield from beyond_the_link(job, task.keys)
    if kept := keeps_versions(job):
        yield kept
    if job.idle_threads:
        yield f"idle threads: {idle_words(job.idle_threads, job.load.threads)}"


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
            # It brings the embedded store along, which a single run may do without.
            from serverless_bench.driver.cleanup import give_space_back  # noqa: PLC0415

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
        if self.resume and has_ended(directory):
            finished = FinishedRun(run=load_run(directory))
        else:
            if self.resume:
                set_aside(directory, self.root / "cut-off")
            finished = self._make(task, directory)
        if (code := finished.exit_code) and code not in accept:
            raise CutOff(directory, code) from finished.problem
        return finished.run

    def _make(self, task: Task, directory: Path) -> FinishedRun:
        try:
            # Named after its directory, where its objects belong.
            with task.place(replace(task.job, name=directory.name)) as job:
                finished = make_run(task, job, directory, self.listener)
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
            from serverless_bench.driver.clean import clean  # noqa: PLC0415 - as above

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
            from serverless_bench.driver.budget import Budget  # noqa: PLC0415 - as above

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
    """Yield a round from 1 and an item: all items in random order, then again, and so on.

    Every order that is drawn comes in another round the other way round (but for the last of
    an odd number), so that each item comes before each other in half of the rounds.
    """
    rng = np.random.default_rng(seed)
    orders: list[list[int]] = []
    for _ in range(0, rounds, 2):
        order = rng.permutation(len(items)).tolist()
        orders += [order, order[::-1]]
    for number, place in enumerate(rng.permutation(rounds), 1):
        for item in orders[place]:
            yield number, items[item]


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
