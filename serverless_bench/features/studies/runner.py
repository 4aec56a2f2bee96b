"""Runs the cells of a study in rounds, with stores, and resumes interrupted runs."""

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Final

from serverless_bench.base.clock import monotonic_ns
from serverless_bench.base.errors import INTERRUPTED, CostError, SbenchError, UsageError
from serverless_bench.base.plugins import TOOLS
from serverless_bench.base.units import NS_PER_S, format_count
from serverless_bench.driver.location import check_meant
from serverless_bench.driver.target import embedded_target
from serverless_bench.driver.task import SILENT, Listener, Spending, Task, make_run
from serverless_bench.features.compare.runs import (
    JobSeries,
    check_cost,
    free_path,
    has_ended,
    set_aside,
    task_of,
)
from serverless_bench.features.studies import pilot
from serverless_bench.features.studies.cells import Cell
from serverless_bench.features.studies.definition import Setting, Settings
from serverless_bench.features.studies.observations import failure_path, run_path
from serverless_bench.features.studies.plan import Plan, overwrite_plan, planned_jobs
from serverless_bench.features.studies.settings import inner, merged
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import FILES, Target
from serverless_bench.rundir.listing import as_argument
from serverless_bench.rundir.run import Run

_DIRECTORY: Final = "any--use1-az4--x-s3"
"""Name of the directory bucket in the loopback store."""


class Stores:
    """Stores of a study, each opened when a cell first needs it.

    Parameters
    ----------
    stack
        Stack that closes all of them.
    given
        The user's target; None for the embedded store.
    shaped
        Whether any cell has a store with a configured behaviour, which is a local loopback store.
    """

    def __init__(self, stack: ExitStack, given: Target | None, *, shaped: bool = False) -> None:
        self._stack = stack
        self._given = given
        self._shaped = shaped
        self._open: dict[tuple[object, ...], Target] = {}

    def target(self, settings: Settings) -> Target:
        """Return the destination of a cell's objects.

        Raises
        ------
        StoreError
            If the store does not start.
        UsageError
            If the store is the embedded store, but the environment specifies another.
        """
        store = str(settings.get("store", "embedded"))
        if store == "loopback" and self._given is not None and not self._shaped:
            store = "embedded"
        serve = inner(settings, "serve") if store == "loopback" else {}
        name = (store, *sorted((n, str(v)) for n, v in serve.items()))
        if name not in self._open:
            self._open[name] = self._opened(store, serve)
        return self._open[name]

    def keeps_nothing(self, target: Target) -> bool:
        """Return whether a target is a loopback store of this study."""
        return any(
            store[0] == "loopback" and opened.endpoint_url == target.endpoint_url
            for store, opened in self._open.items()
        )

    def _opened(self, store: str, serve: Settings) -> Target:
        if store == "files":
            return FILES
        if store == "loopback":
            url = self._stack.enter_context(_serving(serve, is_only_store=self._given is None))
            return Target(bucket=_DIRECTORY if "express" in serve else "any", endpoint_url=url)
        if self._given is not None:
            return self._given
        target = self._stack.enter_context(embedded_target())
        check_meant(target)
        return target


def _serving(serve: Settings, *, is_only_store: bool) -> AbstractContextManager[str]:
    """Run a loopback store in a separate process for the length of a block; yield the URL."""
    flags = {"check": "none", **serve}
    arguments = [f"--{name.replace('_', '-')}={value}" for name, value in flags.items()]
    has_credentials = all(map(os.environ.get, ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")))
    served: Callable[..., AbstractContextManager[str]] = TOOLS.load("loopback")
    return served(*arguments, credentials=is_only_store and not has_credentials)


@contextmanager
def on_cpus(count: object) -> Iterator[None]:
    """Restrict this thread, and the processes it starts, to a number of CPUs.

    Stores that are already running keep all CPUs.

    Raises
    ------
    UsageError
        If the machine has fewer.
    """
    if not isinstance(count, int) or not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    if not 1 <= count <= len(before):
        raise UsageError(f"cpus is {count}, but this process may use only {len(before)}")
    os.sched_setaffinity(0, sorted(before)[:count])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def run(
    plan: Plan,
    root: Path,
    *,
    keep: bool = False,
    max_cost: float | None = None,
    say: Callable[[str], object] = lambda _: None,
    listener: Listener = SILENT,
) -> Plan:
    """Run all remaining cells and repeats, and save the runs below ``root``.

    A failure is recorded beside the directory of its run, and does not stop the remaining runs.

    Parameters
    ----------
    plan, root
        Plan, and the directory in which ``save_plan`` has written it.
    keep
        Whether to keep the objects of the runs.
    max_cost
        Limit in dollars for all rounds, pilots and preparations together.
    say
        Function that receives a line about each run.
    listener
        Listener to objects that could not be deleted.

    Returns
    -------
    Plan
        Plan with the number of rounds that the pilots leave time for.

    Raises
    ------
    CostError
        If the runs would cost more than ``max_cost``.
    SbenchError
        If the store does not start, or the user interrupts.
    """
    with ExitStack() as stack:
        shaped = any(cell.shaped_store for cell in plan.cells())
        stores = Stores(stack, plan.target, shaped=shaped)
        runner = _Runner(
            plan, stores, JobSeries(root=root, keep=keep, listener=listener), max_cost=max_cost
        )
        if any("store" not in cell.settings for cell, _ in _todo(plan, root)):
            # Open the store early, so that a problem with it is reported once and not by each run.
            stores.target({})
        runner.check_cost()
        try:
            if plan.most_s and _todo(plan, root):
                plan = runner.find_lengths(say)
            order, todo = list(plan.order()), _todo(plan, root)
            if todo and not plan.most_s:
                runner.warm_up(todo[0][0])
            for done, (cell, repeat) in enumerate(todo, 1 + len(order) - len(todo)):
                outcome = runner.perform(cell, repeat) or "done"
                say(f"run {done} of {len(order)}: {cell.label}, repeat {repeat}: {outcome}")
        finally:
            runner.clean_up(say)
    return plan


def _todo(plan: Plan, root: Path) -> list[tuple[Cell, int]]:
    return [(cell, n) for cell, n in plan.order() if not _is_done(root, cell, n)]


class _Runner:
    """Runner of single cells."""

    def __init__(
        self, plan: Plan, stores: Stores, series: JobSeries, *, max_cost: float | None
    ) -> None:
        self._plan = plan
        self._root = root = series.root
        self._stores = stores
        self._series = series
        self._max_cost = max_cost
        self._spending = Spending()
        self._lengths = pilot.load_lengths(root)
        self._prepared: dict[str, Run | SbenchError] = {}

    def check_cost(self) -> None:
        """Check the expected cost of the study against the limit.

        Raises
        ------
        CostError
            If the cost would exceed it; nothing has been started.
        """
        if self._max_cost is not None:
            planned = planned_jobs(self._plan, self._stores.target)
            check_cost(
                self._task(planned_job.job, planned_job.keys)
                for planned_job in planned
                for _ in range(planned_job.runs)
            )

    def _task(self, job: JobSpec, keys: Sequence[str] = ()) -> Task:
        task = task_of(job, keys, max_cost=self._max_cost)
        return replace(task, place=nullcontext, spending=self._spending)

    def _made(self, job: JobSpec, path: Path, keys: Sequence[str] = ()) -> Run:
        run, problem = make_run(self._task(job, keys), job, path)
        if problem is not None:
            raise problem
        return run

    def warm_up(self, cell: Cell) -> None:
        """Run a cell once without counting the run: a store that has just started is slow."""
        self._attempt(cell, free_path(self._root / "warm-up"), {})

    def find_lengths(self, say: Callable[[str], object]) -> Plan:
        """Run missing pilots of cells; return the plan with the number of rounds.

        The duration of runs and the number of rounds are saved before the first counted run.
        """
        plan, cells = self._plan, self._plan.runnable()
        for cell in cells:
            if cell.slug not in self._lengths:
                length = self._lengths[cell.slug] = self._pilot(cell)
                pilot.replace_json(self._root / pilot.LENGTHS, self._lengths)
                error = length.standard_error
                error_text = "" if error is None else f", standard error {error:.1%}"
                say(f"pilot: {cell.label}: runs of {length.seconds:.1f} s{error_text}")
        if plan.minutes:
            lengths = [self._lengths[cell.slug] for cell in cells]
            rounds = pilot.rounds_within(plan.minutes, lengths, plan.repeats)
            self._plan = plan = replace(plan, repeats=rounds, minutes=0.0)
            overwrite_plan(plan, self._root)
            say(format_count(rounds, "round"))
        return plan

    def _pilot(self, cell: Cell) -> pilot.RunLength:
        scale, most_s = self._plan.study.scales[self._plan.scale], self._plan.most_s
        path, begun_ns = free_path(self._root / "pilot"), monotonic_ns()
        done = self._attempt(cell, path, pilot.pilot_settings(cell.settings, most_s))
        took_s = (monotonic_ns() - begun_ns) / NS_PER_S
        spread = pilot.spread_of(done) if isinstance(done, Run) else (None, None)
        length = pilot.length_of(spread, cell.settings, most_s, scale.standard_error)
        return replace(length, around_s=max(0.0, took_s - (spread[0] or 0.0)))

    def perform(self, cell: Cell, repeat: int) -> str:
        """Run a cell; return the failure as text, or an empty text."""
        path = run_path(self._root, cell, repeat)
        failure = failure_path(path)
        failure.unlink(missing_ok=True)
        set_aside(path, self._root / "cut-off")
        length = self._lengths.get(cell.slug)
        done = self._attempt(cell, path, length.settings if length else {})
        if isinstance(done, Run):
            return ""
        text = f"{type(done).__name__}: {done}"
        failure.parent.mkdir(parents=True, exist_ok=True)
        failure.write_text(f"{text}\n", encoding="utf-8")
        return text

    def clean_up(self, say: Callable[[str], object]) -> None:
        """Delete prepared objects; the runs are complete by now, so failures are only reported."""
        for prepared in self._prepared.values():
            if isinstance(prepared, Run):
                try:
                    self._delete(prepared.path, prepared.job)
                except SbenchError as exc:
                    name = as_argument(prepared.path)
                    say(f"not deleted: {exc}; sbench clean {name} does it later")
        self._series.finish()

    def _attempt(self, cell: Cell, path: Path, length: Settings) -> Run | SbenchError:
        return _or_problem(lambda: self._run(cell, path, length))

    def _run(self, cell: Cell, path: Path, length: Settings) -> Run:
        target = self._stores.target(cell.settings)
        keys, place = self._keys(cell), dict[str, Setting]()
        files = path.with_name(f"{path.name}.arrays")
        if cell.settings.get("store") == "files":
            # A driver that was killed left its files here.
            set_aside(files, self._root / "cut-off")
            files.mkdir(parents=True)
            place["path"] = str(files)
        settings = merged(cell.settings, length, place)
        job = self._plan.job(settings, target, name=cell.slug, keys=keys)
        try:
            with on_cpus(cell.settings.get("cpus")):
                return self._made(job, path, keys)
        finally:
            if place and not self._series.keep:
                shutil.rmtree(files, ignore_errors=True)
            if not place:
                self._delete(path, job)

    def _delete(self, path: Path, job: JobSpec) -> None:
        # A loopback store keeps no data.
        if not self._stores.keeps_nothing(job.target):
            self._series.delete(path)

    def _keys(self, cell: Cell) -> list[str]:
        """Return the keys that a cell reads, written once for all cells with the same objects."""
        settings = self._plan.prepared(cell)
        if settings is None:
            return []
        name = repr(sorted((n, str(v)) for n, v in settings.items()))
        if name not in self._prepared:
            self._prepared[name] = _or_problem(lambda: self._prepare(settings))
        prepared = self._prepared[name]
        if isinstance(prepared, SbenchError):
            raise UsageError(
                f"the objects that it reads could not be written: {prepared}", hint=prepared.hint
            )
        return prepared.keys()

    def _prepare(self, settings: dict[str, Setting]) -> Run:
        job = self._plan.job(settings, self._stores.target(settings), name="prepare")
        return self._made(job, free_path(self._root / "prepare"))


def _or_problem(run_one: Callable[[], Run]) -> Run | SbenchError:
    """Return a run, or a problem; an interrupt, or a limit of cost, stops the study."""
    try:
        return run_one()
    except SbenchError as exc:
        if exc.exit_code in {INTERRUPTED, CostError.exit_code}:
            raise
        return exc


def _is_done(root: Path, cell: Cell, repeat: int) -> bool:
    """Return whether a run is complete; a failed run is repeated."""
    path = run_path(root, cell, repeat)
    if failure_path(path).exists():
        return False
    try:
        return has_ended(path)
    except SbenchError:
        return False
