"""A job that may run again and again, and how one of its runs is made."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from serverless_bench.analysis.exit_code import exit_code_of
from serverless_bench.analysis.summary import summarize
from serverless_bench.driver.cost_limit import CostLimit, cost_limit
from serverless_bench.driver.link import beyond_the_link
from serverless_bench.driver.live.display import Display
from serverless_bench.driver.run import CutShort, run_job
from serverless_bench.driver.target import embedded_target, relocated
from serverless_bench.driver.versioning import keeps_versions
from serverless_bench.errors import INTERRUPTED, SbenchError
from serverless_bench.executors.base import RunProgress
from serverless_bench.job.spec import JobSpec, idle_words
from serverless_bench.rundir.run import Run

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
    embedded: bool = False
    """Whether it is known to use the embedded store."""
    cost: CostLimit = _UNLIMITED
    """Its limit is for all runs together."""
    spending: Spending = field(default_factory=Spending)
    display: Display | bool = False


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
    cost = cost_limit(job.executor, max_cost=max_cost, memory=job.memory_mib, arch=job.architecture)
    embedded = job.target.store is not None
    place = _on_the_embedded_store if embedded else nullcontext
    return Task(job=job, keys=keys, place=place, embedded=embedded, cost=cost)


@contextmanager
def _on_the_embedded_store(job: JobSpec) -> Iterator[JobSpec]:
    with embedded_target(client=job.target.client, prefix=job.target.prefix) as target:
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
        return exit_code_of(summarize(self.run))


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
