"""A job and its runs, which share a limit of their cost."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from serverless_bench.base.errors import SbenchError
from serverless_bench.base.plugins import TOOLS
from serverless_bench.driver.policy import Style
from serverless_bench.executors.base import OnOutcome, RunProgress, ignore
from serverless_bench.job.spec import JobSpec

if TYPE_CHECKING:
    from serverless_bench.driver.run import CutShort
    from serverless_bench.rundir.run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class CostLimit:
    """Cost limit of a job, and the prices that apply to it."""

    limit: float | None = None
    prices: Any = None
    """Table of prices; None for the prices that come with sbench."""
    spent: float = 0.0
    """Bill of earlier runs that count towards the limit."""


_UNLIMITED: Final = CostLimit()


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """Callbacks for events other than results of runs; by default all are ignored."""

    note: Callable[[Iterable[str]], object] = ignore
    """Called with remarks about a run."""
    begin: Callable[[], object] = ignore
    """Called before a run is launched."""
    aside: Callable[[str], object] = ignore
    """Called with a sentence before a slow operation."""
    complain: Callable[[SbenchError], object] = ignore
    """Called with the reason why a run was cut short, or why objects stay."""
    working: Callable[[str], AbstractContextManager[object]] = nullcontext
    """Context manager around a slow operation."""


SILENT: Final = Listener()


@dataclass(slots=True)
class Spending:
    """Cost of a task's runs until now, if the task has a limit."""

    total: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A job, and properties shared by its runs."""

    job: JobSpec
    keys: Sequence[str] = ()
    """Objects to read."""
    place: Callable[[JobSpec], AbstractContextManager[JobSpec]] = nullcontext
    """Context manager that provides the job with its target."""
    cost: CostLimit = _UNLIMITED
    """Cost limit of all runs together."""
    spending: Spending = field(default_factory=Spending)
    progress: bool | Style = False

    @property
    def embedded(self) -> bool:
        """Whether the task uses the embedded store."""
        return self.job.target.store is not None


def make_run(
    task: Task, job: JobSpec, directory: Path, listener: Listener = SILENT
) -> "tuple[Run, CutShort | None]":
    """Run a job once, within the remaining cost limit of its task.

    Parameters
    ----------
    task
        Task of the job.
    job
        Complete job with an existing target.
    directory
        New run directory.
    listener
        Receiver of remarks.

    Returns
    -------
    Run, CutShort or None
        The run, and the error that cut it short.

    Raises
    ------
    CostError
        If the run is expected to cost more than the remaining limit; nothing is started.
    SbenchError
        See ``run_job``, except for ``CutShort``.
    """
    # A refused limit does not wait for the import of what runs a job.
    from serverless_bench.driver.plan import remarks
    from serverless_bench.driver.run import CutShort, run_job

    live = RunProgress(prices=task.cost.prices)
    budget = problem = None
    watching: AbstractContextManager[OnOutcome] = nullcontext(ignore)
    if task.cost.limit is not None:
        budget = TOOLS.load("budget")(job, replace(task.cost, spent=task.spending.total), task.keys)
        watching = budget.watching(live)
    if listener.note is not ignore:
        listener.note(remarks(job, task.keys))
    listener.begin()
    try:
        with watching as on_outcome:
            run = run_job(
                job,
                directory,
                keys=task.keys,
                progress=task.progress,
                live=live,
                on_outcome=on_outcome,
            )
    except CutShort as exc:
        problem, run = exc, exc.run
        if budget is not None and budget.problem is not None:
            problem = CutShort(run, budget.problem)
    finally:
        if budget is not None:
            task.spending.total += budget.billed
    listener.note(live.unprinted())
    return run, problem
