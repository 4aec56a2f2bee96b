"""Stop a run from outside the driver: through the stop object, or by a signal to the driver."""

import os
import signal
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from serverless_bench.base.clock import monotonic_ns, sleep, wall_ns
from serverless_bench.base.errors import ArchiveError, NotFound, OperationError, UsageError
from serverless_bench.base.units import NS_PER_S, format_seconds
from serverless_bench.driver.policy import Style
from serverless_bench.driver.run import CutShort, resume_job
from serverless_bench.driver.target import located
from serverless_bench.executors.base import RunProgress
from serverless_bench.features.remote.claims import for_run
from serverless_bench.features.remote.delivery import RECORD_S
from serverless_bench.features.remote.looks import LOOK, read_stop
from serverless_bench.features.remote.options import look_s
from serverless_bench.features.remote.stop import BY_COMMAND, SEEN_S, write_stop
from serverless_bench.job.target import Target
from serverless_bench.rundir.files import locked
from serverless_bench.rundir.listing import RECORDS
from serverless_bench.rundir.run import Run, load_run
from serverless_bench.rundir.schema import Stopped
from serverless_bench.worker.board import ABORT, RUN_OVER
from serverless_bench.worker.object_io import ObjectIO

_EVERY_LAUNCH: Final = 10**6
"""``launch`` of a stop by a process that does not have the run directory."""
_LOCKS: Final = Path("/proc/locks")
_REQUEST_S: Final = 30.0
_DRIVER_S: Final = 60.0
"""Time of a driver for the records that arrive after a stop, and for the end."""
_LOOK_S: Final = 0.2


def stop_run(
    run: Run, *, trust: bool, progress: Style, live: RunProgress, say: Callable[[str], object]
) -> Run:
    """Stop the functions of a run, wait for the records, and return the run.

    Parameters
    ----------
    run
        The run. If its driver is active, that ends the run; otherwise this process does.
    trust, progress, live
        As in ``resume_job``.
    say
        Called with a sentence before the wait.

    Raises
    ------
    SbenchError
        As ``resume_job``, except for ``CutShort``; and if the driver cannot be reached.
    """
    if not _has_driver(run.path):
        return _without_driver(run, trust=trust, progress=progress, live=live)
    wait_s = _DRIVER_S
    if run.job.control is None:
        os.kill(_driver_of(run.path), signal.SIGINT)
    else:
        wait_s += _write(run, say) + run.job.transfer.timeout + RECORD_S
    deadline_ns = monotonic_ns() + round(wait_s * NS_PER_S)
    while monotonic_ns() < deadline_ns:
        if not _has_driver(run.path):
            return load_run(run.path)
        sleep(_LOOK_S)
    raise ArchiveError(
        f"{run.path}: its driver has not ended {format_seconds(wait_s)} after the stop",
        hint="end that process, then sbench stop saves the records that have arrived",
    )


def stop_below(control: Target, run_id: str) -> float:
    """Stop all launches of a run by its identifier; return the time until functions notice it.

    Parameters
    ----------
    control
        Location of the records of runs: the ``control_prefix`` of the driver.
    run_id
        Identifier of the run.

    Raises
    ------
    UsageError
        If there is no such run.
    OperationError
        If the store does not answer, or denies it.
    """
    with closing(ObjectIO(for_run(control, run_id))) as store:
        try:
            found = read_stop(store, timeout_s=_REQUEST_S)
        except NotFound:
            raise UsageError(
                f"no run {run_id} below {control.url}",
                hint="--control is the control prefix of its driver, RUN its `run_id`",
            ) from None
        every_s = float(found.get(LOOK, 0.0))
        write_stop(store, run_id, _EVERY_LAUNCH, ABORT, every_s, _REQUEST_S)
    return every_s + SEEN_S


def _without_driver(run: Run, *, trust: bool, progress: Style, live: RunProgress) -> Run:
    """Stop the functions of a run whose driver has ended, and save the records."""
    after_s = max(0.0, (wall_ns() - run.created_ns) / NS_PER_S)
    live.stopped = Stopped(by=BY_COMMAND, after_s=after_s)
    live.stop(RUN_OVER)
    try:
        return resume_job(run, launch=False, trust=trust, progress=progress, live=live)
    except CutShort as exc:
        return exc.run


def _write(run: Run, say: Callable[[str], object]) -> float:
    """Write the stop object; return the time until functions notice it."""
    seen_s = look_s(run.job.max_concurrency) + SEEN_S
    launch = max((wave.number for wave in run.waves), default=0)
    with located(run.job) as job:
        if job.control is None:
            raise ValueError("a run with a control prefix has lost it")
        with closing(ObjectIO(for_run(job.control, run.run_id))) as store:
            # Read it first: the driver counts both requests.
            with suppress(OperationError):
                read_stop(store)
            write_stop(store, run.run_id, launch, ABORT, look_s(job.max_concurrency), _REQUEST_S)
    say(
        f"stopping: functions and driver look for it, which takes {format_seconds(seen_s)} at"
        " most, and the time of their last operation"
    )
    return seen_s


def _has_driver(path: Path) -> bool:
    """Return whether a process uses a run."""
    try:
        with locked(path):
            return False
    except ArchiveError:
        return True


def _driver_of(path: Path) -> int:
    """Return the process that holds the lock of a run on this machine.

    Raises
    ------
    UsageError
        If it is not known.
    """
    inode = f":{(path / RECORDS).stat().st_ino}"
    with suppress(OSError, ValueError):
        for line in _LOCKS.read_text().splitlines():
            _, kind, _, _, pid, place, *_ = line.split()
            if kind == "FLOCK" and place.endswith(inode) and int(pid) > 0:
                return int(pid)
    raise UsageError(
        f"the functions of {path} run with their driver, whose process is not known here",
        hint="Ctrl-C where it runs, or kill -INT PID",
    )
