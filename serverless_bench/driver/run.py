"""Run a job: send every invocation to the executor and save every outcome as it arrives."""

import secrets
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final

from serverless_bench.clock import utc_stamp, wall_ns
from serverless_bench.driver.coordinator import Coordinator
from serverless_bench.driver.live.display import Style
from serverless_bench.driver.live.progress import shown
from serverless_bench.driver.origin import confirm, sealed
from serverless_bench.driver.pickling import OwnFunction, function_job, pack
from serverless_bench.driver.plan import check, check_saved, ledger, uses_store
from serverless_bench.driver.provenance import provenance
from serverless_bench.driver.run_keys import run_keys
from serverless_bench.driver.target import loading, located, resolve
from serverless_bench.driver.until_stable import ended_when_stable
from serverless_bench.errors import INTERRUPTED, ArchiveError, SbenchError, UsageError, shortage
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
from serverless_bench.job.invocations import invocation_specs
from serverless_bench.job.keys import new_run_id
from serverless_bench.job.spec import InvocationSpec, JobSpec
from serverless_bench.rundir.archive import Archive
from serverless_bench.rundir.lock import refuse_cleaned
from serverless_bench.rundir.record import Lost, Outcome
from serverless_bench.rundir.run import Run, load_run, lost_functions
from serverless_bench.rundir.tables import is_text
from serverless_bench.worker.barrier import gate_keys

RUNS: Final = "sbench-runs"
"""Where runs go whose directory nobody names."""
MAX_WAVES: Final = 3
"""How often what never began is launched again; then it is lost."""


class CutShort(SbenchError):
    """A run has not come to its proper end, but there is something to report.

    Parameters
    ----------
    run
        What had arrived.
    cause
        What ended it: Ctrl-C, or an error of the executor or the disk.

    Examples
    --------
    >>> str(sbench.CutShort(written, KeyboardInterrupt()))
    'interrupted; what had arrived is saved'
    """

    def __init__(self, run: Run, cause: BaseException) -> None:
        if isinstance(cause, SbenchError):
            super().__init__(str(cause), hint=cause.hint)
            self.exit_code = cause.exit_code
        else:
            super().__init__("interrupted; what had arrived is saved")
            on, away = f"sbench resume {run.path}", f"sbench clean {run.path}"
            self.hint = f"{on} goes on with it, {away} deletes what it wrote"
            self.exit_code = INTERRUPTED
        self.run = run


def run_job(
    job: JobSpec | OwnFunction,
    directory: str | Path | None = None,
    *,
    keys: Sequence[str] = (),
    progress: bool | Style = False,
    live: RunProgress | None = None,
    on_outcome: OnOutcome = lambda _: None,
    **settings: Any,  # noqa: ANN401 - of JobSpec
) -> Run:
    """Run a job and return its run.

    Parameters
    ----------
    job
        What to run; or a function of your own, which is called with ``FunctionContext``.
    directory
        The new run directory; None for a new one in ``sbench-runs``.
    keys
        Objects to read, for workloads that read: the ``keys()`` of a run that wrote some.
    progress
        Whether to show the run while it is under way, or how: ``auto`` (as True), ``bar``,
        ``plain`` or ``none``, as ``--progress``.
    live
        Kept up to date while the job runs, for a progress display of your own.
    on_outcome
        Called as each outcome arrives.
    **settings
        Of ``JobSpec``, where ``job`` is a function of your own.

    Returns
    -------
    Run
        One row per planned invocation, lost ones included; saved in its ``path``.

    Raises
    ------
    ArchiveError
        If the directory holds a run already or cannot be written.
    StoreError
        If the store does not answer, or the bucket is missing or not ours to use.
    UsageError, PluginError, ExecutorError
        If the job makes no sense, lacks a library, or no invocation could be started.
    CutShort
        If the job ended early, or its records could not all be saved; it has the run so far.

    Examples
    --------
    >>> with sbench.embedded_target() as target:
    ...     job = sbench.JobSpec(workload="noop", target=target, number=4)
    ...     run = sbench.run_job(job)
    >>> run.job.number, run.ended
    (4, True)
    """
    job = _ready(job, keys, settings)
    live, place = live or RunProgress(), new_directory(directory, job.workload)
    with shown(job, job.number, live, on_outcome, keys=keys, progress=progress) as tell:
        return _launched(job, place, keys, live, tell)


def new_directory(directory: str | Path | None, kind: str) -> Path:
    """Return where a run or a series goes: ``directory``, or a new name in ``RUNS``."""
    if directory is not None:
        return Path(directory)
    return Path(RUNS, f"{utc_stamp()}-{kind}-{secrets.token_hex(2)}")


def _ready(job: JobSpec | OwnFunction, keys: Sequence[str], settings: Mapping[str, Any]) -> JobSpec:
    """Return a job that can be launched; the bucket of one on AWS has been found."""
    if not isinstance(job, JobSpec):
        job = function_job(job, **settings)
    elif settings:
        raise TypeError(f"{', '.join(settings)} belong into the job")
    if job.declared.runs_code and job.load.code is None:
        raise UsageError(
            "the job brings no function", hint="run_job(my_function, ...), or sbench call"
        )
    job.check_asked()
    check(job, keys)
    if job.target.endpoint_url or not uses_store(job):
        return job
    control = job.control
    if control is not None and not control.endpoint_url:
        control = resolve(control)
    return replace(job, target=resolve(job.target), control=control)


def _launched(
    job: JobSpec, directory: Path, keys: Sequence[str], live: RunProgress, on_outcome: OnOutcome
) -> Run:
    """Run a job that is checked, whose store answers."""
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
        # Nobody is to run code because it lies in a file.
        "job": asdict(replace(job, load=replace(job.load, code=None))),
        "provenance": provenance(job),
        **({} if ready is None else {"limits": ready.limits, "probe": ready.probe}),
    }
    planned = partial(invocation_specs, job, run_id=run_id, created_ns=created_ns, keys=keys)
    gated = () if job.gate is None else planned()
    coordinator.job = job
    coordinator.gate_keys = [key for invocation in gated for key in gate_keys(invocation)]
    left = () if ready is None else ready.left
    made = chain(left, ledger(job, planned()))
    with Archive(directory, header=header, ledger=made, keys=keys, seal=sealed) as archive:
        fanout = _Fanout(job, run_id, keys, executor, archive, live, on_outcome)
        with (
            archive.beating(lambda: live.started),
            fanout.surviving(coordinator),
            coordinator,
            ended_when_stable(job, live, archive.closing),
            loading(job.target, archive.closing),
        ):
            fanout.launch(planned())
            fanout.launch_again()
    return fanout.finished()


def resume_job(
    run: Run | str | Path,
    *,
    function: OwnFunction | None = None,
    launch: bool = True,
    trust: bool = False,
    progress: bool | Style = False,
    live: RunProgress | None = None,
    on_outcome: OnOutcome = lambda _: None,
) -> Run:
    """Go on with a run whose driver has died, or that lost functions.

    Records that came meanwhile are collected; functions that still run are waited for;
    those that are missing then are launched again, as a wave of their own. What has a
    record is never launched again, and a complete run stays as it is.

    Parameters
    ----------
    run
        A saved run, or its directory.
    function
        For the run of a function of your own, that function again: a run directory has no
        code. Without it, nothing is launched.
    launch
        False to launch nothing: the run is only brought to its end.
    trust
        As in ``clean``, and its functions are invoked.
    progress, live, on_outcome
        As in ``run_job``.

    Raises
    ------
    ArchiveError, UsageError, StoreError
        As in ``clean``; if the embedded store does not start.
    CutShort
        As in ``run_job``.

    Examples
    --------
    >>> sbench.resume_job(run.path).ended
    True
    """
    path = run.path if isinstance(run, Run) else Path(run)
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
        job = replace(job, load=replace(job.load, code=pack(function)))
    elif launch and (reason := job.declared.not_again):
        launch = False
        live.notes.append(reason)
    with (
        located(job) as there,
        shown(job, missing, live, on_outcome, progress=progress) as tell,
    ):
        return _resumed(there, path, live, tell, launch=launch)


def _resumed(
    job: JobSpec, path: Path, live: RunProgress, on_outcome: OnOutcome, *, launch: bool
) -> Run:
    """Go on with the run in ``path``, whose store has the address that ``job`` says."""
    executor = open_executor(job)
    with Archive(path, seal=sealed) as archive:
        before = load_run(path)
        archive.resumed(wall_ns())
        given, made = before.keys(), set(before.ledger())
        keys = [key for key in given if key not in made]
        fanout = _Fanout(
            replace(job, gate=None), before.run_id, keys, executor, archive, live, on_outcome
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
    """Refuse to launch functions of a run whose files are not as its driver left them.

    Raises
    ------
    ArchiveError
        If so; it says what is missing.
    """
    if problems := run_keys(run).problems:
        raise ArchiveError(
            f"{run.path}: {'; '.join(problems)}",
            hint=f"nothing is launched; sbench clean {run.path} deletes what it wrote",
        )


class _Fanout:
    """One driver's work on one run: waves of invocations, and what comes of them."""

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
        # The clock may be older than the run.
        live.clock.now_ns()
        live.clock.suspensions.clear()

    @contextmanager
    def surviving(self, coordinator: Coordinator) -> Iterator[None]:
        """Keep what has arrived when the block ends early, and what the coordinator reports."""
        archive, live = self._archive, self._live
        try:
            yield
        except (SbenchError, OSError, MemoryError, RuntimeError) as exc:
            self._cause = exc if isinstance(exc, SbenchError) else shortage(exc)
            if not self._arrived or self._cause is None:
                raise
        except KeyboardInterrupt as exc:
            self._cause = exc
        finally:
            self._note_suspensions()
            archive.closing.update(coordinator.report(), ended_ns=wall_ns())
            if live.requests:
                archive.closing["requests"] = live.requests

    def launch(self, invocations: Iterable[InvocationSpec]) -> None:
        """Run invocations and save their outcomes."""
        self._collect(self._executor.map(invocations, self._live))

    def ask_again(self) -> None:
        """Find out anew whether the functions can do it, if any is to be launched again."""
        if self._again and isinstance(self._executor, Preparing):
            try:
                self._note(self._executor.prepare(self._run_id, self._keys, self._live))
            except NotReadyError as exc:
                self._note(exc.readiness)
                raise

    def _note(self, ready: Readiness) -> None:
        """Note what asking the functions has cost, and left."""
        self._left = ready.left
        if ready.probe is not None:
            self._archive.closing["probed"] = ready.probe["functions"]

    def launch_again(self) -> None:
        """Launch what is missing, and what never began, in waves of its own."""
        first = self.wave
        while self._again and self.wave - first < MAX_WAVES:
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
        """Collect what another driver's functions have left; the rest is to be launched again."""
        functions = before.functions
        self._again = set(functions["index"][is_text(functions["status"], "lost")].tolist())
        if not isinstance(self._executor, Recovering) or not self._again:
            return
        rows = zip(functions["index"].tolist(), functions["delivery"], strict=True)
        known = {(index, delivery) for index, delivery in rows if delivery}
        out = invocation_specs(
            self.job,
            run_id=self._run_id,
            created_ns=before.created_ns,
            keys=self._keys,
            wave=self.wave,
            indexes=frozenset(self._again),
        )
        self._collect(self._executor.recover(out, self._live, before.created_ns, known))

    def _collect(self, outcomes: Generator[Outcome, None, None]) -> None:
        with closing(outcomes):
            for outcome in outcomes:
                self._arrived += 1
                self._note_suspensions()
                self._archive.append(outcome)
                self._on_outcome(outcome)
                result = outcome.result
                if isinstance(result, Lost) and result.never_began:
                    self._again.add(result.index)
                elif not isinstance(result, Lost) and not result.duplicate:
                    self._again.discard(result.index)

    def _note_suspensions(self) -> None:
        """Save when this machine was suspended, as far as it is not saved yet."""
        clock = self._live.clock
        clock.now_ns()
        while clock.suspensions:
            self._archive.suspended(*clock.suspensions.pop(0))

    def finished(self) -> Run:
        """Return the run, once its archive is closed."""
        archive, cause = self._archive, self._cause
        if archive.failure is not None:
            hint = "this report is the only one that has them; make room and run again"
            cause = ArchiveError(archive.shortfall, hint=hint)
        run = archive.load()
        if cause is not None:
            raise CutShort(run, cause) from cause
        return run
