"""Tasks and their runs in a directory: run them or reuse existing runs, and delete objects."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, TypeVar

import numpy as np

from serverless_bench.base.errors import INCOMPLETE, INTERRUPTED, CostError, SbenchError, UsageError
from serverless_bench.base.units import GIB, format_count
from serverless_bench.driver.cleanup import Deleted, give_space_back
from serverless_bench.driver.run import CutShort, new_directory
from serverless_bench.driver.target import located
from serverless_bench.driver.task import SILENT, Listener, Task, make_run
from serverless_bench.features.cost.limit import cost_limit
from serverless_bench.features.stages.series import keep_store
from serverless_bench.job.spec import JobSpec
from serverless_bench.metrics.summary import summarize
from serverless_bench.rundir.listing import as_argument
from serverless_bench.rundir.run import Run, load_run


def task_of(
    job: JobSpec,
    keys: Sequence[str] = (),
    *,
    max_cost: float | None = None,
) -> Task:
    """Return the task of a job; the embedded store stays up during its runs if it is the target.

    Raises
    ------
    UsageError
        If a cost limit is set for an executor without cost.
    """
    return Task(job=job, keys=keys, place=located, cost=cost_limit(job.executor, max_cost=max_cost))


class CutOff(SbenchError):
    """A run of a series failed; ``exit_code`` is the exit code of that run."""

    def __init__(self, directory: Path, exit_code: int) -> None:
        if exit_code == INTERRUPTED:
            super().__init__("interrupted; the runs so far are saved")
        else:
            super().__init__(f"the run in {directory} ended with exit code {exit_code}")
        self.hint = f"sbench report {as_argument(directory)}"
        self.exit_code = exit_code


class ObjectsStay(SbenchError):
    """Objects of a series could not be deleted; its results are complete."""

    exit_code = INCOMPLETE


class Interrupted(SbenchError):
    """A series was interrupted; the message says what is saved."""

    exit_code = INTERRUPTED

    def __init__(self, root: Path) -> None:
        count = sum(1 for _ in root.rglob("run.json"))
        runs = format_count(count, "run")
        super().__init__(f"interrupted; {runs} {'is' if count == 1 else 'are'} saved in {root}")
        self.hint = f"sbench ls {as_argument(root)}"


T = TypeVar("T")
_SAME: Final = (
    *("workload", "transfer", "objects", "size", "read_times", "duration", "warm_up", "seed"),
    *("number", "executor"),
)
"""Fields of a job beside its load that runs of a series have in common with the job."""
GARBAGE_BYTES: Final = 4 * GIB
"""Deleted bytes after which the embedded store reclaims space; a sixteenth of it at the end of a
series. This takes seconds, and its data directory may grow by the same amount."""


@dataclass(slots=True, kw_only=True)
class JobSeries:
    """Runs in a directory, each of which finds the store in the same state."""

    root: Path
    keep: bool = False
    """Whether to keep the objects of the runs."""
    resume: bool = False
    """Whether to reuse completed runs in this directory."""
    listener: Listener = SILENT
    deleted_bytes: int = 0
    """Bytes deleted from the embedded store, with space not reclaimed yet."""
    _later: list[Path] = field(default_factory=list)
    """Runs to clean at the end: their functions may be delivered late, which takes a minute to
    wait for."""
    _left: Deleted = field(default_factory=Deleted)
    _left_by: list[Path] = field(default_factory=list)
    _problems: list[str] = field(default_factory=list)

    def run(self, task: Task, name: str, *, accept: Collection[int] = ()) -> Run:
        """Return the run of a task in the directory ``name``.

        Parameters
        ----------
        task
            Task to run.
        name
            Name of the run directory, relative to the root.
        accept
            Accepted exit codes besides 0.

        Raises
        ------
        CutOff
            If the run failed.
        UsageError
            If a run to be reused is one of another job.
        """
        directory = self.root / name
        if self.resume and has_ended(directory):
            run, problem = load_run(directory), None
            check_same_job(run, task.job)
        else:
            if self.resume:
                set_aside(directory, self.root / "cut-off")
            run, problem = self._make(task, directory)
        code = summarize(run).exit_code() if problem is None else problem.exit_code
        if code and code not in accept:
            raise CutOff(directory, code) from problem
        return run

    def _make(self, task: Task, directory: Path) -> tuple[Run, CutShort | None]:
        try:
            # The name of the directory links the run to its objects.
            with task.place(replace(task.job, name=directory.name)) as job:
                run, problem = make_run(task, job, directory, self.listener)
            # The end of the series says that it was interrupted.
            if problem is not None and problem.exit_code != INTERRUPTED:
                self.listener.complain(problem)
            return run, problem
        finally:
            self.delete(directory)

    def delete(self, directory: Path) -> None:
        """Delete the objects of a run, unless they are kept or the run does not exist.

        Those of remote functions are deleted at the end of the series.
        """
        if self.keep or not (directory / "run.json").exists():
            return
        run = load_run(directory, detail=False)
        if run.job.control is not None:
            self._later.append(directory)
        else:
            self._delete(run)

    def _delete(self, run: Run) -> None:
        from serverless_bench.driver.clean import clean

        problems: tuple[str, ...]
        with self.listener.working(f"deleting the objects of {run.path}"):
            try:
                cleaned = clean(run, give_back=False, on_message=self.listener.aside)
            except SbenchError as exc:
                # The measurements are worth more than the objects.
                left, problems = Deleted(), (f"objects may remain: {exc}",)
            else:
                left, problems = cleaned.deleted, cleaned.problems
            self._left.add(left)
            self._problems += problems
            if left.left or problems:
                self._left_by.append(run.path)
            if run.job.target.store is not None:
                self.deleted_bytes += int(run.operations["bytes"].sum())
                self.give_space_back(GARBAGE_BYTES)

    def finish(self) -> None:
        """Delete the remaining objects, and complain about those that stay."""
        # Only the last run has to be waited for; then no delivery of an earlier one can be late.
        while self._later:
            self._delete(load_run(self._later.pop(), detail=False))
        self.give_space_back()
        if not self._left_by:
            return
        left, *more = self._left_by
        texts = dict.fromkeys(filter(None, (self._left.left, *self._problems)))
        others = f", and {len(more)} more like it" if more else ""
        remedy = f"{self._left.remedy}; then " if self._left.remedy else ""
        hint = f"{remedy}sbench clean {left}{others}"
        self._left, self._left_by, self._problems = Deleted(), [], []
        self.listener.complain(ObjectsStay("; ".join(texts), hint=hint))

    def give_space_back(self, least: int = GARBAGE_BYTES // 16) -> None:
        """Let the embedded store reclaim the space of ``least`` or more deleted bytes."""
        if self.deleted_bytes >= least:
            # The import loads the store, which a single run may not need.
            give_space_back()
            self.deleted_bytes = 0

    @contextmanager
    def keep_store(self, *, needed: bool) -> Iterator[None]:
        """Keep the embedded store up like ``keep_store``, and finish the series at the end."""
        with keep_store(needed=needed):
            try:
                yield
            except KeyboardInterrupt as exc:
                raise Interrupted(self.root) from exc
            except CutOff as exc:
                if exc.exit_code != INTERRUPTED:
                    raise
                raise Interrupted(self.root) from exc
            finally:
                self.finish()


def check_same_job(run: Run, job: JobSpec) -> None:
    """Check that a saved run has the job of a series; its store may have another address.

    Raises
    ------
    UsageError
        If it has another job.
    """
    loads = run.job.load, job.load.saved
    names = [name for name in _SAME if getattr(run.job, name) != getattr(job, name)]
    if loads[0] != loads[1] or names:
        raise UsageError(
            f"{run.path} is a run of another job: {', '.join(names) or 'its load differs'}",
            hint="give the arguments of the series that is to be resumed",
        )


def series_in(
    directory: str | Path | None, kind: str, *, keep: bool, resume: bool, listener: Listener | None
) -> JobSeries:
    """Return a series in a directory; by default a new directory named after its kind."""
    root = new_directory(directory, kind)
    return JobSeries(root=root, keep=keep, resume=resume, listener=listener or SILENT)


def check_cost(tasks: Iterable[Task]) -> str:
    """Reject runs that are expected to cost more together than their limit.

    Parameters
    ----------
    tasks
        One task per run; tasks that share their spending share their limit.

    Returns
    -------
    str
        Expected cost of the last task's spending; empty without a limit.

    Raises
    ------
    CostError
        If the limit would be exceeded; nothing is started.
    """
    expected, cost = dict[int, float](), ""
    for task in tasks:
        if task.cost.limit is None:
            continue
        with task.place(task.job) as job:
            from serverless_bench.features.cost.budget import Budget

            budget = Budget(job, task.cost, task.keys)
        total = expected[id(task.spending)] = (
            expected.get(id(task.spending), task.spending.total) + budget.foreseen
        )
        if total > task.cost.limit:
            raise CostError(
                f"these runs would cost more than {budget.limit_text} together; nothing was"
                " started",
                hint="raise the limit, or use fewer or smaller runs",
            )
        cost = budget.money(total)
    return cost


def interleaved(items: Sequence[T], rounds: int, seed: int) -> Iterator[tuple[int, T]]:
    """Yield round numbers from 1 and items: in each round all items in random order.

    Each order is also used in reverse in another round (except for the last of an odd number of
    rounds), so that each item precedes every other item in half of the rounds.
    """
    rng = np.random.default_rng(seed)
    orders: list[list[int]] = []
    for _ in range(0, rounds, 2):
        order = rng.permutation(len(items)).tolist()
        orders += [order, order[::-1]]
    for number, place in enumerate(rng.permutation(rounds), 1):
        yield from ((number, items[item]) for item in orders[place])


def has_ended(directory: Path) -> bool:
    """Return whether a directory contains a completed run."""
    return (directory / "run.json").exists() and load_run(directory, detail=False).ended


def set_aside(directory: Path, folder: Path) -> None:
    """Move an incomplete run to a folder, if it exists."""
    if directory.exists():
        directory.rename(free_path(folder))


def free_path(folder: Path) -> Path:
    """Return an unused path in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    taken = {path.name for path in folder.iterdir()}
    return folder / next(name for n in range(len(taken) + 1) if (name := f"{n + 1}") not in taken)
