"""Run a job: send all invocations to the executor and save each outcome on arrival."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any, Final

from msgspec import to_builtins

from serverless_bench.base.clock import wall_ns
from serverless_bench.base.errors import (
    INTERRUPTED,
    ArchiveError,
    SbenchError,
    UsageError,
    shortage,
)
from serverless_bench.base.plugins import TOOLS
from serverless_bench.base.units import format_count
from serverless_bench.driver.coordinator import Coordinator
from serverless_bench.driver.origin import confirm, provenance, sealed
from serverless_bench.driver.plan import check, check_saved, ledger, uses_store
from serverless_bench.driver.policy import Style, shown, watched, without_once
from serverless_bench.driver.run_keys import run_keys
from serverless_bench.driver.stopping import stopped_by_signals
from serverless_bench.driver.target import loading, located, resolve
from serverless_bench.executors import open_executor
from serverless_bench.executors.base import (
    Executor,
    NotReadyError,
    OnOutcome,
    Preparing,
    Readiness,
    Recovering,
    RunProgress,
)
from serverless_bench.job.abilities import RunsCode, RunsOnce
from serverless_bench.job.invocations import invocation_specs
from serverless_bench.job.keys import new_run_id, stamped_name
from serverless_bench.job.policy import policies_of
from serverless_bench.job.spec import InvocationSpec, JobSpec
from serverless_bench.rundir.archive import Archive
from serverless_bench.rundir.files import refuse_cleaned
from serverless_bench.rundir.listing import DEFAULT_ROOT, as_argument, find_run
from serverless_bench.rundir.record import Lost, Outcome
from serverless_bench.rundir.run import AnyRun, Run, as_run, load_run, lost_functions
from serverless_bench.rundir.tables import is_text

OwnFunction = Callable[[Any], object]
"""A function of the user, which is called with ``FunctionContext``."""
MAX_WAVES: Final = 3
"""Number of additional launches for functions that never started; after that they are lost."""


class CutShort(SbenchError):
    """A run was cut short, but part of its results can be reported.

    Parameters
    ----------
    run
        The part of the run that had arrived.
    cause
        Cause of the early end: Ctrl-C, or an error of the executor or the disk.

    Examples
    --------
    >>> str(sbench.CutShort(written, KeyboardInterrupt()))
    'interrupted; the results so far are saved'
    """

    def __init__(self, run: Run, cause: BaseException) -> None:
        if isinstance(cause, SbenchError):
            super().__init__(str(cause), hint=cause.hint)
            self.exit_code = cause.exit_code
        else:
            what = run.stopped.remark if run.stopped else "interrupted"
            super().__init__(f"{what}; the results so far are saved")
            name = as_argument(run.path)
            on = (
                f"sbench resume {name} launches {format_count(lost, 'function')} without a record, "
                if (lost := lost_functions(run))
                else ""
            )
            self.hint = f"{on}sbench clean {name} deletes its objects"
            self.exit_code = INTERRUPTED
        self.run = run


def run_job(
    job: JobSpec,
    directory: str | Path | None = None,
    *,
    keys: Sequence[str] = (),
    progress: bool | Style = False,
    live: RunProgress | None = None,
    on_outcome: OnOutcome = lambda _: None,
) -> Run:
    """Run a job and return the run.

    Parameters
    ----------
    job
        Job to run.
    directory
        The new run directory; None for a new one in ``sbench-runs``.
    keys
        Objects to read, for workloads that read: ``keys()`` of a run that wrote objects.
    progress
        Whether to show the progress of the run, or its style: ``auto`` (the same as True), ``bar``,
        ``plain`` or ``none``, as in ``--progress``.
    live
        Updated while the job runs, for a progress display of your own.
    on_outcome
        Called as each outcome arrives.

    Returns
    -------
    Run
        One row per planned invocation, lost ones included; saved in its ``path``.

    Raises
    ------
    ArchiveError
        If the directory already contains a run or cannot be written.
    StoreError
        If the store does not respond, or the bucket is missing or access to it is denied.
    UsageError, PluginError, ExecutorError
        If the job is invalid, a library is missing, or no invocation could be started.
    CutShort
        If the job was cut short or a record could not be saved; ``run`` has the partial run.

    Examples
    --------
    >>> with sbench.embedded_target() as target:
    ...     job = sbench.JobSpec(workload="noop", target=target, number=4)
    ...     run = sbench.run_job(job)
    >>> run.job.number, run.ended
    (4, True)
    """
    job = _ready(job, keys)
    live, place = live or RunProgress(), new_directory(directory, job.workload)
    with shown(job, job.number, live, on_outcome, keys=keys, progress=progress) as notify:
        return _launched(job, place, keys, live, notify)


def new_directory(directory: str | Path | None, kind: str) -> Path:
    """Return the directory of a new run or series: ``directory``, or one in ``DEFAULT_ROOT``."""
    return DEFAULT_ROOT / stamped_name(kind) if directory is None else Path(directory)


def _ready(job: JobSpec, keys: Sequence[str]) -> JobSpec:
    """Return a job that can be launched, with the address of its bucket if that is on AWS."""
    if isinstance(job.declared, RunsCode) and job.load.code is None:
        raise UsageError("the job brings no function", hint="sbench.custom(my_function, number=8)")
    job.validate()
    check(job, keys)
    if job.reads_given and not keys:
        raise UsageError(
            f"a {job.workload} without keys reads nothing",
            hint="keys=written.keys(), with the run that wrote the objects",
        )
    if job.target.endpoint_url or not uses_store(job):
        return job
    control = job.control
    if control is not None and not control.endpoint_url:
        control = resolve(control)
    return replace(job, target=resolve(job.target), control=control)


def _launched(
    job: JobSpec, directory: Path, keys: Sequence[str], live: RunProgress, on_outcome: OnOutcome
) -> Run:
    """Run a checked job after the store has responded."""
    executor, created_ns = open_executor(job), wall_ns()
    run_id = new_run_id(created_ns)
    coordinator = Coordinator(job, run_id, live.clock)
    coordinator.reach()
    ready = None
    if isinstance(executor, Preparing):
        ready = executor.prepare(run_id, keys, live)
        job, live.concurrency = replace(job, concurrency=ready.concurrency), ready.concurrency
    header = {
        "run_id": run_id,
        "created_ns": created_ns,
        # The code is left out: reading a run directory must never execute code.
        "job": replace(job, load=job.load.saved).to_json(),
        "provenance": provenance(job),
        **({} if ready is None else {"limits": ready.limits, "probe": ready.probe}),
    }
    planned = partial(invocation_specs, job, run_id=run_id, created_ns=created_ns, keys=keys)
    coordinator.job, policies = job, policies_of(job)
    coordinator.note_keys = [
        key
        for policy in policies
        for invocation in planned()
        for key in policy.note_keys(invocation)
    ]
    ledger_keys = chain(() if ready is None else ready.left, ledger(job, planned()))
    with Archive(directory, header=header, ledger=ledger_keys, keys=keys, seal=sealed) as archive:
        fanout = _Fanout(job, run_id, keys, executor, archive, live, on_outcome)
        with (
            archive.beating(lambda: live.started),
            fanout.surviving(coordinator),
            coordinator,
            watched(job, live, archive.closing),
            loading(job.target, archive.closing),
        ):
            fanout.launch(planned())
            fanout.launch_again()
    return fanout.finished()


def resume_job(
    run: AnyRun,
    *,
    function: OwnFunction | None = None,
    launch: bool = True,
    trust: bool = False,
    progress: bool | Style = False,
    live: RunProgress | None = None,
    on_outcome: OnOutcome = lambda _: None,
) -> Run:
    """Resume a run whose driver has died, or that lost functions.

    Records that have arrived in the meantime are collected, and functions that are still
    running are waited for. Functions that are missing after that are launched again, as a
    separate wave. A function with a record is never launched again, and a complete run is
    returned unchanged.

    Parameters
    ----------
    run
        A run, its name or its directory.
    function
        The function of a run that calls your own code: a run directory contains no code.
        Without it, no function is launched.
    launch
        Whether to launch missing functions; False only ends the run.
    trust
        Same as in ``clean``; trusting a run also invokes its functions.
    progress, live, on_outcome
        Same as in ``run_job``.

    Raises
    ------
    ArchiveError, UsageError, StoreError
        Same as in ``clean``; also raised if the embedded store does not start.
    CutShort
        Same as in ``run_job``.

    Examples
    --------
    >>> sbench.resume_job(run.path).ended
    True
    """
    path = find_run(run, DEFAULT_ROOT) if isinstance(run, str | PathLike) else as_run(run).path
    before = load_run(path)
    missing = lost_functions(before)
    if before.ended and not missing:
        return before
    confirm(before, trust=trust)
    refuse_cleaned(path)
    live, job = live or RunProgress(), check_saved(before) if launch else before.job
    if launch:
        refuse_contradictions(before)
    if function is not None:
        job = replace(job, load=TOOLS.load("function-load")(function, job.load))
    elif launch and isinstance(workload := job.declared, RunsOnce):
        launch = False
        live.note(workload.not_again)
    with (
        located(job) as located_job,
        shown(job, missing, live, on_outcome, progress=progress) as notify,
    ):
        return _resumed(located_job, path, live, notify, launch=launch)


def _resumed(
    job: JobSpec, path: Path, live: RunProgress, on_outcome: OnOutcome, *, launch: bool
) -> Run:
    """Resume the run in ``path``; ``job`` has the current address of its store."""
    executor = open_executor(job)
    with Archive(path, seal=sealed) as archive:
        before = load_run(path)
        archive.resumed(wall_ns())
        all_keys, created_keys = before.keys(), set(before.ledger())
        keys = [key for key in all_keys if key not in created_keys]
        fanout = _Fanout(
            without_once(job), before.run_id, keys, executor, archive, live, on_outcome
        )
        fanout.wave = max((wave.number for wave in before.waves), default=0)
        coordinator = Coordinator(fanout.job, before.run_id, live.clock)
        with (
            archive.beating(lambda: live.started),
            fanout.surviving(coordinator),
            coordinator,
            loading(job.target, archive.closing),
        ):
            fanout.recover(before)
            if launch:
                fanout.ask_again()
                fanout.launch_again()
    return fanout.finished()


def refuse_contradictions(run: Run) -> None:
    """Raise an error if the files of a run differ from the files that its driver wrote.

    Raises
    ------
    ArchiveError
        If they differ; the message lists the differences.
    """
    if problems := run_keys(run).problems:
        raise ArchiveError(
            f"{run.path}: {'; '.join(problems)}",
            hint="no function is launched;"
            f" sbench clean {as_argument(run.path)} deletes its objects",
        )


class _Fanout:
    """Waves of invocations that one driver launches for a run, and their outcomes."""

    def __init__(
        self,
        job: JobSpec,
        run_id: str,
        keys: Sequence[str],
        executor: Executor,
        archive: Archive,
        live: RunProgress,
        on_outcome: OnOutcome,
    ) -> None:
        self.job = job
        self.wave = self._arrived = 0
        self._run_id = run_id
        self._keys = keys
        self._executor = executor
        self._archive = archive
        self._live = live
        self._on_outcome = on_outcome
        self._again: set[int] = set()
        self._left: tuple[str, ...] = ()
        self._cause: BaseException | None = None
        # The clock may have been created before the run; discard earlier suspensions.
        live.clock.now_ns()
        live.clock.suspensions.clear()

    @contextmanager
    def surviving(self, coordinator: Coordinator) -> Iterator[None]:
        """Keep outcomes that arrived before an early end, and the coordinator's report."""
        archive, live = self._archive, self._live
        try:
            with stopped_by_signals(live):
                yield
            if live.stopped is not None:
                self._cause = KeyboardInterrupt()
        except (SbenchError, OSError, MemoryError, RuntimeError) as exc:
            self._cause = exc if isinstance(exc, SbenchError) else shortage(exc)
            if not self._arrived or self._cause is None:
                raise
        except KeyboardInterrupt as exc:
            self._cause = exc
        finally:
            self._note_suspensions()
            archive.closing.update(coordinator.report(), ended_ns=wall_ns())
            if live.stopped is not None:
                archive.closing["stopped"] = to_builtins(live.stopped)
            if live.requests:
                archive.closing["requests"] = live.requests

    def launch(self, invocations: Iterable[InvocationSpec]) -> None:
        """Run invocations and save their outcomes."""
        self._collect(self._executor.map(invocations, self._live))

    def ask_again(self) -> None:
        """Probe the functions again if any of them has to be launched again."""
        if self._again and isinstance(self._executor, Preparing):
            try:
                self._note(self._executor.prepare(self._run_id, self._keys, self._live))
            except NotReadyError as exc:
                self._note(exc.readiness)
                raise

    def _note(self, ready: Readiness) -> None:
        """Save the cost of a probe and the keys of the objects that it left."""
        self._left = ready.left
        if ready.probe is not None:
            self._archive.closing["probed"] = ready.probe["functions"]

    def launch_again(self) -> None:
        """Launch functions that are missing or never started, as separate waves."""
        first = self.wave
        while self._again and not self._live.stopped and self.wave - first < MAX_WAVES:
            self.wave += 1
            indexes, created_ns = frozenset(self._again), wall_ns()
            self._again.clear()
            planned = partial(
                invocation_specs,
                self.job,
                run_id=self._run_id,
                created_ns=created_ns,
                keys=self._keys,
                wave=self.wave,
                indexes=indexes,
            )
            keys, self._left = chain(self._left, ledger(self.job, planned())), ()
            self._archive.begin_wave(self.wave, created_ns, keys, len(indexes))
            self.launch(planned())

    def recover(self, before: Run) -> None:
        """Collect the results of functions of another driver; the rest is launched again."""
        functions = before.functions
        self._again = set(functions["index"][is_text(functions["status"], "lost")].tolist())
        if not isinstance(self._executor, Recovering) or not self._again:
            return
        rows = zip(functions["index"].tolist(), functions["delivery"], strict=True)
        known_deliveries = {(index, delivery) for index, delivery in rows if delivery}
        out = invocation_specs(
            self.job,
            run_id=self._run_id,
            created_ns=before.created_ns,
            keys=self._keys,
            wave=self.wave,
            indexes=frozenset(self._again),
        )
        self._collect(self._executor.recover(out, self._live, before.created_ns, known_deliveries))

    def _collect(self, outcomes: Generator[Outcome, None, None]) -> None:
        with closing(outcomes):
            for outcome in outcomes:
                self._arrived += 1
                self._note_suspensions()
                self._archive.append(outcome)
                self._on_outcome(outcome)
                result = outcome.result
                if isinstance(result, Lost) and result.not_started:
                    self._again.add(result.index)
                elif not isinstance(result, Lost) and not result.duplicate:
                    self._again.discard(result.index)

    def _note_suspensions(self) -> None:
        """Save suspensions of this machine that are not saved yet."""
        clock = self._live.clock
        clock.now_ns()
        while clock.suspensions:
            self._archive.suspended(*clock.suspensions.pop(0))

    def finished(self) -> Run:
        """Return the run after the archive is closed."""
        archive, cause = self._archive, self._cause
        if archive.failure is not None:
            hint = "this report is the only one that has them; make room and run again"
            cause = ArchiveError(archive.shortfall, hint=hint)
        run = archive.load()
        if cause is not None:
            raise CutShort(run, cause) from cause
        return run
